package api

import (
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// PromptsInput asks for a step's prompts, or for those of one round of its dynamic sampling.
type PromptsInput struct {
	Scope
	Round *int `json:"round,omitempty"` // from 0; absent if the step samples once
}

// Past names what a shard has committed of its rollout before an activity, by the manifest that it committed last.
// That manifest names the one before it, and so on back to turn 0. So the input of an activity does not grow with the
// number of turns.
type Past struct {
	// Last is the manifest of the shard's latest turn, or of that turn's tool calls; zero before turn 0.
	Last schema.Ref `json:"last,omitzero"`
}

// Inputs lists the manifests that the past names directly.
func (p Past) Inputs() []schema.Ref {
	if p.Last != (schema.Ref{}) {
		return []schema.Ref{p.Last}
	}
	return nil
}

// GenerateInput asks for one turn of one shard.
type GenerateInput struct {
	Scope
	Past
	Shard   int        `json:"shard"`
	Turn    int        `json:"turn"`
	Prompts schema.Ref `json:"prompts"`
	Policy  PolicyRef  `json:"policy"`
}

// Generated counts one turn of one shard.
type Generated struct {
	Done
	Calls  int   `json:"calls"`  // tool calls that wait for results
	Tokens int64 `json:"tokens"` // tokens generated
	// Open counts the trajectories that await their next response already, because this turn was a summary.
	Open int `json:"open,omitempty"`
	// Excluded counts the trajectories that ended here because the engine failed on them.
	Excluded int `json:"excluded,omitempty"`
}

// ToolsInput asks for the tool calls of one turn of one shard.
type ToolsInput struct {
	Scope
	Past               // the last turn is the one whose calls run
	Shard   int        `json:"shard"`
	Turn    int        `json:"turn"`
	Prompts schema.Ref `json:"prompts"`
}

// ToolsDone counts verdicts.
type ToolsDone struct {
	Done
	Calls  int `json:"calls"`
	Failed int `json:"failed"`
	// Excluded counts the trajectories that ended here because the sandbox broke on one of their calls.
	Excluded int `json:"excluded,omitempty"`
	// Edited names files of the user's environment that were edited since the run was prepared.
	Edited string `json:"edited,omitempty"`
}

// EpisodesInput asks for one shard from its prompts to its rewards.
type EpisodesInput struct {
	Scope
	Sent
	Shard    int        `json:"shard"`
	Prompts  schema.Ref `json:"prompts"`
	Policy   PolicyRef  `json:"policy"`
	MaxTurns int        `json:"max_turns"`
	// Needs decides which verdicts the recipe asks for.
	stages.Needs
	// Summaries says that tool calls use the run's models.
	Summaries bool `json:"summaries,omitempty"`
	// Hosts is how many hosts share the run's models, if there are several, and Home is the host that leads them.
	Hosts int    `json:"hosts,omitempty"`
	Home  string `json:"home,omitempty"`
	// Record makes the shard record its own measured times, because the times of all shards would exceed the step's
	// payload limits.
	Record bool `json:"record,omitempty"`
}

// Episodes names the last manifests of a shard, which lead to all others.
type Episodes struct {
	Spent
	Shard     int        `json:"shard"`
	Assembled schema.Ref `json:"assembled"`
	Scored    Scored     `json:"scored"`
}

// FailedPart is the detail of errors of RunEpisodes, MakeBatch and UpdateAndPublish: which of the stages within them
// failed.
type FailedPart struct {
	Stage    string `json:"stage"`
	Turn     int    `json:"turn"`     // −1 where the stage has none
	Activity string `json:"activity"` // what runs the stage if it is an activity of its own
}

// AssembleInput asks for one shard's episodes.
type AssembleInput struct {
	Scope
	Past
	Shard   int        `json:"shard"`
	Prompts schema.Ref `json:"prompts"`
}

// VerdictInput asks for the verdicts of one stage (grade, judge, function) on one shard's answers.
type VerdictInput struct {
	Scope
	Shard        int        `json:"shard"`
	Trajectories schema.Ref `json:"trajectories"`
	Prompts      schema.Ref `json:"prompts"`
}

// Verdicts counts one shard's verdicts of one stage.
type Verdicts struct {
	Done
	Asked     int `json:"asked"`     // trajectories
	Questions int `json:"questions"` // different ones among them; each is one call
	Right     int `json:"right"`     // trajectories
	// Excluded counts the trajectories that got no verdict.
	Excluded int `json:"excluded,omitempty"`
	// Edited names the files of the user's code that were edited since the run was prepared.
	Edited string `json:"edited,omitempty"`
}

// ScoreInput asks for one shard's rewards.
type ScoreInput struct {
	Scope
	Shard        int        `json:"shard"`
	Trajectories schema.Ref `json:"trajectories"`
	// Verdicts are the manifests of the shard's verdicts, in the order of their stages.
	Verdicts []schema.Ref `json:"verdicts,omitempty"`
}

// Scored sums one shard's rewards.
type Scored struct {
	Done
	Trajectories int     `json:"trajectories"` // with a reward; means are over these trajectories
	RewardSum    float64 `json:"reward_sum"`
	Successes    int     `json:"successes"`
	// PositiveCalls and PositiveErrors count tool calls and tool errors of trajectories with a positive reward (spec
	// I5).
	PositiveCalls  int   `json:"positive_calls"`
	PositiveErrors int   `json:"positive_errors"`
	ToolCalls      int   `json:"tool_calls"`
	Tokens         int64 `json:"tokens"`
	// Compared counts imported rows that carry a verdict of their own, and Agreed those whose verdict equals ours.
	Agreed   int `json:"agreed"`
	Compared int `json:"compared"`
	// Excluded counts the shard's trajectories without a reward, wherever they were excluded.
	Excluded int `json:"excluded,omitempty"`
	// Edited names files of the user's reward function or environment that were edited since the run was prepared.
	Edited string `json:"edited,omitempty"`
	// Informative counts the groups whose rewards are not all equal, if the step samples in rounds.
	Informative int `json:"informative,omitempty"`
}
