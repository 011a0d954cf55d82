package recipes

import (
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/engines"
	"github.com/ropewalk/ropewalk/policy/servers"
	"github.com/ropewalk/ropewalk/policy/tinker"
	"github.com/ropewalk/ropewalk/rl/method"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/tool/mcp"
	"github.com/ropewalk/ropewalk/tool/tools"
)

// The struct tags form the table of fields. Package method documents most tags. This package adds the following ones:
//
//	name      the field's name, if the record has an older name; files may use both
//	single    "true": a list that may be written without brackets if it has one value
//	keys      the keys allowed in a mapping, separated by |
//	pattern   a regular expression for text
//	optional  "true": text that may be absent
//	own       the default of environments that have their own (see ownDefaults)
//	list      the names allowed, where a package declares them (see lists)
//	without   a field that excludes this one when it is set
//	spared    a field that allows this section to be absent when it is set, or FIELD=VALUE: when it has that value
//
// The tag only names environments or classes of environments (see environments.go).

// Recipe composes one run out of independent choices.
type Recipe struct {
	// Extends is here only for the table of fields. In a parsed recipe the inherited entries are in place, and Extends
	// is empty.
	Extends     []string    `json:"extends,omitempty" optional:"true" single:"true" doc:"recipes that come with the program, whose entries this one inherits (see above); absent = none. Such a recipe needs no more than name, and what differs"`
	Version     int         `json:"version" required:"true" enum:"1" doc:"version of this format"`
	Name        string      `json:"name" required:"true" pattern:"^[a-z0-9][a-z0-9._-]{0,62}$" doc:"name of the recipe, part of a run's id"`
	Description string      `json:"description" optional:"true" doc:"what the recipe is for"`
	Seed        uint64      `json:"seed" default:"1" min:"0" doc:"seed of every random draw of the run"`
	Steps       int         `json:"steps" required:"true" min:"1" max:"99999" only:"trained" doc:"reinforcement-learning steps"`
	Environment Environment `json:"environment" doc:"the task"`
	Engine      Engine      `json:"engine" only:"trained" doc:"what runs the models: a run takes one engine for all of its stages"`
	Policy      Policy      `json:"policy" only:"trained" doc:"the model that is trained: its shape when it is made here, or a published one"`
	Data        *Data       `json:"data" only:"listed" doc:"which training tasks are drawn; null or absent = all"`
	Tokenizer   *Tokenizer  `json:"tokenizer,omitzero" only:"trained" without:"policy.checkpoint" doc:"how the model that is made here splits texts; null or absent = every byte is a token, and so is every fixed string of the protocol and the environment"`
	WarmStart   WarmStart   `json:"warm_start" only:"demonstrated" spared:"policy.checkpoint" doc:"behaviour cloning on a script's demonstrations, before step 0"`
	Rollout     Rollout     `json:"rollout" only:"trained" doc:"how trajectories are sampled"`
	Sandbox     Sandbox     `json:"sandbox" only:"tooled" doc:"the limits of one tool call"`
	Layout      string      `json:"layout" default:"trajectory" only:"trained" quiet:"true" doc:"what one row of the loss is"`
	Reward      Reward      `json:"reward" doc:"what a trajectory is worth"`
	Judge       *Judge      `json:"judge" only:"trained" doc:"the language model that judges answers where the reward or the evaluation asks for it; null or absent = none"`
	Filters     Filters     `json:"filters" only:"trained" doc:"rows that are masked out of the loss; their rewards stay in their groups' statistics"`
	Resample    Resample    `json:"resample" doc:"which trajectories train the policy: dynamic sampling, then groups (reject_equal, low_variance, VSPO), then RoC inside the kept ones; absent keeps everything"`
	Advantage   Advantage   `json:"advantage" doc:"the advantage estimator"`
	Loss        Loss        `json:"loss" only:"trained" doc:"the policy loss and its terms"`
	Replay      *Replay     `json:"replay" only:"trained" doc:"SPEAR's self-imitation: a buffer of rows with positive advantages that are learnt from again; null or absent = off"`
	Schedule    *Schedule   `json:"schedule" only:"trained" doc:"what changes with the step; null or absent = nothing"`
	Optimizer   Optimizer   `json:"optimizer" only:"trained" doc:"the rule of the updates, and how a batch is cut for it"`
	Evaluation  Evaluation  `json:"evaluation" only:"trained" doc:"measurement on held-out problems, after the warm start and at the end"`
	Checkpoint  Checkpoint  `json:"checkpoint" only:"trained" doc:"which checkpoints outlive the next updates"`
	Pipeline    *Pipeline   `json:"pipeline,omitzero" only:"trained" doc:"rollouts of later steps run while a step updates (docs/pipelined.md); null or absent = each step's rollout waits for the update before it"`

	Record Record `json:"record" only:"trained" doc:"how the record is kept"`

	TokenOutputs *TokenOutputs `json:"token_outputs" only:"trained" doc:"what the record keeps of each kept token beyond what the method needs; null or absent = nothing"`
}

