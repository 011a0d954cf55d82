package resample

// Reason says why a row was dropped or masked, or an episode, a problem or a replay entry dropped.
type Reason string

// Reasons for which a row of a step is dropped.
const (
	ZeroVariance       Reason = "zero_variance"        // the group's rewards teach nothing
	LowVarianceGroup   Reason = "low_variance"         // other groups' rewards vary more (or less, reversed)
	SmallGroup         Reason = "small_group"          // fewer trajectories than RoC keeps
	RoCPositiveSurplus Reason = "roc_positive_surplus" // another positive was chosen
	RoCNegativeSurplus Reason = "roc_negative_surplus" // another negative was chosen
	Excluded           Reason = "excluded"             // something broke it; it has no reward
	TooFewRows         Reason = "too_few_rows"         // exclusions left the group nothing to compare
	DynamicSurplus     Reason = "dynamic_surplus"      // dynamic sampling had its groups already
	SolvedProblem      Reason = "solved_problem"       // every sample of an earlier evaluation was right
	HopelessProblem    Reason = "hopeless_problem"     // too few samples of an earlier evaluation were right
	MixedVersions      Reason = "mixed_versions"       // several versions of the policy wrote the group's turns
)

// RowReasons lists the reasons for which a row of a step is dropped, in their order.
var RowReasons = []Reason{ZeroVariance, LowVarianceGroup, SmallGroup, RoCPositiveSurplus, RoCNegativeSurplus, Excluded,
	TooFewRows, DynamicSurplus, SolvedProblem, HopelessProblem, MixedVersions}

// Reasons for which a row stays but its tokens are masked out of the loss.
const (
	OverlongResponse   Reason = "overlong"
	VoidTurn           Reason = "void_turn"
	RepetitiveResponse Reason = "repetitive"
	UnreadableResponse Reason = "unreadable"
)

// Reasons for which an episode does not become behaviour-cloning data.
const (
	NotSuccessful   Reason = "not_successful"
	InvalidTurn     Reason = "invalid_turn"
	DuplicateAction Reason = "duplicate_actions" // an earlier episode of the task took the same actions
	TaskFull        Reason = "task_full"         // the task has its share already
)

// Reasons for which a row does not enter the replay buffer or leaves it unused.
const (
	AdvantageNotPositive Reason = "advantage_not_positive" // at collection
	NoToolCall           Reason = "no_tool_call"
	ReplayStep           Reason = "replay_step"      // the step replays, and stores nothing
	TooOld               Reason = "too_old"          // in steps
	Outgrown             Reason = "outgrown"         // the recalibrated advantage is not positive
	ReplaySurplus        Reason = "replay_surplus"   // over the row cap or the power of two
	ReplayTooSmall       Reason = "replay_too_small" // fewer rows than the replay update needs
)
