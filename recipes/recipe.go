package recipes

// The struct tags are the table of fields:
//
//	json      the YAML name
//	doc       what it is, with its unit
//	default   the value when absent, as YAML
//	required  "true": there is no default
//	min, max  inclusive limits; of each element for a list or mapping
//	above     exclusive lower limit
//	enum      the names allowed, separated by |
//	keys      the keys allowed in a mapping, separated by |
//	pattern   a regular expression for text
//	only      the environments that the field belongs to, separated by |; others refuse it

// Recipe composes one run out of independent choices.
type Recipe struct {
	Version     int         `json:"version" required:"true" enum:"1" doc:"version of this format"`
	Name        string      `json:"name" required:"true" pattern:"^[a-z0-9][a-z0-9._-]{0,62}$" doc:"name of the recipe, part of a run's id"`
	Description string      `json:"description,omitempty" doc:"what the recipe is for"`
	Seed        uint64      `json:"seed" default:"1" min:"0" doc:"seed of every random draw of the run"`
	Steps       int         `json:"steps,omitzero" required:"true" min:"1" max:"1000000" only:"calc" doc:"reinforcement-learning steps"`
	Environment Environment `json:"environment" doc:"the task"`
	Policy      Policy      `json:"policy,omitzero" only:"calc" doc:"the model that is trained: its shape when it is made here"`
	WarmStart   WarmStart   `json:"warm_start,omitzero" only:"calc" doc:"behaviour cloning on a scripted teacher's demonstrations, before step 0"`
	Rollout     Rollout     `json:"rollout,omitzero" only:"calc" doc:"how trajectories are sampled"`
	Sandbox     Sandbox     `json:"sandbox,omitzero" only:"calc|gsm8k-solutions" doc:"the limits of one tool call"`
	Reward      Reward      `json:"reward" doc:"the outcome reward"`
	Resample    Resample    `json:"resample,omitzero" doc:"which trajectories train the policy: VSPO over the groups, then RoC inside the kept ones; absent keeps everything"`
	Advantage   Advantage   `json:"advantage" doc:"the advantage estimator"`
	Loss        Loss        `json:"loss,omitzero" only:"calc" doc:"the policy loss"`
	Optimizer   Optimizer   `json:"optimizer,omitzero" only:"calc" doc:"AdamW, and how a batch is cut for it"`
	Evaluation  Evaluation  `json:"evaluation,omitzero" only:"calc" doc:"measurement on held-out problems, after the warm start and at the end"`
	Checkpoint  Checkpoint  `json:"checkpoint,omitzero" only:"calc" doc:"which checkpoints outlive the next updates"`

	Update       *Update          `json:"update,omitempty" only:"calc" doc:"what an update takes its batch for; null or absent = the rollout's log-probabilities, cut as optimizer says"`
	Reference    *ReferencePolicy `json:"reference,omitempty" only:"calc" doc:"the policy that a KL penalty holds on to; null or absent = the run's first one, after the warm start"`
	Replay       *Replay          `json:"replay,omitempty" only:"calc" doc:"SPEAR's self-imitation: a buffer of trajectories that were better than their groups, which are learnt from again; null or absent = off"`
	TokenOutputs *TokenOutputs    `json:"token_outputs,omitempty" only:"calc" doc:"what the record keeps of each kept token beyond what the method needs; null or absent = nothing"`
}

// The environments.
const (
	Calc           = "calc"
	GSM8KSolutions = "gsm8k-solutions"
	OpenAI         = "openai"

	// RStar2Outcome, MathAnswer and Reference are the rewards: of sampled text, of an imported final
	// answer, and the one that an imported conversation's source gave.
	RStar2Outcome = "rstar2_outcome"
	MathAnswer    = "math_answer"
	Reference     = "reference"
)

// GSM8KGroup is the number of trajectories of each group of GSM8KSolutions: four systems
// answered each question.
const GSM8KGroup = 4

// Environment chooses the task.
type Environment struct {
	Name string `json:"name" required:"true" enum:"calc|gsm8k-solutions|openai" doc:"calc: generated integer arithmetic with a Python tool; gsm8k-solutions: imported solutions of GSM8K questions, four a group; openai: imported conversations in OpenAI's chat format, the trials of a task a group"`
	// LevelShares is the share of each level among training prompts; key = number of operands.
	LevelShares map[string]float64 `json:"level_shares,omitempty" default:"{'2': 0.3, '3': 0.4, '4': 0.3}" min:"0" max:"1" keys:"2|3|4" only:"calc" doc:"share of each level (number of operands) among training prompts"`
}