// Package method defines the parts of a recipe that make up its method.
type (
	// Advantage is method.Advantage.
	Advantage = method.Advantage
	// Loss is method.Loss.
	Loss = method.Loss
	// Resample is method.Resample.
	Resample = method.Resample
	// Filters is method.Filters.
	Filters = method.Filters
	// Reward is method.Reward.
	Reward = method.Reward
	// Replay is method.Replay.
	Replay = method.Replay
	// Schedule is method.Schedule.
	Schedule = method.Schedule
)

// Method returns the recipe's optimisation method.
func (r *Recipe) Method() method.Method {
	return method.Method{
		Layout: r.Layout, Advantage: r.Advantage, Loss: r.Loss, Resample: r.Resample, Filters: r.Filters,
		Reward: r.Reward, Replay: r.Replay, Schedule: r.Schedule,
	}
}

// Engine describes the engine that runs the policy, its reference and its critic. Recipes whose settings are deeply
// equal can share an engine.
type Engine struct {
	Kind             string `json:"kind" default:"auto" meant:"gpu=torch|cuda=torch|pytorch=torch|go=cpu" doc:"engine that runs the models; the choice of auto is committed when the run is prepared"`
	Devices          int    `json:"devices" default:"1" min:"1" max:"64" quiet:"true" doc:"processes that share each model, a GPU each where there are any; with two or more, models are sharded (FSDP)"`
	Hosts            int    `json:"hosts" default:"1" min:"1" max:"64" quiet:"true" doc:"hosts that share each model, \"devices\" processes on each; a worker of each of them polls gpu"`
	Dtype            string `json:"dtype" default:"auto" enum:"auto|float32|bfloat16" quiet:"true" doc:"numbers that the models compute in; weights and optimiser are kept in float32. auto is float32 on a CPU and bfloat16 on a GPU"`
	Deterministic    bool   `json:"deterministic" default:"true" quiet:"true" doc:"equal inputs give equal bytes, on the same machine and software"`
	Checkpointing    string `json:"checkpointing" default:"auto" enum:"auto|on|off" quiet:"true" doc:"activations are computed again in the backward pass in the place of being kept; auto does so on a GPU"`
	OffloadOptimizer bool   `json:"offload_optimizer" default:"false" quiet:"true" doc:"the optimiser's moments are kept in the host's memory"`
	// Servers generate in the place of the engine, which then trains alone; package policy/servers explains them.
	Servers []servers.Server `json:"servers" doc:"inference servers that generate for rollouts and evaluations, while the engine trains (docs/servers.md); absent = the engine generates"`
	// MaxMismatch bounds what stage logprobs finds.
	MaxMismatch float64 `json:"max_mismatch" default:"0" min:"0" max:"100" quiet:"true" doc:"how far the servers' log-probabilities may be from the trainer's, in nats per token on average over a shard's kept tokens; beyond it the run parks; 0 = no limit"`
	// Tinker is the server of engine.kind tinker; package policy/tinker explains it.
	Tinker *tinker.Server `json:"tinker,omitzero" doc:"the server of kind tinker, which holds the model and trains an adapter (docs/tinker.md)"`
	LoRA   *LoRA          `json:"lora,omitzero" doc:"after the warm start a low-rank adapter trains in the place of the policy, and another, with the value head, in that of the critic (docs/gpu.md); null or absent = all of a model trains"`
}

