package api

import (
	"github.com/ropewalk/ropewalk/internal/machine"
	"github.com/ropewalk/ropewalk/schema"
)

// PrepareInput asks to resolve, validate and commit a run's recipe.
type PrepareInput struct {
	Run        string   `json:"run"`
	Kind       string   `json:"kind"`             // train | reprocess | evaluate
	Format     string   `json:"format,omitempty"` // format of an imported file
	Recipe     string   `json:"recipe,omitempty"`
	RecipeYAML string   `json:"recipe_yaml,omitempty"`
	RecipeFile string   `json:"recipe_file,omitempty"`
	Overrides  []string `json:"overrides,omitempty"`
	Seed       *uint64  `json:"seed,omitempty"`
	Steps      *int     `json:"steps,omitempty"`
	Resume     bool     `json:"resume,omitempty"`
	// Fork is the step of another run after which the run goes on, with that run's recipe. Overrides change the recipe.
	Fork *schema.ForkPoint `json:"fork,omitempty"`
	// ForkFrom is the stage of the next step at which the run forks off; "" if it takes that step whole.
	ForkFrom string `json:"fork_from,omitempty"`
	// Evaluates is the policy that an evaluation of its own measures; nil in other runs, and if it is resumed.
	Evaluates *PolicyRef `json:"evaluates,omitempty"`
	// LatestOf names the run whose latest policy an evaluation measures, in the place of Evaluates.
	LatestOf string `json:"latest_of,omitempty"`
}

// ForkNote is the note (schema.NoteFork) of a fork's manifest, and "" of another run's.
func (in PrepareInput) ForkNote() string {
	if in.Fork == nil {
		return ""
	}
	return in.Fork.String()
}

// Prepared is a validated run.
type Prepared struct {
	Done
	Plan Plan `json:"plan"`
	// NextStep is the first step without a head; Policy is the checkpoint that it starts from (nil at step 1).
	NextStep int        `json:"next_step"`
	Policy   *PolicyRef `json:"policy,omitempty"`
	// Earlier are the policies before Policy that steps are still sampled from, the oldest first: as many as the lag
	// of a pipelined run, as far as there are steps. The first policy of the run is not among them.
	Earlier []PolicyRef `json:"earlier,omitempty"`
	// Evaluates is the policy that an evaluation of its own measures; nil in other runs.
	Evaluates *PolicyRef `json:"evaluates,omitempty"`
	// Evaluation says how an evaluation of its own is made; nil in other runs.
	Evaluation *EvaluationPlan `json:"evaluation,omitempty"`
	// Buffer is the replay buffer that step NextStep starts with; zero if it is empty.
	Buffer schema.Ref `json:"buffer,omitzero"`
	// Machine is the hardware and software that this worker computes with.
	Machine machine.Machine `json:"machine"`
	// Amendments are the committed changes of the run's recipe, in the order they were made.
	Amendments []Amendment `json:"amendments,omitempty"`
	// NextAmendment is the first number that no amendment in the record has. Void amendments and amendments that
	// later ones ignore also use up numbers.
	NextAmendment int `json:"next_amendment,omitempty"`
	// Untimed are the finished steps whose measured times are not recorded, and Uncompacted those whose shards the
	// recipe wants merged and are not: the run ended before it got to that.
	Untimed     []int `json:"untimed,omitempty"`
	Uncompacted []int `json:"uncompacted,omitempty"`
	// Notes say what a user may not expect of the run; nil if it was prepared before.
	Notes []string `json:"notes,omitempty"`
}

// EvaluationPlan says how an evaluation of its own is made.
type EvaluationPlan struct {
	Problems int `json:"problems"`
	// PerShard is how many problems a shard has; an evaluation of no more problems has no shards.
	PerShard int `json:"per_shard"`
	// Positions is the longest sequence that the model is to read; 0 = what its checkpoint says.
	Positions int `json:"positions,omitempty"`
}

