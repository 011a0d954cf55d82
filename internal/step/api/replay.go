package api

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// Pure returns the stages that the record alone makes again, in order.
func Pure() []string { return stages.Pure() }

// Replayed returns the stages that a replay runs, from from to through. If through is empty, the replay ends with the
// last pure stage that every recipe has, or with from if from comes later. An error names the wrong field, says why the
// stage cannot be replayed, and says what to do instead.
func Replayed(from, through string) ([]string, error) {
	first, err := replayable("from", from)
	if err != nil {
		return nil, err
	}
	all := stages.Replayable()
	if through == "" {
		through = all[max(first, lastOfAll(Pure()))]
	}
	last, err := replayable("through", through)
	if err != nil {
		return nil, err
	}
	if first > last {
		return nil, fmt.Errorf("through: %s comes before %s; the order is %s", through, from, strings.Join(all, ", "))
	}
	return slices.Clone(all[first : last+1]), nil
}

// lastOfAll is the index of the last stage that every recipe has.
func lastOfAll(pure []string) int {
	last := 0
	for i, stage := range pure {
		if declared, _ := stages.Of(stage); !declared.Optional() {
			last = i
		}
	}
	return last
}

func replayable(field, stage string) (int, error) {
	all := stages.Replayable()
	if i := slices.Index(all, stage); i >= 0 {
		return i, nil
	}
	if declared, _ := stages.Of(stage); declared.Instead != "" {
		return 0, fmt.Errorf("%s: %s cannot be replayed: it %s", field, stage, declared.Instead)
	}
	if stage == "" {
		return 0, fmt.Errorf("%s: name a stage: %s", field, strings.Join(all, ", "))
	}
	return 0, fmt.Errorf("%s: no stage %q; those that can be replayed are %s", field, stage, strings.Join(all, ", "))
}

// ReplayInput asks to claim a generation for a replay of a step's stages.
type ReplayInput struct {
	Run    string   `json:"run"`
	Step   int      `json:"step"`
	Stages []string `json:"stages"` // to run again, in order, without gaps
	// Follow adds the stage buffer after advantage, if the step has it.
	Follow bool     `json:"follow,omitempty"`
	Set    []string `json:"set,omitempty"`
	// Claim identifies the caller and is the same for every attempt: a later attempt adopts the claim of an earlier
	// one.
	Claim string `json:"claim"`
}

// ShardRef is one shard's manifest.
type ShardRef struct {
	Shard int        `json:"shard"`
	Ref   schema.Ref `json:"ref"`
}

// ReplayPrepared is a claimed generation and the inputs of its stages. Its manifest is the claim, which holds the
// recipe.
type ReplayPrepared struct {
	Done
	Gen          int        `json:"gen"`
	Stages       []string   `json:"stages,omitempty"`       // stages to run, where they differ from the request
	Trajectories []ShardRef `json:"trajectories,omitempty"` // for reward
	Verdicts     []ShardRef `json:"verdicts,omitempty"`     // for reward, as far as the recipe asks for any
	// Problems are the prompts with which the replay calls the user's function again; zero if it calls none.
	Problems schema.Ref `json:"problems,omitzero"`
	// Made are the stage manifests of the step that the stages read and that are not replayed.
	Made   Made       `json:"made,omitempty"`
	Buffer schema.Ref `json:"buffer,omitzero"`  // the buffer after the previous step, for buffer
	Before Made       `json:"before,omitempty"` // what the replayed stages committed before
	// Excluded are the shards that the step skipped, for resample.
	Excluded []ExcludedShard `json:"excluded,omitempty"`
	// Chain describes for people what the stage resample runs under the replay's recipe, in order.
	Chain string `json:"chain,omitempty"`
	// Update is for a replay that trains; nil for others.
	Update *CounterfactualUpdate `json:"update,omitempty"`
}

// CounterfactualUpdate is what a replay trains from, and the run's own policy that it is compared with.
type CounterfactualUpdate struct {
	Policy   PolicyRef  `json:"policy"`             // the policy that the step began with
	Sampling *PolicyRef `json:"sampling,omitempty"` // the policy that sampled, if the trainer is asked about it
	// Own is the run's own policy after the step; nil if it is pruned. Then nothing is compared.
	Own *PolicyRef `json:"own,omitempty"`
	// Measured is the run's evaluation of Own; nil if the run has made none. A replay measures under the same recipe:
	// that of Config.
	Measured *EvaluationSummary `json:"measured,omitempty"`
	Config   schema.Ref         `json:"config"`
	Hosts    int                `json:"hosts,omitempty"` // that share the run's models, if there are several
}

// ContrastInput asks how far the policy of a replay is from the run's own after the same step.
type ContrastInput struct {
	Scope
	Policy       PolicyRef  `json:"policy"`       // of the replay
	Own          PolicyRef  `json:"own"`          // of the run
	Trajectories []ShardRef `json:"trajectories"` // of the step
}

// Contrasted is the estimate over the step's tokens that a policy has drawn.
type Contrasted struct {
	Done
	// KL estimates the divergence of the replay's policy from the run's own, in nats for each token; nil without tokens
	// whose log-probability the rollout has recorded.
	KL     *float64 `json:"kl"`
	Tokens int      `json:"tokens"`
}

// CompareInput asks how replayed stages compare with the earlier ones.
type CompareInput struct {
	Scope
	Stages []StagePair `json:"stages"`
}

// StagePair is a stage's manifest before and after; Old is zero if there was none.
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

// StageComparison says whether a stage has the same bytes as before. Its digests are those of the stage's single
// shard or, if the stage has several shards, of the lines "shard digest" in order. Old is "" if the stage had not
// been made before.
type StageComparison struct {
	Stage   string `json:"stage"`
	Old     string `json:"old"`
	New     string `json:"new"`
	Same    bool   `json:"same"`
	Shards  int    `json:"shards"`
	Differs int    `json:"differs"` // number of different shards
	// Code is the program that made the stage before, if it is another one.
	Code string `json:"code,omitempty"`
}

// CheckPlan lists what a check replays.
type CheckPlan struct {
	Done
	Steps []int  `json:"steps"` // the finished steps
	Code  string `json:"code"`  // digest of the program that checks
}

// CheckInput asks to recompute one step's pure stages in memory.
type CheckInput struct {
	Run  string `json:"run"`
	Step int    `json:"step"`
}

// Checked is the result for one step: how many shards were recomputed and which of them differ.
type Checked struct {
	Done
	Step    int         `json:"step"`
	Shards  int         `json:"shards"`
	Differs []Different `json:"differs,omitempty"`
	// Code is the program that made the step, if it is not the program that checks.
	Code string `json:"code,omitempty"`
}

// Different is a shard that differs after it was recomputed.
type Different struct {
	Step  int    `json:"step"`
	Stage string `json:"stage"`
	Shard int    `json:"shard"` // −1 for a stage without shards
	// Table names the table, if the manifest commits several; empty otherwise.
	Table  string `json:"table,omitempty"`
	Digest string `json:"digest"` // the first 16 digits of the new digest; "" if there is no such shard now
}