// LoRA is a low-rank adapter (Hu et al. 2021). It adds alpha/rank · B·A to each target projection W of each layer.
type LoRA struct {
	Rank    int      `json:"rank" default:"16" min:"1" max:"1024" doc:"rank of B·A"`
	Alpha   float64  `json:"alpha" default:"32" above:"0" max:"1000000" doc:"B·A is multiplied with alpha / rank"`
	Targets []string `json:"targets" default:"[q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj]" enum:"q_proj|k_proj|v_proj|o_proj|gate_proj|up_proj|down_proj" doc:"projections of a layer that have an adapter"`
}

// WithoutAdapter returns the recipe without its adapter, so that the whole model is trained.
func (r *Recipe) WithoutAdapter() *Recipe {
	if r.Engine.LoRA == nil {
		return r
	}
	whole := *r
	whole.Engine.LoRA = nil
	return &whole
}

// Declaration returns the declaration of the engine's kind.
func (e Engine) Declaration() engines.Kind { return engines.Named(e.Kind) }

// Policy describes the model. The shape fields apply only to a new model.
type Policy struct {
	Checkpoint string  `json:"checkpoint" optional:"true" doc:"a model to start from, which brings its own shape: an absolute path of a Hugging Face folder or a GGUF file, s3://BUCKET/KEY of either, hf://OWNER/NAME@REVISION, run:RUN@STEP (a run's last policy without @STEP), or a name in the worker's folder of models (docs/bring-your-own.md); absent = a new model of the shape below"`
	Token      string  `json:"token,omitempty" optional:"true" pattern:"^\\$\\{(env|file):[^${}]+\\}$" doc:"a reference to the token that hf:// is read with, such as ${env:MY_TOKEN}; absent = HF_TOKEN of the worker, or its login"`
	Pinned     *Pinned `json:"pinned,omitzero" doc:"the model as it was found when the run was prepared; a run that is prepared fills it in"`
	Layers     int     `json:"layers" default:"2" min:"1" max:"128" without:"policy.checkpoint" doc:"decoder layers"`
	Hidden     int     `json:"hidden" default:"128" min:"8" max:"16384" without:"policy.checkpoint" doc:"width of the residual stream"`
	Heads      int     `json:"heads" default:"4" min:"1" max:"256" without:"policy.checkpoint" doc:"query heads"`
	KVHeads    int     `json:"kv_heads" default:"2" min:"1" max:"256" without:"policy.checkpoint" doc:"key and value heads; divides heads"`
	HeadDim    int     `json:"head_dim" default:"32" min:"8" max:"512" without:"policy.checkpoint" doc:"width of one head; even (rotary pairs); other inference servers want ≥ 32"`
	FFN        int     `json:"ffn" default:"384" min:"8" max:"65536" without:"policy.checkpoint" doc:"width of the SwiGLU feed-forward layer"`
	RopeBase   float64 `json:"rope_base" default:"10000" min:"1" max:"100000000" without:"policy.checkpoint" doc:"base of the rotary embedding's wavelengths"`
	// MaxPositions bounds a whole trajectory, in tokens.
	MaxPositions int `json:"max_positions" default:"256" min:"8" max:"1048576" without:"policy.checkpoint" doc:"longest sequence, in tokens"`
}

// Pinned is what a run knows of the model at policy.checkpoint without reading it.
type Pinned struct {
	Inputs string `json:"inputs" required:"true" pattern:"^[0-9a-f]{64}$" doc:"the model in the store: warmstarts/INPUTS"`
	Digest string `json:"digest" required:"true" pattern:"^[0-9a-f]{64}$" doc:"digest of its checkpoint"`
	Source string `json:"source" optional:"true" doc:"the commit of a hub's model, or the policy of another run; absent = only the digest identifies it"`
	Config string `json:"config" required:"true" doc:"its config.json"`
	// Rewrites is false for a model without a chat template that protocol chat can use.
	Rewrites bool `json:"rewrites,omitempty" optional:"true" doc:"its chat template writes earlier turns differently once the results of calls follow"`
}

// Tokenizer is trained on texts of the environment before the warm start. It does not depend on the run's seed.
type Tokenizer struct {
	Kind       string `json:"kind" default:"bpe" enum:"bpe" doc:"bpe is a byte-level BPE, which merges bytes that often follow each other in a word"`
	Vocabulary int    `json:"vocabulary" default:"2048" min:"512" max:"65536" doc:"most tokens, the bytes and the protocol's fixed strings among them"`
	Texts      int    `json:"texts" default:"100" min:"1" max:"10000" doc:"training tasks whose texts it is trained on: episodes of the expert, or prompts with the documents that a search finds"`
}

