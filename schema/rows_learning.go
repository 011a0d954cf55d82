package schema

// The verdicts of symbolic grading, and of a program's tests.
const (
	GradingEqual     = "equal"     // a program passes all tests
	GradingDifferent = "different" // a program fails a test
	// GradingUnreadable: one of the two is not an expression, which does not count as agreement; or a limit ended the
	// grading, as Grader then says.
	GradingUnreadable = "unreadable"
)

// GradingRow is the symbolic comparison of one trajectory's answer with its gold (table gradings), where the recipe
// asks for it and comparing strings and values found no agreement. If the answer is a program, the gold holds its
// tests, and the row says how they ended. Other trajectories have no row.
type GradingRow struct {
	GroupID      string  `parquet:"group_id,dict" doc:"the trajectory's group"`
	TrajectoryID string  `parquet:"trajectory_id" doc:"the trajectory whose answer was compared"`
	Answer       string  `parquet:"answer,dict" doc:"the answer as it was graded"`
	Gold         string  `parquet:"gold,dict" doc:"the correct answer"`
	Verdict      string  `parquet:"verdict,dict" doc:"equal, different or unreadable (one of the two is not an expression, or a limit ended the grading); of a program, equal if it passes all tests; empty if excluded"`
	Grader       string  `parquet:"grader,dict" doc:"the program that compared them, such as sympy 1.14.0; tests; or the limit that was reached, such as limit timeout_cpu; empty if excluded"`
	Excluded     *string `parquet:"excluded,optional" doc:"why there is no verdict, in one line; null if there is one"`
}

// RewardRow is one trajectory's reward (table rewards). An excluded trajectory has none.
type RewardRow struct {
	GroupID       string  `parquet:"group_id,dict" doc:"the trajectory's group"`
	TrajectoryID  string  `parquet:"trajectory_id" doc:"the trajectory that was scored"`
	Level         int32   `parquet:"level" doc:"the problem's level"`
	Reward        float64 `parquet:"reward,split" doc:"the reward, from which advantages follow"`
	Outcome       float64 `parquet:"outcome,split" doc:"the part of the reward that the outcome gave"`
	Success       bool    `parquet:"success" doc:"whether the task was solved"`
	Turns         int32   `parquet:"turns" doc:"number of turns"`
	ToolCalls     int32   `parquet:"tool_calls" doc:"as in trajectories"`
	ToolErrors    int32   `parquet:"tool_errors" doc:"as in trajectories"`
	AnswerTags    int32   `parquet:"answer_tags" doc:"as in trajectories"`
	ErrorPenalty  float64 `parquet:"error_penalty,split" doc:"RoC's penalty of tool errors, p_err"`
	FormatPenalty float64 `parquet:"format_penalty,split" doc:"RoC's penalty of the format, p_format"`
	Verdict       string  `parquet:"verdict,dict" doc:"how the answer compared: exact, rational, symbolic, passed, wrong, no_answer …"`
	Reference     *bool   `parquet:"reference,optional" doc:"the verdict of an imported row's source; null for rollouts"`
}

// SelectionRow says for one trajectory whether it was kept, how often, and why not (table selection). Every sampled
// trajectory has a row, also in skipped shards. The reward stage commits rows of this table for the trajectories
// without a reward; the rows of resample cover all trajectories. The group's statistics are those of its rewards, or 0
// if it has none.
type SelectionRow struct {
	GroupID       string  `parquet:"group_id,dict" doc:"the trajectory's group"`
	TrajectoryID  string  `parquet:"trajectory_id" doc:"the trajectory that was judged"`
	Kept          bool    `parquet:"kept" doc:"whether the update learns from it"`
	Count         int32   `parquet:"count" doc:"how often denominators count it: N_x of VSPO; 0 if dropped"`
	Weight        float64 `parquet:"weight,split" doc:"factor of its advantages: ω_x of VSPO; 0 if dropped"`
	Reason        string  `parquet:"reason,dict" doc:"why it was dropped: zero_variance, dynamic_surplus, roc_negative_surplus, too_few_rows, excluded …; empty if kept"`
	GroupMean     float64 `parquet:"group_mean,split" doc:"mean of its group's rewards; 0 if the group has none"`
	GroupVariance float64 `parquet:"group_variance,split" doc:"their population variance"`
	ValueScore    float64 `parquet:"value_score,split" doc:"V_x of VSPO"`
	Excluded      *string `parquet:"excluded,optional" since:"2" doc:"what broke, in one line; null unless reason is excluded"`
	Masked        *string `parquet:"masked,optional" since:"3" doc:"why the tokens of a kept trajectory are not in the loss; its reward stays in its group's statistics; null if they are in the loss"`
}

// ReasonExcluded is the reason in selection for a trajectory that something broke, so that it was not judged.
const ReasonExcluded = "excluded"

// TokenOutputsRow is a row of the table token_outputs; its fields are those of tokenOutputs.
type TokenOutputsRow tokenOutputs[float32]

