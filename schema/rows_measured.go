package schema

// EvaluationRow is one sample of one held-out problem (table evaluations).
type EvaluationRow struct {
	Tag            string  `parquet:"tag,dict" doc:"warm_start, step or final: when the policy was measured; initial (before the warm start) in the rows of that stage"`
	ProblemID      string  `parquet:"problem_id,dict" doc:"the problem's name in its environment (see Problems)"`
	Level          int32   `parquet:"level" doc:"the problem's level"`
	Sample         int32   `parquet:"sample" doc:"number of the sample of the problem, from 0"`
	Greedy         bool    `parquet:"greedy" doc:"whether the most likely response was taken, instead of a sample"`
	Success        bool    `parquet:"success" doc:"whether the task was solved"`
	ToolCalls      int32   `parquet:"tool_calls" doc:"as in trajectories"`
	ToolErrors     int32   `parquet:"tool_errors" doc:"as in trajectories"`
	Turns          int32   `parquet:"turns" doc:"number of turns"`
	Tokens         int32   `parquet:"tokens" unit:"tokens" doc:"contexts and responses"`
	FinalAnswer    string  `parquet:"final_answer,dict" doc:"the last closed answer"`
	Gold           string  `parquet:"gold,dict" doc:"the correct answer; empty if there is none"`
	PolicyVersion  string  `parquet:"policy_version,dict" doc:"checkpoint digest of the policy that was measured"`
	TrajectoryID   *string `parquet:"trajectory_id,optional,dict" since:"5" doc:"the episode in the tables evaluation_*; null if not recorded"`
	ResponseTokens *int32  `parquet:"response_tokens,optional" since:"5" unit:"tokens" doc:"responses only; their sum is the manifest's statistic tokens; null if not recorded"`
	Judged         *bool   `parquet:"judged,optional" since:"8" doc:"whether a judge found that the final answer means the same as the correct one; an episode without an answer is false; null if no judge was asked or it gave no verdict"`
	Part           *string `parquet:"part,optional,dict" since:"8" doc:"the part of a mix of environments that the problem comes from; null elsewhere"`

	TaskType   *string  `parquet:"task_type,optional,dict" since:"8" doc:"family of the task; null if its environment has one family, or if not recorded"`
	Score      *float64 `parquet:"score,optional,split" since:"8" doc:"how far the episode came, from 0 to 1; null in an environment that grades no episodes, or if not recorded"`
	ExactMatch *bool    `parquet:"exact_match,optional" since:"8" doc:"whether the answer has the words of a gold; null in an environment without several golds, or if not recorded"`
	F1         *float64 `parquet:"f1,optional,split" since:"8" doc:"most words that the answer shares with a gold, as F1; null likewise"`
}

// EvaluationDebateRow is one agent's proposal in one round of a debate (table evaluation_debates). A debate decides on
// the answer to a question, or on the action of one turn.
type EvaluationDebateRow struct {
	GroupID       string    `parquet:"group_id,dict" doc:"the held-out problem, as in evaluation_prompts"`
	Sample        int32     `parquet:"sample" doc:"number of the debate, or of the debated episode, of the problem, from 0; as in evaluations"`
	Turn          int32     `parquet:"turn" doc:"the turn whose action was debated; 0 where the answer to a question was"`
	Round         int32     `parquet:"round" doc:"round of the debate, from 0, in which the agents do not know each other's candidates"`
	Agent         int32     `parquet:"agent" doc:"number of the agent, from 0"`
	TrajectoryID  string    `parquet:"trajectory_id,dict" doc:"the agent's own episode of this round, or the episode whose action was debated; in the tables evaluation_*"`
	Candidate     string    `parquet:"candidate" doc:"the answer or the action that the agent proposes"`
	Abstained     bool      `parquet:"abstained" doc:"whether the agent proposes nothing, and so agrees with no other"`
	Chosen        bool      `parquet:"chosen" doc:"whether the debate ended with this proposal: one row for each debate"`
	Drawn         bool      `parquet:"drawn" doc:"whether it was drawn at random, because the last round had no majority"`
	Response      *string   `parquet:"response,optional" doc:"the response that proposes the action; null for answers, whose episodes are in evaluation_turns, like the next three"`
	ContextTokens *int32    `parquet:"context_tokens,optional" unit:"tokens" doc:"how many of token_ids the agent read"`
	TokenIDs      []int32   `parquet:"token_ids,list" parquet-element:",dict" doc:"what the agent read, then what it wrote; empty for answers"`
	LogProbs      []float32 `parquet:"logprobs,list" parquet-element:",split" unit:"nats" doc:"log-probabilities of what it wrote; empty for answers"`
	PolicyVersion string    `parquet:"policy_version,dict" doc:"checkpoint digest of the policy that proposed it"`
}