// WarmStart is behaviour cloning on demonstrations that a script writes: a noisy teacher, or the expert of an
// interactive environment. Fields that were added later are left out of the warm start's key at their zero values.
type WarmStart struct {
	Levels    []int     `json:"levels" default:"[2, 3]" min:"2" max:"4" only:"calc" doc:"levels that are demonstrated"`
	Steps     int       `json:"steps" default:"300" min:"0" max:"1000000" doc:"optimiser steps; 0 starts from the random model"`
	Batch     int       `json:"batch" default:"64" min:"1" max:"65536" doc:"demonstrations in one optimiser step; turns of demonstrations where each prompt is whole"`
	Optimizer Optimizer `json:"optimizer" spared:"warm_start.steps=0" doc:"the rule of the cloning"`
	Teacher   Teacher   `json:"teacher" only:"calc" doc:"probability of each kind of fault in a demonstration; the rest is right"`
	Noise     float64   `json:"noise,omitempty" default:"0.1" min:"0" max:"1" only:"noised" doc:"probability that an action of the expert's is replaced by any that is admissible; where tasks are questions, that a demonstration has a fault"`
	// Demonstrations replace the script.
	Demonstrations *Demonstrations `json:"demonstrations,omitempty" doc:"demonstrations from a file or from another run instead of the script's, or of the form of calls alone; null or absent = the script's"`
}

// Teacher holds the probability of each kind of fault in a demonstration. The remaining demonstrations are correct.
type Teacher struct {
	BadCode      float64 `json:"bad_code" default:"0.2" min:"0" max:"1" doc:"code that does not parse or raises"`
	WrongOrder   float64 `json:"wrong_order" default:"0.2" min:"0" max:"1" doc:"operators or operands in the wrong order"`
	MissingPrint float64 `json:"missing_print" default:"0.1" min:"0" max:"1" doc:"the value is computed and not shown"`
	NoTool       float64 `json:"no_tool" default:"0.1" min:"0" max:"1" doc:"answers with a guess, without a call"`
	WrongCopy    float64 `json:"wrong_copy" default:"0.1" min:"0" max:"1" doc:"answers something else than the tool said"`
}

// Values of rollout.mode.
const (
	ModeInterleaved = "interleaved"
	ModeStaged      = "staged"
)