// Imported reports whether the environment's trajectories come from elsewhere.
func (e Environment) Imported() bool { return e.Name == GSM8KSolutions || e.Name == OpenAI }

// Policy is the model: its shape when made here.
type Policy struct {
	Engine   string  `json:"engine" default:"cpu" enum:"cpu" doc:"engine that runs the model"`
	Layers   int     `json:"layers" default:"2" min:"1" max:"128" doc:"decoder layers"`
	Hidden   int     `json:"hidden" default:"128" min:"8" max:"16384" doc:"width of the residual stream"`
	Heads    int     `json:"heads" default:"4" min:"1" max:"256" doc:"query heads"`
	KVHeads  int     `json:"kv_heads" default:"2" min:"1" max:"256" doc:"key and value heads; divides heads"`
	HeadDim  int     `json:"head_dim" default:"32" min:"8" max:"512" doc:"width of one head; even (rotary pairs); other inference servers want ≥ 32"`
	FFN      int     `json:"ffn" default:"384" min:"8" max:"65536" doc:"width of the SwiGLU feed-forward layer"`
	RopeBase float64 `json:"rope_base" default:"10000" min:"1" max:"100000000" doc:"base of the rotary embedding's wavelengths"`
	// MaxPositions bounds a whole trajectory in tokens.
	MaxPositions int `json:"max_positions" default:"256" min:"8" max:"1048576" doc:"longest sequence, in tokens"`
}

// WarmStart is behaviour cloning on a scripted teacher's demonstrations.
type WarmStart struct {
	Levels    []int     `json:"levels" default:"[2, 3]" min:"2" max:"4" doc:"levels that are demonstrated"`
	Steps     int       `json:"steps" default:"300" min:"0" max:"1000000" doc:"optimiser steps; 0 starts from the random model"`
	Batch     int       `json:"batch" default:"64" min:"1" max:"65536" doc:"demonstrations in one optimiser step"`
	Optimizer Optimizer `json:"optimizer" doc:"AdamW of the cloning"`
	Teacher   Teacher   `json:"teacher" doc:"probability of each kind of fault in a demonstration; the rest is right"`
}

// Teacher holds the probability of each kind of noise in a demonstration; the rest is right.
type Teacher struct {
	BadCode      float64 `json:"bad_code" default:"0.2" min:"0" max:"1" doc:"code that does not parse or raises"`
	WrongOrder   float64 `json:"wrong_order" default:"0.2" min:"0" max:"1" doc:"operators or operands in the wrong order"`
	MissingPrint float64 `json:"missing_print" default:"0.1" min:"0" max:"1" doc:"the value is computed and not shown"`
	NoTool       float64 `json:"no_tool" default:"0.1" min:"0" max:"1" doc:"answers with a guess, without a call"`
	WrongCopy    float64 `json:"wrong_copy" default:"0.1" min:"0" max:"1" doc:"answers something else than the tool said"`
}

// Rollout says how trajectories are sampled.
type Rollout struct {
	Mode             string  `json:"mode" default:"staged" enum:"staged" doc:"staged: generating a turn and running its calls alternate as durable activities"`
	Prompts          int     `json:"prompts" required:"true" min:"1" max:"65536" doc:"prompts of one step"`
	Oversample       int     `json:"oversample" required:"true" min:"1" max:"1024" doc:"trajectories sampled for each prompt, before resampling"`
	Temperature      float64 `json:"temperature" default:"1" above:"0" max:"10" doc:"divides the logits; the loss uses the same"`
	MaxTurns         int     `json:"max_turns" default:"3" min:"1" max:"64" doc:"policy responses in one trajectory"`
	MaxTurnTokens    int     `json:"max_turn_tokens" default:"64" min:"1" max:"1048576" doc:"tokens of one response"`
	MaxTokens        int     `json:"max_tokens" default:"192" min:"1" max:"1048576" doc:"tokens of a whole trajectory, prompt and tool responses included"`
	MaxToolTextBytes int     `json:"max_tool_text_bytes" default:"256" min:"1" max:"1048576" doc:"bytes of one tool response that the policy sees"`
	ShardGroups      int     `json:"shard_groups" default:"8" min:"1" max:"65536" doc:"groups in one shard, the unit of a durable activity"`
}

