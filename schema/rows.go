package schema

// The rows of the record's tables. Every table's rows are sorted by group, then trajectory,
// then turn, then call. List columns are annotated lists with non-null elements. Optional
// columns are pointers or slices whose nil means null; the nil of any other list is the empty
// list. No row holds a run id, generation, host, path or time (timings alone holds times).
//
// A trajectory that something other than its policy broke is *excluded*: the column excluded says
// why, in one line, where it happened (the turn that got no response, the call that got no
// verdict), in trajectories from then on, and in selection. It has no row in rewards: it is never
// worth 0.
//
// In the tags, dict asks for a dictionary (few distinct values, or ids that repeat), split for
// byte-stream-split (floats only).

// PromptRow is one prompt of a step (table prompts).
type PromptRow struct {
	GroupID    string `parquet:"group_id"`
	ProblemID  string `parquet:"problem_id"`
	Level      int32  `parquet:"level"`
	Problem    string `parquet:"problem"`
	Answer     string `parquet:"answer,dict"`
	Expression string `parquet:"expression"`
	// TokenIDs is the whole first prefix; of an imported group, what its trajectories' prefixes share.
	TokenIDs []int32 `parquet:"token_ids,list" parquet-element:",dict"`
}

// TurnRow is one turn (table turns): its context (the prompt at turn 0, the rendered tool
// responses later) followed by the response. The token lists are equally long. The turn at which
// the engine broke has a context alone.
type TurnRow struct {
	GroupID       string    `parquet:"group_id,dict"`
	TrajectoryID  string    `parquet:"trajectory_id"`
	Turn          int32     `parquet:"turn"`
	ContextTokens int32     `parquet:"context_tokens"` // how many of token_ids are context
	TokenIDs      []int32   `parquet:"token_ids,list" parquet-element:",dict"`
	LossMask      []int32   `parquet:"loss_mask,list" parquet-element:",dict"`           // 1 for tokens the policy produced
	LogProbs      []float32 `parquet:"logprobs,list,optional" parquet-element:",split"`  // 0 for context; null for imported rows
	Entropies     []float32 `parquet:"entropies,list,optional" parquet-element:",split"` // nats; 0 for context; null for imported rows
	Observation   string    `parquet:"observation"`                                      // text of the context (tool responses); "" at turn 0, but for what only this trajectory was asked
	Response      string    `parquet:"response"`                                         // text of the response
	Finish        string    `parquet:"finish,dict"`                                      // stop | length; "" where excluded
	ToolCalls     int32     `parquet:"tool_calls"`                                       // calls in the response, parsed or not
	Answered      bool      `parquet:"answered"`
	AnchorHash    string    `parquet:"anchor_hash,dict"`    // hash of what the policy saw before this turn
	PolicyVersion string    `parquet:"policy_version,dict"` // checkpoint digest that produced the response; "" for imported rows
	Excluded      *string   `parquet:"excluded,optional"`   // why there is no response; null where there is one
	// What the response is as its protocol reads it; null of imported rows and before schema version 3.
	ParsedCalls *int32 `parquet:"parsed_calls,optional"` // calls that could be read
	Wrapped     *bool  `parquet:"wrapped,optional"`      // nothing stands outside the protocol's tags
}

// Valid reports whether a turn acts: a call of it could be read, or it closes an answer. known is
// false of rows that do not say.
func (r TurnRow) Valid() (valid, known bool) {
	if r.ParsedCalls == nil {
		return false, false
	}
	return *r.ParsedCalls > 0 || r.Answered, true
}

// ToolCallRow is one tool call and its result (table tool_calls).
type ToolCallRow struct {
	GroupID      string  `parquet:"group_id,dict"`
	TrajectoryID string  `parquet:"trajectory_id"`
	Turn         int32   `parquet:"turn"`
	Call         int32   `parquet:"call"`
	Name         string  `parquet:"name,dict"`
	Arguments    string  `parquet:"arguments"`
	Code         string  `parquet:"code"`
	Stdin        string  `parquet:"stdin"`
	Status       string  `parquet:"status,dict"` // a sandbox status, an env.CallError, or of a recorded call ok, tool_error or no_response; "" where excluded
	ExitCode     int32   `parquet:"exit_code"`
	Stdout       string  `parquet:"stdout"`
	Stderr       string  `parquet:"stderr"`
	Value        string  `parquet:"value"`
	Response     string  `parquet:"response"`          // the body of the tool response the policy sees
	Excluded     *string `parquet:"excluded,optional"` // why there is no verdict; null where there is one
}