// Rollout describes how trajectories are sampled.
type Rollout struct {
	Mode          string `json:"mode" default:"interleaved" doc:"how generating and tools interleave; the rows and the policy do not depend on it. With engine.hosts above 1, shards are always staged"`
	Protocol      string `json:"protocol" optional:"true" doc:"the prompt format; absent = the environment's own"`
	System        string `json:"system,omitempty" optional:"true" doc:"the system message of rollout.protocol chat, before the environment's own instruction; absent = the environment's alone"`
	ToolFormat    string `json:"tool_format,omitempty" optional:"true" quiet:"true" doc:"the form in which the policy of rollout.protocol chat writes calls, by a name of docs/protocols.md; absent = the form that its chat template writes"`
	Tree          *Tree  `json:"tree,omitempty" only:"trained" doc:"the samples of a prompt are the leaves of a tree: some start in the middle of others, after the result of a tool or an action; null or absent = each starts at the prompt. Evaluations sample without a tree"`
	History       int    `json:"history" default:"0" min:"0" max:"1024" quiet:"true" doc:"latest turns that a prompt of layout turns holds after the task, in sampling and in learning; 0 = all. The warm start clones whole trajectories"`
	HistoryTokens int    `json:"history_tokens" default:"0" min:"0" max:"1048576" quiet:"true" doc:"tokens of the task and the earlier turns that a prompt of layout turns holds: the oldest turns leave, each as a whole, and the task stays; 0 = no limit. The turn's own context adds to them. With history, both limits apply"`
	// Summary makes the policy write summaries of its own turns; see rollout.History.
	Summary          *Summary `json:"summary,omitempty" only:"trained" doc:"summaries that the policy writes, each in a turn of its own that is sampled and trained like any other; null or absent = none. After one, prompts hold the task, the summary and the turns after it, and not the turns before. A summary calls no tool, does not act, and does not count towards max_turns. The scripts of the warm start write summaries too, of their latest actions or results; demonstrations from a file have none"`
	Prompts          int      `json:"prompts" required:"true" min:"1" max:"10000" doc:"prompts of one step"`
	SamplesPerPrompt int      `json:"oversample" name:"samples_per_prompt" required:"true" min:"1" max:"1000" doc:"trajectories sampled for each prompt, before resampling. The record and older recipes call it oversample"`
	Temperature      float64  `json:"temperature" default:"1" above:"0" max:"10" doc:"divides the logits; the loss uses the same"`
	TopP             float64  `json:"top_p" default:"0" min:"0" max:"1" only:"trained" quiet:"true" doc:"sample from the likeliest tokens of so much probability; 0 = from all"`
	TopK             int      `json:"top_k" default:"0" min:"0" max:"1048576" only:"trained" quiet:"true" doc:"sample from so many likeliest tokens; 0 = from all"`
	MinP             float64  `json:"min_p" default:"0" min:"0" max:"1" only:"trained" quiet:"true" doc:"sample from the tokens that have at least so many times the likeliest one's probability; 0 = from all"`
	MaxTurns         int      `json:"max_turns" default:"3" min:"1" max:"128" doc:"policy responses in one trajectory. The turns of a shard follow each other, so a step lasts as long as its longest trajectory; each turn adds two activities to a staged shard and, in layout turns, a row to the batch"`
	MaxTurnTokens    int      `json:"max_turn_tokens" default:"64" min:"1" max:"1048576" doc:"tokens of one response"`
	MaxTokens        int      `json:"max_tokens" default:"192" min:"1" max:"1048576" doc:"tokens of a row: a whole trajectory with prompt and tool responses, or in layout turns one turn with its prompt"`
	MaxToolTextBytes int      `json:"max_tool_text_bytes" default:"256" min:"1" max:"1048576" doc:"bytes of one tool response that the policy sees"`
	// The budgets of tool calls.
	MaxCalls                int `json:"max_calls" default:"0" min:"0" max:"100000" only:"calling" quiet:"true" doc:"tool calls that one trajectory can run; 0 = no limit. A call beyond it is not run, which the policy reads (status over_budget)"`
	MaxTurnCalls            int `json:"max_turn_calls" default:"0" min:"0" max:"10000" only:"calling" quiet:"true" doc:"tool calls that one response can run, likewise; 0 = no limit"`
	MaxEpisodeToolTextBytes int `json:"max_episode_tool_text_bytes" default:"0" min:"0" max:"1073741824" only:"calling" quiet:"true" doc:"bytes of all tool responses of one trajectory that the policy sees; 0 = no limit. The response that reaches it is cut, and later ones say only that the limit is reached"`

	ShardGroups int `json:"shard_groups" default:"8" min:"1" max:"65536" doc:"groups in one shard, the unit of a durable activity; prompts, if that is less"`
	// Tools names tools of package tool/tools; see ToolNames.
	Tools []string `json:"tools" default:"[python]" own:"tools" list:"tools" only:"calling" quiet:"true" doc:"tools that the policy can call; the default is the environment's own: search in search_qa, search and python in deep_research"`
	// MCP names the servers whose tools the policy can call too; package tool/mcp explains them.
	MCP []mcp.Server `json:"mcp" only:"calling" doc:"servers of the Model Context Protocol whose tools the policy can call too"`
}

// Summary says when the policy writes a summary, and how long it is.
type Summary struct {
	Every     int `json:"every" required:"true" min:"1" max:"127" doc:"turns after which the policy writes one, if the trajectory goes on"`
	MaxTokens int `json:"max_tokens" default:"64" min:"1" max:"1048576" doc:"tokens of one summary; one that is cut there stays as it is"`
}

// ToolNames returns the names of the tools that the policy can call. A recipe that was made without the field names
// none, and its policy can call python.
func (r Rollout) ToolNames() []string {
	if r.Tools == nil {
		return []string{tools.Python.Name}
	}
	return r.Tools
}

// Budgets are those of the recipe's tool calls.
func (r Rollout) Budgets() rollout.Budgets {
	return rollout.Budgets{Calls: r.MaxCalls, TurnCalls: r.MaxTurnCalls, ToolTextBytes: r.MaxEpisodeToolTextBytes}
}