// tokenOutputs holds what models compute for the tokens of a kept trajectory (table token_outputs), if the recipe
// needs it: the policy itself once more, the reference, the critic. A masked trajectory has no row, because nothing is
// learnt from its tokens. The lists cover the trajectory's tokens, one turn after the other. In a file their elements
// are null outside the loss mask, in a row 0. A list that was not asked for is null, and the digest of its checkpoint
// is then empty.
type tokenOutputs[N element] struct {
	GroupID           string  `parquet:"group_id,dict" doc:"the trajectory's group"`
	TrajectoryID      string  `parquet:"trajectory_id" doc:"the trajectory; the lists cover its tokens, one turn after the other, and their elements are null outside the loss mask (0 until minor version 8)"`
	OldLogProbs       []N     `parquet:"old_logprobs,list,optional" parquet-element:",split,optional" holes:"loss_mask" unit:"nats" doc:"log-probabilities under the policy before the update; null if not asked for"`
	Entropies         []N     `parquet:"entropies,list,optional" parquet-element:",split,optional" holes:"loss_mask" unit:"nats" doc:"entropies of the same policy; null if not asked for"`
	ReferenceLogProbs []N     `parquet:"reference_logprobs,list,optional" parquet-element:",split,optional" holes:"loss_mask" unit:"nats" doc:"log-probabilities under the reference policy; null if not asked for"`
	Values            []N     `parquet:"values,list,optional" parquet-element:",split,optional" holes:"loss_mask" doc:"the return that the critic expected before the token; null if not asked for"`
	PolicyVersion     string  `parquet:"policy_version,dict" doc:"checkpoint digest behind old_logprobs and entropies; empty if both are null"`
	ReferenceVersion  string  `parquet:"reference_version,dict" doc:"checkpoint digest behind reference_logprobs; empty if they are null"`
	CriticVersion     string  `parquet:"critic_version,dict" doc:"checkpoint digest behind values; empty if they are null"`
	LossMask          []int32 `parquet:"loss_mask,list,optional" parquet-element:",dict" since:"9" doc:"1 for tokens that are learnt from, else 0"`
}

// BatchRow is one trajectory of the training batch (Arrow IPC, table batch). In layout turns it is one turn of a
// trajectory: what the policy saw before the turn, and its response; the loss mask covers only the response. In the
// table replay_batch it is a row from the replay buffer that is learnt from again: its advantages are
// recalibrated, and its count and weight are 1.
type BatchRow struct {
	GroupID           string    `doc:"the trajectory's group"`
	TrajectoryID      string    `doc:"the trajectory that is learnt from"`
	Count             int32     `doc:"how often denominators count the row: N_x"`
	Weight            float64   `doc:"ω_x, already multiplied into advantages"`
	TokenIDs          []int32   `doc:"all tokens of the row; the token lists of a row have equal lengths"`
	LossMask          []int32   `doc:"1 for tokens that are learnt from, else 0"`
	OldLogProbs       []float32 `unit:"nats" doc:"log-probabilities before the update, the denominators of the ratios; null for imported rows"`
	Advantages        []float32 `doc:"advantage times weight on loss tokens, 0 elsewhere"`
	RolloutLogProbs   []float32 `since:"3" unit:"nats" doc:"the log-probabilities of the rollout, if old_logprobs are others; else null"`
	ReferenceLogProbs []float32 `since:"3" unit:"nats" doc:"those of the reference policy, if the update needs them; else null"`
	Turn              *int32    `since:"3" doc:"number of the turn that the row holds; null if it holds a whole trajectory"`
	Values            []float32 `since:"3" doc:"the critic's values before the update, 0 outside the loss mask; null if there is no critic"`
	Returns           []float32 `since:"3" doc:"the critic's targets, 0 outside the loss mask; null if there is no critic"`
}

// ReplayRow is one row of a batch that the replay buffer holds after a step (table replay), as it was when it was
// collected: a trajectory or, in layout turns, one turn of it.
type ReplayRow struct {
	GroupID      string    `parquet:"group_id,dict" doc:"the trajectory's group"`
	TrajectoryID string    `parquet:"trajectory_id" doc:"the trajectory in the buffer, or whose turn is"`
	Collected    int32     `parquet:"collected" doc:"the step that sampled it"`
	Reward       float64   `parquet:"reward,split" doc:"the trajectory's reward"`
	Advantage    float64   `parquet:"advantage,split" doc:"mean of its advantages in the batch over the loss tokens; always > 0"`
	TokenIDs     []int32   `parquet:"token_ids,list" parquet-element:",dict" doc:"the tokens of the row, as in the batch"`
	LossMask     []int32   `parquet:"loss_mask,list" parquet-element:",dict" doc:"1 for tokens that are learnt from, else 0"`
	OldLogProbs  []float32 `parquet:"old_logprobs,list" parquet-element:",split" unit:"nats" doc:"log-probabilities when it was collected: the denominators of the ratio, now and later"`
	Turn         *int32    `parquet:"turn,optional" since:"9" doc:"number of the turn that the row holds; null if it holds a whole trajectory"`
}

// BaselineRow is the mean reward of one group (table baselines). The table is the queue of the latest baselines after a
// step, in the order of their groups, which is the order in which they entered the queue.
type BaselineRow struct {
	GroupID   string  `parquet:"group_id,dict" doc:"the group"`
	Collected int32   `parquet:"collected" doc:"the step that sampled it"`
	Mean      float64 `parquet:"mean,split" doc:"mean reward of the group's trajectories that have one"`
}