// TrajectoryRow is one episode (table trajectories).
type TrajectoryRow struct {
	GroupID        string  `parquet:"group_id,dict"`
	TrajectoryID   string  `parquet:"trajectory_id"`
	ProblemID      string  `parquet:"problem_id,dict"`
	Level          int32   `parquet:"level"`
	Source         string  `parquet:"source,dict"` // rollout, or the importer's name and system
	Turns          int32   `parquet:"turns"`
	ToolCalls      int32   `parquet:"tool_calls"`
	ToolErrors     int32   `parquet:"tool_errors"`
	AnswerTags     int32   `parquet:"answer_tags"` // closed <answer> pairs over all turns
	Tokens         int32   `parquet:"tokens"`
	ResponseTokens int32   `parquet:"response_tokens"`
	Finish         string  `parquet:"finish,dict"` // answered | no_action | max_turns | length | tool_calls (an imported one ended after calls) | excluded
	FinalAnswer    string  `parquet:"final_answer,dict"`
	HasAnswer      bool    `parquet:"has_answer"`
	Gold           string  `parquet:"gold,dict"`
	PolicyVersion  string  `parquet:"policy_version,dict"`
	Text           string  `parquet:"text"`               // every response, concatenated with observations, as graded
	Reference      *bool   `parquet:"reference,optional"` // the verdict of an imported row's source; null for rollouts
	Excluded       *string `parquet:"excluded,optional"`  // what broke; null for a whole trajectory
	// What an imported conversation's source said, null for all others: its reward, its messages as
	// they were (a JSON list), and the other fields beside them (a JSON object).
	SourceReward *float64 `parquet:"source_reward,optional,split"`
	Messages     *string  `parquet:"messages,optional"`
	Item         *string  `parquet:"item,optional"`
	// Facts that rewards and filters read; null of imported rows and before schema version 3.
	BegunCalls     *int32 `parquet:"begun_calls,optional"`     // call blocks written, run or not
	ParsedCalls    *int32 `parquet:"parsed_calls,optional"`    // those that could be read
	ToolTurns      *int32 `parquet:"tool_turns,optional"`      // turns with a call that could be read
	MalformedTurns *int32 `parquet:"malformed_turns,optional"` // turns with text outside the protocol's tags
	VoidTurns      *int32 `parquet:"void_turns,optional"`      // turns with neither a call that could be read nor a closed answer
}

// The verdicts of symbolic grading.
const (
	GradingEqual      = "equal"
	GradingDifferent  = "different"
	GradingUnreadable = "unreadable" // one of the two is no expression, which is no agreement
)

// GradingRow is the symbolic comparison of one trajectory's answer with its gold (table gradings), where
// the recipe asks for it and strings and values alone did not agree. Other trajectories have none.
type GradingRow struct {
	GroupID      string  `parquet:"group_id,dict"`
	TrajectoryID string  `parquet:"trajectory_id"`
	Answer       string  `parquet:"answer,dict"` // as it was graded
	Gold         string  `parquet:"gold,dict"`
	Verdict      string  `parquet:"verdict,dict"`      // equal | different | unreadable; "" where excluded
	Grader       string  `parquet:"grader,dict"`       // what compared them, as it names itself: sympy 1.14.0; "" where excluded
	Excluded     *string `parquet:"excluded,optional"` // why there is no verdict; null where there is one
}