// Truncation is what the rollout's sampling leaves of the policy's distribution.
func (r Rollout) Truncation() policy.Truncation {
	return policy.Truncation{TopK: r.TopK, TopP: r.TopP, MinP: r.MinP}
}

// History says which earlier turns the policy sees at a turn; see rollout.WindowAfter.
func (r *Recipe) History() rollout.History {
	h := rollout.History{Turns: r.Rollout.History, Tokens: r.Rollout.HistoryTokens}
	if r.Whole() {
		h = rollout.OwnContext
	}
	if s := r.Rollout.Summary; s != nil {
		h.Summary = s.Every
	}
	return h
}

// Sandbox bounds one tool call.
type Sandbox struct {
	CPUSeconds  float64 `json:"cpu_seconds" default:"1" above:"0" max:"3600" doc:"CPU time of one call, in seconds; decides endless loops (the kernel counts whole seconds, rounded up)"`
	WallSeconds float64 `json:"wall_seconds" default:"20" above:"0" max:"36000" doc:"wall-clock time of one call, in seconds; ≥ 10 × cpu_seconds, so that no verdict depends on load"`
	MemoryMB    int     `json:"memory_mb" default:"256" min:"16" max:"1048576" doc:"address space of one call, in MiB"`
	OutputKB    int     `json:"output_kb" default:"64" min:"1" max:"65536" doc:"standard output, and standard error, of one call, in KiB each"`
	Session     bool    `json:"session" default:"false" only:"trained" quiet:"true" doc:"variables live on from call to call as in a notebook: one interpreter for each trajectory, whose calls are its cells; cpu_seconds, wall_seconds and output_kb bound each of them, memory_mb all together. Demonstrations of the warm start run each call by itself"`
	ExactCarets bool    `json:"exact_carets" default:"false" only:"trained" quiet:"true" doc:"the carets of a traceback are under the code that they mean also where a program's last line has no end; otherwise they are a column too far to the right there, as Python 3.11 puts them and as the results of published recipes were made. Demonstrations of the warm start are as before"`
	MinTier     string  `json:"min_tier" default:"full" enum:"full|landlock|rlimits" quiet:"true" doc:"the weakest isolation that the run accepts (docs/sandbox.md); a machine that grants less is refused"`
}

// Optimizer holds the settings of an optimiser and of how a batch is split.
type Optimizer struct {
	Name        string  `json:"name" default:"adamw" quiet:"true" doc:"rule by which a step changes the weights"`
	LR          float64 `json:"lr" required:"true" above:"0" max:"10" doc:"learning rate after the warm-up"`
	WarmupSteps int     `json:"warmup_steps" default:"0" min:"0" max:"1000000" doc:"optimiser steps of linear warm-up"`
	Decay       string  `json:"decay" default:"constant" list:"decays" doc:"how the learning rate decays after the warm-up"`
	// Params are the settings of the rule.
	Params method.Params `json:"-" params:"optimizer.name"`
	// ClipNorm bounds the gradient, whatever the rule.
	ClipNorm         float64 `json:"clip_norm" default:"1" min:"0" max:"1000000" doc:"bound on the gradient's global L2 norm; 0 = off"`
	Minibatches      int     `json:"minibatches" default:"1" min:"1" max:"65536" doc:"optimiser steps on one batch"`
	MinibatchRows    int     `json:"minibatch_rows" default:"0" min:"0" max:"16777216" quiet:"true" doc:"rows of one optimiser step, in the place of minibatches; 0 = minibatches says"`
	MinibatchPrompts int     `json:"minibatch_prompts" default:"0" min:"0" max:"65536" quiet:"true" doc:"prompts of one optimiser step, each with the rows that are kept of it: rollout.samples_per_prompt, or resample.roc.keep; in the place of minibatches and minibatch_rows, as verl counts; 0 = they say"`
	Epochs           int     `json:"epochs" default:"1" min:"1" max:"1000" doc:"passes over one batch"`
	MicrobatchTokens int     `json:"microbatch_tokens" default:"4096" min:"1" max:"16777216" doc:"tokens of one forward and backward pass; bounds memory, changes no result but rounding"`
	SharePrefixes    bool    `json:"share_prefixes" default:"false" quiet:"true" doc:"an update computes a prompt once for the rows of a forward pass that begin with it, on the CPU engine; changes no result but rounding"`
}