// Sandbox bounds one call.
type Sandbox struct {
	CPUSeconds  float64 `json:"cpu_seconds" default:"1" above:"0" max:"3600" doc:"CPU time of one call, in seconds; decides endless loops (the kernel counts whole seconds, rounded up)"`
	WallSeconds float64 `json:"wall_seconds" default:"20" above:"0" max:"36000" doc:"wall-clock time of one call, in seconds; ≥ 10 × cpu_seconds, so that no verdict depends on load"`
	MemoryMB    int     `json:"memory_mb" default:"256" min:"16" max:"1048576" doc:"address space of one call, in MiB"`
	OutputKB    int     `json:"output_kb" default:"64" min:"1" max:"65536" doc:"standard output, and standard error, of one call, in KiB each"`
}

// Reward chooses the outcome reward.
type Reward struct {
	Name string `json:"name" required:"true" enum:"rstar2_outcome|math_answer|reference" doc:"rstar2_outcome: 1 if the box inside <answer> equals the gold answer, else 0; math_answer: the same comparison on an imported solution's final answer; reference: the number that an imported conversation's source gave it"`
	// Fallback grades the whole text when there is no <answer> (as rStar2's released code does).
	Fallback bool `json:"fallback,omitempty" default:"false" only:"calc" doc:"grade the last box of the whole text when there is no <answer>"`
}

// Resample is the chain VSPO → RoC.
type Resample struct {
	RoC  *RoC  `json:"roc,omitempty" doc:"Resample-on-Correct: keep cleaner positives and some negatives of each group; null or absent = off"`
	VSPO *VSPO `json:"vspo,omitempty" doc:"variance-based resampling: groups without variance give their place to informative ones; null or absent = off"`
}

// RoC is Resample-on-Correct.
type RoC struct {
	Keep        int    `json:"keep" required:"true" min:"1" max:"1024" doc:"trajectories kept of each group"`
	Counts      string `json:"counts" default:"paper" enum:"paper|release" doc:"how many negatives: half of them (paper), or in proportion (release)"`
	Select      string `json:"select" default:"weighted" enum:"weighted|lowest" doc:"positives: drawn with weight 1/penalty (weighted), or the lowest penalties first (lowest)"`
	MinPositive int    `json:"min_positive" default:"2" min:"0" max:"1024" doc:"positives kept at least, where there are so many"`
	MinNegative int    `json:"min_negative" default:"2" min:"0" max:"1024" doc:"negatives kept at least, where there are so many"`
}

// VSPO is variance-based resampling with smoothing.
type VSPO struct {
	Alpha       float64 `json:"alpha" default:"2" min:"1" max:"1000" doc:"smoothing: the weight of a group taken N times is α − (α − 1)/N"`
	Temperature float64 `json:"temperature" default:"0.1" above:"0" max:"1000" doc:"of the softmax over value scores that places are drawn from"`
	MinVariance float64 `json:"min_variance" default:"1e-6" above:"0" max:"1000000" doc:"a group whose reward variance (population) is smaller is dropped"`
}

// Advantage chooses the estimator.
type Advantage struct {
	Name        string `json:"name" required:"true" enum:"grpo" doc:"grpo: reward minus the group's mean"`
	Std         bool   `json:"std" default:"true" doc:"divide by the group's sample standard deviation"`
	SingleGroup string `json:"single_group" default:"raw" enum:"raw|zero" doc:"advantage in a group of one: its reward (raw) or 0 (zero)"`
}

// Loss chooses the policy loss.
type Loss struct {
	Name        string  `json:"name" required:"true" enum:"ppo_clip" doc:"ppo_clip: the clipped surrogate of PPO"`
	ClipLow     float64 `json:"clip_low" default:"0.2" above:"0" max:"1" doc:"the importance ratio is clipped below 1 − clip_low"`
	ClipHigh    float64 `json:"clip_high" default:"0.28" above:"0" max:"100" doc:"the importance ratio is clipped above 1 + clip_high"`
	DualClip    float64 `json:"dual_clip" default:"0" min:"0" max:"1000" doc:"bound on the ratio for negative advantages, > 1; 0 = off"`
	Aggregation string  `json:"aggregation" default:"token-mean" enum:"token-mean|seq-mean-token-mean|seq-mean-token-sum|seq-mean-token-sum-norm" doc:"how per-token losses become one number"`
	KL          *KLLoss `json:"kl,omitempty" doc:"penalty on the divergence from the reference policy, added to the loss; null or absent = off"`
	Entropy     float64 `json:"entropy,omitempty" default:"0" min:"0" max:"1000" doc:"coefficient of the policy's entropy, which the loss takes off; 0 = off"`
	TISCap      float64 `json:"tis_cap,omitempty" default:"0" min:"0" max:"1000000" doc:"truncated importance sampling: a token's loss is weighted by min(old / rollout probability, tis_cap); 0 = off"`
}