// The rows of an evaluation's episodes. They are those of a step's rollout, in tables of their own, so that no reader
// counts them as trained on. A problem of the held-out set is a group; its samples come first, then its greedy episode.
type (
	// EvaluationPromptRow is a held-out problem (table evaluation_prompts).
	EvaluationPromptRow PromptRow
	// EvaluationTurnRow is a turn on a held-out problem (table evaluation_turns).
	EvaluationTurnRow TurnRow
	// EvaluationCallRow is a tool call on a held-out problem (table evaluation_tool_calls).
	EvaluationCallRow ToolCallRow
	// EvaluationTransitionRow is an action on a held-out problem (table evaluation_transitions).
	EvaluationTransitionRow TransitionRow
	// EvaluationTrajectoryRow is an episode on a held-out problem (table evaluation_trajectories).
	EvaluationTrajectoryRow TrajectoryRow
)

// TimingRow is one measured interval (table timings). No stage reads it.
type TimingRow struct {
	Stage        string  `parquet:"stage,dict" doc:"the stage that was measured"`
	Shard        int32   `parquet:"shard" doc:"its shard; −1 for none"`
	Turn         int32   `parquet:"turn" doc:"its turn; −1 for none"`
	Kind         string  `parquet:"kind,dict" doc:"activity or tool_call"`
	TrajectoryID string  `parquet:"trajectory_id" doc:"the trajectory of a tool call; empty for an activity"`
	Call         int32   `parquet:"call" doc:"number of the tool call in its turn; −1 for an activity"`
	StartMicros  int64   `parquet:"start_micros" unit:"µs" doc:"start, since 1970-01-01 UTC"`
	EndMicros    *int64  `parquet:"end_micros,optional" unit:"µs" doc:"end, likewise; null for a call that nothing was executed for, so that no duration of 0 enters a mean"`
	QueueSeconds float64 `parquet:"queue_seconds,split" unit:"s" doc:"wait before the start"`
	CPUSeconds   float64 `parquet:"cpu_seconds,split" unit:"s" doc:"processor time"`
	Attempt      int32   `parquet:"attempt" doc:"number of the attempt, from 1"`
	Host         string  `parquet:"host,dict" doc:"the machine"`
	Rows         int64   `parquet:"rows" doc:"rows processed"`
	Tokens       int64   `parquet:"tokens" unit:"tokens" doc:"tokens sampled or trained on"`

	DevicePeakBytes   *int64   `parquet:"device_peak_bytes,optional" since:"4" unit:"bytes" doc:"most memory held on one device of the engine; null if the engine does not measure it, like the next three"`
	DeviceUtilisation *float64 `parquet:"device_utilisation,optional,split" since:"4" doc:"share of the time in which the devices were busy"`
	MFU               *float64 `parquet:"mfu,optional,split" since:"4" doc:"model flops over the peak flops of the devices"`
	TrainTokensPerS   *float64 `parquet:"train_tokens_per_s,optional,split" since:"4" unit:"tokens/s" doc:"tokens through forward, backward and step"`

	Adopted *bool `parquet:"adopted,optional" since:"4" doc:"true if an earlier execution had committed the stage and its times are lost: start and end are then those of the execution that adopted it; null otherwise"`
	Shared  *bool `parquet:"shared,optional" since:"5" doc:"true if the call took its verdict from the execution of an identical call of the batch, whose row has the times; its end is null, and its start the time at which the verdict was there; null otherwise"`

	TraceID *string `parquet:"trace_id,optional,dict" since:"9" doc:"the OpenTelemetry trace of the step, in hexadecimal; null if the execution was not traced"`
	SpanID  *string `parquet:"span_id,optional" since:"9" doc:"the span in that trace: of the activity's execution, and for a tool call of the execution that commits its result; null likewise"`
}

// Traced notes the trace and the span of an execution, in hexadecimal; empty ids leave the columns null.
func (r *TimingRow) Traced(trace, span string) {
	if trace != "" {
		r.TraceID, r.SpanID = &trace, &span
	}
}

// Seconds returns how long the interval took; ok is false for a call that shared another's execution.
func (r TimingRow) Seconds() (seconds float64, ok bool) {
	if r.EndMicros == nil {
		return 0, false
	}
	return float64(*r.EndMicros-r.StartMicros) / 1e6, true
}

// End returns the end of the interval, or its start if it has no end of its own.
func (r TimingRow) End() int64 {
	if r.EndMicros == nil {
		return r.StartMicros
	}
	return *r.EndMicros
}