// RewardRow is one trajectory's reward (table rewards). An excluded trajectory has none.
type RewardRow struct {
	GroupID       string  `parquet:"group_id,dict"`
	TrajectoryID  string  `parquet:"trajectory_id"`
	Level         int32   `parquet:"level"`
	Reward        float64 `parquet:"reward,split"`
	Outcome       float64 `parquet:"outcome,split"`
	Success       bool    `parquet:"success"`
	Turns         int32   `parquet:"turns"`
	ToolCalls     int32   `parquet:"tool_calls"`
	ToolErrors    int32   `parquet:"tool_errors"`
	AnswerTags    int32   `parquet:"answer_tags"`
	ErrorPenalty  float64 `parquet:"error_penalty,split"`  // RoC p_err
	FormatPenalty float64 `parquet:"format_penalty,split"` // RoC p_format
	Verdict       string  `parquet:"verdict,dict"`         // how the answer compared: exact, rational, symbolic, wrong, no_answer …
	Reference     *bool   `parquet:"reference,optional"`   // the source's own verdict for imported rows
}

// SelectionRow says for one trajectory whether it was kept, how often, and why not (table
// selection). Every trajectory sampled has one, those of skipped shards too. The reward stage
// commits rows of this table for the trajectories without a reward; resample's rows hold them all.
// The group's statistics are those of its rewards; 0 where it has none.
type SelectionRow struct {
	GroupID       string  `parquet:"group_id,dict"`
	TrajectoryID  string  `parquet:"trajectory_id"`
	Kept          bool    `parquet:"kept"`
	Count         int32   `parquet:"count"`        // N_x of VSPO; 0 when dropped
	Weight        float64 `parquet:"weight,split"` // ω_x of VSPO; 0 when dropped
	Reason        string  `parquet:"reason,dict"`  // "" when kept; else a resample.Reason
	GroupMean     float64 `parquet:"group_mean,split"`
	GroupVariance float64 `parquet:"group_variance,split"` // population
	ValueScore    float64 `parquet:"value_score,split"`    // V_x of VSPO
	Excluded      *string `parquet:"excluded,optional"`    // what broke; set where Reason is excluded, else null
	// Masked is why a kept trajectory's tokens are out of the loss, a resample.Reason; its reward stays
	// in its group's statistics. Null where they are in it.
	Masked *string `parquet:"masked,optional"`
}

// ReasonExcluded is the reason in selection of a trajectory that was broken, not judged.
const ReasonExcluded = "excluded"

// TokenOutputsRow holds what models other than the one that wrote a kept trajectory, or that one once
// more, make of its tokens (table token_outputs), where the recipe needs it. A masked trajectory has no row,
// for nothing is learnt from its tokens. The lists run over the
// trajectory's tokens, all turns one after the other, and are 0 off the loss mask. A list that nothing
// asked for is null, and the digest of the checkpoint behind it then empty.
type TokenOutputsRow struct {
	GroupID           string    `parquet:"group_id,dict"`
	TrajectoryID      string    `parquet:"trajectory_id"`
	OldLogProbs       []float32 `parquet:"old_logprobs,list,optional" parquet-element:",split"`       // of the policy before the update
	Entropies         []float32 `parquet:"entropies,list,optional" parquet-element:",split"`          // nats; of the same
	ReferenceLogProbs []float32 `parquet:"reference_logprobs,list,optional" parquet-element:",split"` // of the reference policy
	Values            []float32 `parquet:"values,list,optional" parquet-element:",split"`             // of the critic: the return expected before the token
	PolicyVersion     string    `parquet:"policy_version,dict"`                                       // checkpoint digest behind old_logprobs and entropies
	ReferenceVersion  string    `parquet:"reference_version,dict"`                                    // … behind reference_logprobs
	CriticVersion     string    `parquet:"critic_version,dict"`                                       // … behind values
}

// ReplayRow is one trajectory that the replay buffer holds after a step (table replay), as it was when
// it was collected. The lists run over its tokens, all turns one after the other.
type ReplayRow struct {
	GroupID      string    `parquet:"group_id,dict"`
	TrajectoryID string    `parquet:"trajectory_id"`
	Collected    int32     `parquet:"collected"` // step
	Reward       float64   `parquet:"reward,split"`
	Advantage    float64   `parquet:"advantage,split"` // > 0; mean over the loss tokens of the batch's
	TokenIDs     []int32   `parquet:"token_ids,list" parquet-element:",dict"`
	LossMask     []int32   `parquet:"loss_mask,list" parquet-element:",dict"`
	OldLogProbs  []float32 `parquet:"old_logprobs,list" parquet-element:",split"` // what the ratio divides by, now and later
}