// KLLoss is a penalty on the divergence from the reference policy.
type KLLoss struct {
	Estimator   string  `json:"estimator" default:"k3" enum:"k1|abs|k2|k3|k3+" doc:"per-token estimate: k1, abs, k2, k3, or the value of k3 with the gradient of k2 (k3+)"`
	Coefficient float64 `json:"coefficient" required:"true" min:"0" max:"1000" doc:"weight in the loss; 0 only records the divergence"`
}

// The sources of the log-probabilities that an importance ratio divides by.
const (
	OldFromRollout = "rollout"
	OldRecomputed  = "recompute"
)

// Update says what an update takes its batch for.
type Update struct {
	OldLogProbs   string `json:"old_log_probs" default:"rollout" enum:"rollout|recompute" doc:"log-probabilities before the update: the rollout's, or recomputed by the trainer's engine before the step's first update"`
	MinibatchRows int    `json:"minibatch_rows" default:"0" min:"0" max:"16777216" doc:"trajectories of one mini-batch; 0 = the batch is cut into optimizer.minibatches"`
}

// ReferencePolicy is the policy that a KL penalty holds on to.
type ReferencePolicy struct {
	RefreshEvery int `json:"refresh_every" default:"0" min:"0" max:"1000000" doc:"after each so many steps the policy becomes the reference; 0 = the run's first policy throughout"`
}

// TokenOutputs asks for per-token outputs that the method itself does not need.
type TokenOutputs struct {
	Entropies bool `json:"entropies" default:"false" doc:"entropies under the policy before the update"`
	Reference bool `json:"reference" default:"false" doc:"log-probabilities under the reference policy"`
}

// Optimizer is AdamW and how a batch is cut for it.
type Optimizer struct {
	LR               float64 `json:"lr" required:"true" above:"0" max:"10" doc:"learning rate after the warm-up"`
	WarmupSteps      int     `json:"warmup_steps" default:"0" min:"0" max:"1000000" doc:"optimiser steps of linear warm-up"`
	Decay            string  `json:"decay" default:"constant" enum:"constant|cosine|linear" doc:"learning rate after the warm-up: constant, or down to 0 at the last optimiser step"`
	Beta1            float64 `json:"beta1" default:"0.9" min:"0" max:"0.999999" doc:"decay of the gradient's mean"`
	Beta2            float64 `json:"beta2" default:"0.95" min:"0" max:"0.999999" doc:"decay of the gradient's square"`
	Epsilon          float64 `json:"epsilon" default:"1e-8" above:"0" max:"1" doc:"added to the root of the second moment"`
	WeightDecay      float64 `json:"weight_decay" default:"0" min:"0" max:"10" doc:"decoupled weight decay"`
	ClipNorm         float64 `json:"clip_norm" default:"1" min:"0" max:"1000000" doc:"bound on the gradient's global L2 norm; 0 = off"`
	Minibatches      int     `json:"minibatches" default:"1" min:"1" max:"65536" doc:"optimiser steps on one batch"`
	Epochs           int     `json:"epochs" default:"1" min:"1" max:"1000" doc:"passes over one batch"`
	MicrobatchTokens int     `json:"microbatch_tokens" default:"4096" min:"1" max:"16777216" doc:"tokens of one forward and backward pass; bounds memory, changes no result but rounding"`
}

// Evaluation measures on held-out problems.
type Evaluation struct {
	Problems    int     `json:"problems" default:"513" min:"1" max:"1000000" doc:"held-out problems, a third of each level"`
	Samples     int     `json:"samples" default:"4" min:"1" max:"1024" doc:"samples of each problem"`
	Temperature float64 `json:"temperature" default:"1" above:"0" max:"10" doc:"divides the logits of the samples"`
	Greedy      bool    `json:"greedy" default:"true" doc:"also decode each problem once greedily"`
	// Every evaluates after each Every-th step as well; 0 = only the warm start and the end.
	Every int `json:"every" default:"0" min:"0" max:"1000000" doc:"evaluate after each so many steps as well; 0 = only the warm start and the end"`
}

// Checkpoint says which checkpoints outlive the next updates.
type Checkpoint struct {
	Every    int `json:"every" default:"20" min:"0" max:"1000000" doc:"each so-many-th step's checkpoint is kept for good; 0 = none"`
	KeepLast int `json:"keep_last" default:"3" min:"1" max:"1000000" doc:"newest checkpoints kept; resuming needs one"`
	KeepBest int `json:"keep_best" default:"1" min:"0" max:"1000000" doc:"best checkpoints kept, by the success rate of the step sampled from them"`
}