// Evaluation describes the measurement on held-out problems.
type Evaluation struct {
	Problems    int     `json:"problems" default:"513" min:"1" max:"1000000" doc:"held-out problems, all that there are if these are fewer; in calc a third of each level"`
	Samples     int     `json:"samples" default:"4" min:"1" max:"1024" doc:"samples of each problem"`
	Temperature float64 `json:"temperature" default:"1" above:"0" max:"10" doc:"divides the logits of the samples"`
	TopP        float64 `json:"top_p" default:"0" min:"0" max:"1" quiet:"true" doc:"the samples come from the likeliest tokens of so much probability; 0 = from all"`
	TopK        int     `json:"top_k" default:"0" min:"0" max:"1048576" quiet:"true" doc:"the samples come from so many likeliest tokens; 0 = from all"`
	MinP        float64 `json:"min_p" default:"0" min:"0" max:"1" quiet:"true" doc:"the samples come from the tokens that have at least so many times the likeliest one's probability; 0 = from all"`
	Greedy      bool    `json:"greedy" default:"true" doc:"also decode each problem once greedily"`
	Judged      bool    `json:"judged" default:"false" quiet:"true" doc:"also ask the judge whether each final answer means the same as the correct one (PRS App. B); the share of matches is the metric judged; needs judge"`
	// Every evaluates after every Nth step too; 0 = evaluate only the warm start and the end.
	Every int `json:"every" default:"0" min:"0" max:"1000000" doc:"evaluate after each so many steps as well; 0 = only the warm start and the end"`
	// ShardProblems divides an evaluation of its own.
	ShardProblems int     `json:"shard_problems" default:"0" min:"0" max:"1000000" quiet:"true" doc:"problems that one activity of ropewalk evaluate measures, and that a killed worker loses at most; 0 = as many as make about 256 episodes"`
	Debate        *Debate `json:"debate,omitempty" doc:"agents debate each answer, or each action (ARLArena App. E); null or absent = each sample is one agent's"`
}

// Sizes of the shards of an evaluation. A killed worker loses at most the shards that it runs, and a shard fills an
// engine's batch.
const (
	shardEpisodes = 256
	mostShards    = 1000 // so that the history of the workflow stays small
)

// PerShard is how many problems a shard of an evaluation of its own has.
func (e Evaluation) PerShard() int {
	n := e.ShardProblems
	if n == 0 {
		n = max(1, shardEpisodes/(e.Samples*e.Debate.Responses()))
	}
	return max(n, (e.Problems+mostShards-1)/mostShards)
}

// Debate describes a debate between agents of one policy.
type Debate struct {
	Agents     int  `json:"agents" default:"3" min:"1" max:"99" doc:"agents; an odd number"`
	Rounds     int  `json:"rounds" default:"3" min:"0" max:"16" doc:"most rounds after the first one, in which the agents know the candidates of the round before"`
	Aggressive bool `json:"aggressive" default:"false" doc:"agents are told to finish early and to take a partial result"`
}

// Responses is how many responses a debate takes at most; 1 without a debate.
func (d *Debate) Responses() int {
	if d == nil {
		return 1
	}
	return d.Agents * (d.Rounds + 1)
}

// Truncation is what the sampling of an evaluation leaves of the policy's distribution.
func (e Evaluation) Truncation() policy.Truncation {
	return policy.Truncation{TopK: e.TopK, TopP: e.TopP, MinP: e.MinP}
}

// Record describes how the record is kept.
type Record struct {
	Compact bool `json:"compact" default:"false" quiet:"true" doc:"merge copies of each step's small files into one per table, alongside the next step: a long run is read faster, and takes more room"`
}

// Checkpoint describes which checkpoints are kept.
type Checkpoint struct {
	Every    int `json:"every" default:"20" min:"0" max:"1000000" doc:"keep every Nth step's checkpoint for good; 0 = none"`
	KeepLast int `json:"keep_last" default:"3" min:"1" max:"1000000" doc:"newest checkpoints kept; resuming needs one"`
	KeepBest int `json:"keep_best" default:"1" min:"0" max:"1000000" doc:"best checkpoints kept, by the success rate of the step sampled from them"`
}