// BaselineRow is the mean reward of one group (table baselines): the queue of the latest after a step,
// in the order of their groups, which is the order in which they entered.
type BaselineRow struct {
	GroupID   string  `parquet:"group_id,dict"`
	Collected int32   `parquet:"collected"` // step
	Mean      float64 `parquet:"mean,split"`
}

// Sources of the rows that an optimiser step learns from.
const (
	SourcePolicy = "policy" // the step's batch
	SourceReplay = "replay" // the step's replay batch
)

// UpdateRow is one optimiser step (table updates).
type UpdateRow struct {
	Step          int32   `parquet:"step"`
	OptimizerStep int64   `parquet:"optimizer_step"`
	Minibatch     int32   `parquet:"minibatch"`
	Rows          int32   `parquet:"rows"`
	Tokens        int64   `parquet:"tokens"`
	Loss          float64 `parquet:"loss,split"`
	KL            float64 `parquet:"kl,split"` // mean(old − new) over valid tokens
	ClipFraction  float64 `parquet:"clip_fraction,split"`
	Entropy       float64 `parquet:"entropy,split"`
	RatioMax      float64 `parquet:"ratio_max,split"`
	GradNorm      float64 `parquet:"grad_norm,split"`
	LR            float64 `parquet:"lr,split"`
	PolicyBefore  string  `parquet:"policy_before,dict"`
	PolicyAfter   string  `parquet:"policy_after,dict"` // filled on the last row of a step
	// Shares of all tokens whose ratio was clipped, by the sign of the advantage: they add up to
	// clip_fraction. Null before schema version 2.
	ClipFractionPositive *float64 `parquet:"clip_fraction_positive,optional,split"`
	ClipFractionNegative *float64 `parquet:"clip_fraction_negative,optional,split"`
	// ReferenceKL is the mean over valid tokens of the estimate that the loss takes; null where the
	// loss takes none.
	ReferenceKL *float64 `parquet:"reference_kl,optional,split"`
	// Source is policy or replay; null where the recipe has no replay. An optimiser step on both
	// (replay.order joint) has a row for each, with the gradient norm of their sum.
	Source *string `parquet:"source,optional,dict"`
	// The critic's optimiser step on the same rows; null where there is no critic. ExplainedVariance is
	// 1 − Var(return − value)/Var(return) over the rows' tokens before the step, null too where the
	// returns do not vary.
	ValueLoss         *float64 `parquet:"value_loss,optional,split"`
	ValueGradNorm     *float64 `parquet:"value_grad_norm,optional,split"`
	ExplainedVariance *float64 `parquet:"explained_variance,optional,split"`
	// Over the same tokens before the step: the share whose clipped loss is the greater one, so that they
	// move nothing (0 where the recipe does not clip), and the means of the critic's values and of what it
	// learns. Null where there is no critic.
	ValueClipFraction *float64 `parquet:"value_clip_fraction,optional,split"`
	ValueMean         *float64 `parquet:"value_mean,optional,split"`
	ReturnMean        *float64 `parquet:"return_mean,optional,split"`
	// The advantages that the step multiplied its ratios with, weights included, over the loss tokens of
	// its rows, each token once (of the replay batch, before the weight of the imitation): mean, population standard deviation, extremes, shares of the tokens
	// whose advantage is 0 and is > 0. Null where they were not recorded.
	AdvantageMean     *float64 `parquet:"advantage_mean,optional,split"`
	AdvantageStd      *float64 `parquet:"advantage_std,optional,split"`
	AdvantageMin      *float64 `parquet:"advantage_min,optional,split"`
	AdvantageMax      *float64 `parquet:"advantage_max,optional,split"`
	AdvantageZero     *float64 `parquet:"advantage_zero,optional,split"`
	AdvantagePositive *float64 `parquet:"advantage_positive,optional,split"`
	// Shares of all tokens whose ratio was out of bounds on the side where no clip acts, by the sign of
	// the advantage, and of those on which the dual clip acted. Null where they were not recorded.
	BelowPositive    *float64 `parquet:"below_positive,optional,split"`
	AboveNegative    *float64 `parquet:"above_negative,optional,split"`
	DualClipFraction *float64 `parquet:"dual_clip_fraction,optional,split"`
}