// Shards is how many shards the evaluation has; 0 if it is made in one piece.
func (p *EvaluationPlan) Shards() int {
	if p == nil || p.PerShard < 1 || p.Problems <= p.PerShard {
		return 0
	}
	return (p.Problems + p.PerShard - 1) / p.PerShard
}

// Amendment is a change of a run's recipe: the manifest that holds the changed recipe, and the step from which the
// change is in force.
type Amendment struct {
	Manifest schema.Ref `json:"manifest"`
	Plan     Plan       `json:"plan"`
	From     int        `json:"from"`
	// Gen is the generation at which step From runs again with the change; 0 if the step has not run before.
	Gen int `json:"gen,omitempty"`
}

// StateInput asks to note a run's state.
type StateInput struct {
	Run    string `json:"run"`
	State  string `json:"state"` // package analysis/status says which there are
	Kind   string `json:"kind,omitempty"`
	Reason string `json:"reason,omitempty"`
	At     int64  `json:"at"` // Unix microseconds
}

// DeedInput asks to note that someone had a run started, where no command notes it.
type DeedInput struct {
	Run    string            `json:"run"`
	Action string            `json:"action"`         // one of schema.Deed
	With   map[string]string `json:"with,omitempty"` // what is started
	Actor  string            `json:"actor"`
	At     int64             `json:"at"` // Unix microseconds
}

// AmendInput asks for the run's next amendment.
type AmendInput struct {
	Run    string     `json:"run"`
	Config schema.Ref `json:"config"` // the manifest of the current recipe
	Number int        `json:"number"` // the first number that the run has not used
	From   int        `json:"from"`
	Rerun  bool       `json:"anew,omitempty"` // step From runs again, in a generation that nothing else uses
	Set    []string   `json:"set"`            // path=value
	// Settle asks about an amendment whose attempts have all failed: one of them may still have committed it. If none
	// has, the activity makes the number void, so that no attempt can commit it later.
	Settle bool `json:"settle,omitempty"`
	// Actor is who asked for the change, and At when, in Unix microseconds; "" if the caller did not say.
	Actor string `json:"actor,omitempty"`
	At    int64  `json:"at,omitempty"`
}

// Amended is the committed amendment. If Void or Taken is set, there is none.
type Amended struct {
	Done
	Amendment Amendment `json:"amendment"`
	Void      bool      `json:"void,omitempty"`  // the number is void: nothing was changed, and nothing will be
	Taken     bool      `json:"taken,omitempty"` // another amendment has the number
}

// WarmStarted is the cloned policy.
type WarmStarted struct {
	Done
	Policy  PolicyRef `json:"policy"`
	Loss    float64   `json:"loss"`    // of the last optimiser step, nats per token
	Correct float64   `json:"correct"` // share of demonstrations with a right answer
	// Initial is the policy before cloning; nil if the run does not measure it.
	Initial *PolicyRef `json:"initial,omitempty"`
}

// DataInput asks for the decision which training tasks are drawn. Candidates and Answers are the stages before it, if a
// given model has answered the tasks.
type DataInput struct {
	Scope
	Candidates schema.Ref `json:"candidates,omitzero"`
	Answers    schema.Ref `json:"answers,omitzero"`
}

// Candidates are the training tasks that a given model answers, and the model.
type Candidates struct {
	Done
	Tasks  int       `json:"tasks"`
	Shards int       `json:"shards"`
	Model  PolicyRef `json:"model"` // its manifest is zero if the stage's own manifest commits it
}

// AnswersInput asks for the answers to the tasks of one shard.
type AnswersInput struct {
	Scope
	Candidates schema.Ref `json:"candidates"`
	Model      PolicyRef  `json:"model"`
	Shard      int        `json:"shard"`
	Shards     int        `json:"shards"`
}

// Answered counts the answers of one shard.
type Answered struct {
	Done
	Answers int `json:"answers"`
	Matched int `json:"matched"`
}

// DataPrepared counts the training tasks that a data section keeps, and those that it drops, by reason.
type DataPrepared struct {
	Done
	Kept    int            `json:"kept"`
	Dropped map[string]int `json:"dropped,omitempty"`
}
