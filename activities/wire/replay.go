package wire

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/schema"
)

// pure lists the stages that are functions of committed inputs and the recipe alone, in the order
// in which a step runs them.
var pure = []string{StageReward, StageResample, StageAdvantage, StageBuffer}

// Pure returns the stages that can be replayed, in their order.
func Pure() []string { return slices.Clone(pure) }

// instead says of every other stage why it cannot be replayed and what could be done.
var instead = map[string]string{
	StagePrepare:   "commits the recipe that all of a run follows from; run another recipe: ropewalk run RECIPE --set path=value",
	StageWarmStart: "trains a policy, which needs the engine; run the recipe again: ropewalk run RECIPE",
	StagePrompts:   "follows from recipe and seed alone; for other prompts run the recipe with another seed: ropewalk run RECIPE --seed N",
	StageRollout:   "needs the engine and the environment; run the recipe again with the same seed: ropewalk run RECIPE --seed N",
	StageSandbox:   "executes the policy's code, which needs the sandbox; run the recipe again with the same seed: ropewalk run RECIPE --seed N",
	StageAssemble:  "joins turns and tool results by the environment's rules; replay from reward, which reads what it made",
	StageGrade:     "asks sympy, which needs the sandbox; replay from reward, which reads its verdicts",
	StageForward:   "needs the engine; run the recipe again with the same seed: ropewalk run RECIPE --seed N",
	StageUpdate:    "needs the engine and would make another policy; train with the other settings: ropewalk run RECIPE --set path=value",
	StagePublish:   "serves a policy to the engine and leaves no data; nothing of it can be made again",
	StageEvaluate:  "needs the engine; run the recipe again with the same seed: ropewalk run RECIPE --seed N",
	StageImport:    "reads the uploaded file; import the file again: ropewalk import FORMAT FILE",
}

// Replayed returns the stages from … through that a replay runs; through is advantage when empty, or
// from where that comes later.
// The error names the field at fault, why the stage cannot be replayed, and what to do instead.
func Replayed(from, through string) ([]string, error) {
	first, err := replayable("from", from)
	if err != nil {
		return nil, err
	}
	if through == "" {
		through = pure[max(first, slices.Index(pure, StageAdvantage))]
	}
	last, err := replayable("through", through)
	if err != nil {
		return nil, err
	}
	if first > last {
		return nil, fmt.Errorf("through: %s comes before %s; the order is %s", through, from, strings.Join(pure, ", "))
	}
	return slices.Clone(pure[first : last+1]), nil
}

func replayable(field, stage string) (int, error) {
	if i := slices.Index(pure, stage); i >= 0 {
		return i, nil
	}
	if why := instead[stage]; why != "" {
		return 0, fmt.Errorf("%s: %s cannot be replayed: it %s", field, stage, why)
	}
	if stage == "" {
		return 0, fmt.Errorf("%s: name a stage: %s", field, strings.Join(pure, ", "))
	}
	return 0, fmt.Errorf("%s: no stage %q; those that can be replayed are %s", field, stage, strings.Join(pure, ", "))
}

// ReplayInput asks for a generation of a step's stages to be claimed.
type ReplayInput struct {
	Run    string   `json:"run"`
	Step   int      `json:"step"`
	Stages []string `json:"stages"` // to be made again, in order, without gaps
	// Follow: the stage buffer after advantage too, where the step has it.
	Follow bool     `json:"follow,omitempty"`
	Set    []string `json:"set,omitempty"`
	// Claim names whoever asks, the same for every attempt: what it has claimed once it adopts.
	Claim string `json:"claim"`
}

// ShardRef is one shard's manifest.
type ShardRef struct {
	Shard int        `json:"shard"`
	Ref   schema.Ref `json:"ref"`
}

// ReplayPrepared is a claimed generation and what its stages read. Its manifest is the claim, which
// holds the recipe.
type ReplayPrepared struct {
	Done
	Gen          int          `json:"gen"`
	Stages       []string     `json:"stages,omitempty"`       // to be made again, where they are others than asked for
	Trajectories []ShardRef   `json:"trajectories,omitempty"` // for reward
	Gradings     []ShardRef   `json:"gradings,omitempty"`     // for reward, where the recipe asks for symbolic grading
	Turns        []schema.Ref `json:"turns,omitempty"`        // stage manifests, for advantage
	Rewards      schema.Ref   `json:"rewards,omitzero"`       // where reward is not replayed
	Selection    schema.Ref   `json:"selection,omitzero"`     // where resample is not replayed
	Outputs      schema.Ref   `json:"outputs,omitzero"`       // stage manifest of forward, for advantage, where the step has one
	Batch        schema.Ref   `json:"batch,omitzero"`         // where advantage is not replayed, for buffer
	Buffer       schema.Ref   `json:"buffer,omitzero"`        // after the step before, for buffer
	Before       []StageRef   `json:"before,omitempty"`       // what the replayed stages have committed before
	// Excluded are shards that the step went on without, and Prompts what they held; for resample.
	Excluded []ExcludedShard `json:"excluded,omitempty"`
	Prompts  schema.Ref      `json:"prompts,omitzero"`
	// Chain names, for people, what the stage resample runs in its order under the replay's recipe.
	Chain string `json:"chain,omitempty"`
}

// CompareInput asks how replayed stages compare with those before them.
type CompareInput struct {
	Scope
	Stages []StagePair `json:"stages"`
}

// StagePair is a stage's manifest before and after; Old is zero where there was none.
type StagePair struct {
	Stage string     `json:"stage"`
	Old   schema.Ref `json:"old,omitzero"`
	New   schema.Ref `json:"new"`
}

// Compared returns one comparison for each pair.
type Compared struct {
	Done
	Stages []StageComparison `json:"stages"`
}

// StageComparison says whether a stage gave the same bytes. A digest is that of the stage's one
// shard or, where it has several, of the lines "shard digest" in their order; Old is "" where the
// stage had not been made before.
type StageComparison struct {
	Stage   string `json:"stage"`
	Old     string `json:"old"`
	New     string `json:"new"`
	Same    bool   `json:"same"`
	Shards  int    `json:"shards"`
	Differs int    `json:"differs"` // shards
	// Code is the program that had made the stage before, where it is another.
	Code string `json:"code,omitempty"`
}

// CheckPlan lists what a check replays.
type CheckPlan struct {
	Done
	Steps []int  `json:"steps"` // those that are done
	Code  string `json:"code"`  // digest of the program that checks
}

// CheckInput asks for one step's pure stages to be made again in memory.
type CheckInput struct {
	Run  string `json:"run"`
	Step int    `json:"step"`
}

// Checked is one step's outcome: how many shards were made again and which came out otherwise.
type Checked struct {
	Done
	Step    int         `json:"step"`
	Shards  int         `json:"shards"`
	Differs []Different `json:"differs,omitempty"`
	// Code is the program that had made the step, where it is another than the one that checks.
	Code string `json:"code,omitempty"`
}

// Different is a shard that was made again and came out otherwise.
type Different struct {
	Step  int    `json:"step"`
	Stage string `json:"stage"`
	Shard int    `json:"shard"` // −1 for a stage without shards
	// Table says which of several that a manifest commits; empty where it commits one.
	Table  string `json:"table,omitempty"`
	Digest string `json:"digest"` // the first 16 digits of what came out now, "" where nothing did
}