// EvaluationRow is one sample of one held-out problem (table evaluations).
type EvaluationRow struct {
	Tag           string `parquet:"tag,dict"` // warm_start | step | final
	ProblemID     string `parquet:"problem_id,dict"`
	Level         int32  `parquet:"level"`
	Sample        int32  `parquet:"sample"`
	Greedy        bool   `parquet:"greedy"`
	Success       bool   `parquet:"success"`
	ToolCalls     int32  `parquet:"tool_calls"`
	ToolErrors    int32  `parquet:"tool_errors"`
	Turns         int32  `parquet:"turns"`
	Tokens        int32  `parquet:"tokens"`
	FinalAnswer   string `parquet:"final_answer,dict"`
	Gold          string `parquet:"gold,dict"`
	PolicyVersion string `parquet:"policy_version,dict"`
}

// TimingRow is one measured interval (table timings). No stage reads it.
type TimingRow struct {
	Stage        string  `parquet:"stage,dict"`
	Shard        int32   `parquet:"shard"`
	Turn         int32   `parquet:"turn"`
	Kind         string  `parquet:"kind,dict"` // activity | tool_call
	TrajectoryID string  `parquet:"trajectory_id"`
	Call         int32   `parquet:"call"`
	StartMicros  int64   `parquet:"start_micros"` // Unix
	EndMicros    int64   `parquet:"end_micros"`
	QueueSeconds float64 `parquet:"queue_seconds,split"`
	CPUSeconds   float64 `parquet:"cpu_seconds,split"`
	Attempt      int32   `parquet:"attempt"`
	Host         string  `parquet:"host,dict"`
	Rows         int64   `parquet:"rows"`
	Tokens       int64   `parquet:"tokens"`
	// What an engine's devices did meanwhile; null where the engine measures nothing.
	DevicePeakBytes   *int64   `parquet:"device_peak_bytes,optional"`        // most memory held on one device
	DeviceUtilisation *float64 `parquet:"device_utilisation,optional,split"` // share of the time in which the devices worked
	MFU               *float64 `parquet:"mfu,optional,split"`                // model flops over what the devices can do at most
	TrainTokensPerS   *float64 `parquet:"train_tokens_per_s,optional,split"` // forward, backward and step
}

// BatchRow is one trajectory of the training batch, or in layout turns one turn of it: what the policy
// saw before the turn, and its response, which alone the loss mask covers (Arrow IPC, table batch); or
// one out of the replay buffer that is learnt from again (table replay_batch): its advantages are then
// recalibrated, its count and weight 1.
type BatchRow struct {
	GroupID      string
	TrajectoryID string
	Count        int32     // N_x: how often denominators count the row
	Weight       float64   // ω_x, already multiplied into Advantages
	TokenIDs     []int32   // [n]
	LossMask     []int32   // [n]
	OldLogProbs  []float32 // [n]; nil (null) for imported rows
	Advantages   []float32 // [n]; A·ω on loss tokens, 0 elsewhere
	// RolloutLogProbs are the rollout's, where OldLogProbs are not: [n], else nil (null).
	RolloutLogProbs []float32
	// ReferenceLogProbs are the reference policy's, where the update needs them: [n], else nil (null).
	ReferenceLogProbs []float32
	// Turn is the turn that the row is; nil (null) where it is a whole trajectory.
	Turn *int32
	// Values are the critic's before the update, and Returns what it learns: [n], 0 off the loss mask;
	// nil (null) where there is no critic.
	Values  []float32
	Returns []float32
}
