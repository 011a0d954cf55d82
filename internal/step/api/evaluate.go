package api

import (
	"fmt"

	"github.com/ropewalk/ropewalk/schema"
)

// EvaluateInput asks for an evaluation on held-out problems.
type EvaluateInput struct {
	Scope
	Policy PolicyRef `json:"policy"`
	Tag    string    `json:"tag"` // initial | warm_start | step | final
	// Positions is the longest sequence that the model is to read, where that is more than its checkpoint says.
	Positions int `json:"positions,omitempty"`
	// Parts are the manifests of the shards of an evaluation that has shards, in their order.
	Parts []schema.Ref `json:"parts,omitempty"`
}

// EvaluateShardInput asks for one shard of an evaluation: the held-out problems from First on.
type EvaluateShardInput struct {
	EvaluateInput
	Shard    int `json:"shard"`
	First    int `json:"first"`
	Problems int `json:"problems"`
}

// EvaluatedShard is a committed shard of an evaluation.
type EvaluatedShard struct {
	Done
	Episodes int `json:"episodes"`
	Solved   int `json:"solved"` // sampled episodes that solved their problem
	Sampled  int `json:"sampled"`
}

// Tags of the rows of evaluations after training steps.
const (
	TagStep  = "step"  // between the first and the last one
	TagFinal = "final" // the last evaluation of a run
)

// Rate is a success rate with its bootstrap 95% interval over problems.
type Rate struct {
	Success float64 `json:"success"`
	CILow   float64 `json:"ci_low"`
	CIHigh  float64 `json:"ci_high"`
	N       int     `json:"n"` // number of problems
}

// EvaluationSummary is the result of one evaluation.
type EvaluationSummary struct {
	Rate
	Greedy float64 `json:"greedy"`
	// GreedyN counts the greedy episodes that Greedy is the share of.
	GreedyN int `json:"greedy_n"`
	// ByLevel is keyed by the level's number.
	ByLevel map[string]Rate `json:"by_level"`
	// ByType is keyed by the family of the task; absent if the environment has one family.
	ByType map[string]Rate `json:"by_type,omitempty"`
	// ByPart is keyed by the label of a part of a mix of environments; nil elsewhere.
	ByPart                 map[string]Rate `json:"by_part,omitempty"`
	ToolErrorRatePositives float64         `json:"tool_error_rate_positives"`
	// PositiveCalls counts the calls that ToolErrorRatePositives is the share of.
	PositiveCalls int   `json:"positive_calls"`
	Trajectories  int   `json:"trajectories"`
	ToolCalls     int   `json:"tool_calls"`
	Tokens        int64 `json:"tokens"`
}

// noData stands for a figure that an evaluation does not have, where 0 would be a figure.
const noData = "–"

// String is the rate with its interval, in percent.
func (r Rate) String() string {
	if r.N == 0 {
		return noData
	}
	return fmt.Sprintf("%.1f%% [%.1f, %.1f]", 100*r.Success, 100*r.CILow, 100*r.CIHigh)
}

// GreedyWords is the success of greedy episodes in percent.
func (e EvaluationSummary) GreedyWords() string {
	return share(e.GreedyN > 0, e.Greedy)
}

// ToolErrorWords is the share of calls in positive trajectories that failed.
func (e EvaluationSummary) ToolErrorWords() string {
	return share(e.PositiveCalls > 0, e.ToolErrorRatePositives)
}

func share(there bool, of float64) string {
	if !there {
		return noData
	}
	return fmt.Sprintf("%.1f%%", 100*of)
}

// Evaluated is an evaluation and its manifest.
type Evaluated struct {
	Done
	Summary EvaluationSummary `json:"summary"`
}

// RecordTimingsInput carries a step's measured intervals to the timings table.
type RecordTimingsInput struct {
	Scope
	Timings []Timing `json:"timings"`
	// Part separates a step's own timings from those of the run, which are recorded at the same step.
	Part string `json:"part"` // step | run
	// Shard is the shard of the step that the timings belong to; absent if they belong to the whole step.
	Shard *int `json:"shard,omitempty"`
	// Lost means that the step is done and its measured times are lost: it gets a row for each of its manifests, as if
	// an execution had adopted them.
	Lost bool `json:"lost,omitempty"`
}

// TimingsRecorded is the recording of measured times.
type TimingsRecorded struct {
	Done
	// Superseded reports that another build of the workers' deployment than the one that did this is current. It is
	// asked for the times of a whole step alone; absent: no, or the worker belongs to no deployment.
	Superseded bool `json:"superseded,omitempty"`
}

// ImportInput asks to turn foreign solutions into committed turns.
type ImportInput struct {
	Scope
	Format string `json:"format"` // openai
	Source string `json:"source"` // key of the uploaded file
	Digest string `json:"digest"` // digest of the uploaded file
}

// ImportedShard is one shard of imported prompts, turns and trajectories. Its manifest of the rollout stage, turn 0,
// holds all three.
type ImportedShard struct {
	Manifest schema.Ref `json:"manifest"`
	Calls    int        `json:"calls"`
}

// Imported lists the shards.
type Imported struct {
	Done
	Shards       []ImportedShard `json:"shards"`
	Trajectories int             `json:"trajectories"`
	Calls        int             `json:"calls"`
}
