package schema

// The rows of the record's tables, which are in several files: rows.go has those of the sampled trajectories,
// rows_learning.go those from rewards to the training batch, rows_update.go the optimiser steps, and rows_measured.go
// evaluations and times.
//
// Optional columns are pointers or slices whose nil means null; the nil of any other list is the empty list. No row
// holds a run id, generation, host, path or time (timings alone holds times).
//
// In the parquet tags, dict selects a dictionary (for few distinct values, or ids that repeat) and split selects
// byte-stream-split (floats only). The tag doc describes the column and unit its unit. The tag since names the format's
// minor version that added it, if that is not the table's first (declared.go), and changed the one that changed its
// type. README.md is made of them. N is the type of the elements of lists that can be null in a file (element).

// PromptRow is one prompt of a step (table prompts).
type PromptRow struct {
	GroupID    string  `parquet:"group_id" doc:"the group of trajectories that are sampled from the prompt: step and number in the step"`
	ProblemID  string  `parquet:"problem_id" doc:"the problem's name in its environment (see Problems)"`
	Level      int32   `parquet:"level" doc:"the environment's level of difficulty; 0 if it has none"`
	Problem    string  `parquet:"problem" doc:"the problem as the environment states it"`
	Answer     string  `parquet:"answer,dict" doc:"the correct answer; empty if the environment judges differently"`
	Expression string  `parquet:"expression" doc:"the environment's own specification of the problem, from which it can be set up again"`
	TokenIDs   []int32 `parquet:"token_ids,list" parquet-element:",dict" doc:"the whole first prefix of the policy; for an imported group the common beginning of its trajectories' prefixes"`
	Part       *string `parquet:"part,optional,dict" since:"8" doc:"the part of a mix of environments that the problem comes from; null elsewhere"`
}

// TurnRow is one turn (table turns); its fields are those of turn.
type TurnRow turn[float32]

// turn is the row of a turn: its context (the prompt at turn 0, the rendered tool responses later) followed by
// the response. The token lists have equal lengths. The turn at which the engine broke has only a context.
type turn[N element] struct {
	GroupID       string  `parquet:"group_id,dict" doc:"the trajectory's group"`
	TrajectoryID  string  `parquet:"trajectory_id" doc:"group and number of the sample in it"`
	Turn          int32   `parquet:"turn" doc:"number of the turn, from 0"`
	ContextTokens int32   `parquet:"context_tokens" unit:"tokens" doc:"how many of token_ids, from the first, are context"`
	TokenIDs      []int32 `parquet:"token_ids,list" parquet-element:",dict" doc:"context and response; the token lists of a row have equal lengths"`
	LossMask      []int32 `parquet:"loss_mask,list" parquet-element:",dict" doc:"1 for tokens that the policy produced, else 0"`
	LogProbs      []N     `parquet:"logprobs,list,optional" parquet-element:",split,optional" holes:"context_tokens" unit:"nats" doc:"log-probability of each token when it was sampled; null for context; null as a whole for imported rows, and where the sampler gives none"`
	Entropies     []N     `parquet:"entropies,list,optional" parquet-element:",split,optional" holes:"context_tokens" unit:"nats" doc:"entropy of the distribution that each token was sampled from; null for context; null as a whole where logprobs is, and where the sampler gives none"`
	Observation   string  `parquet:"observation" doc:"text of the context: the tool responses, or what the environment showed; at turn 0 only what this trajectory alone was asked, else empty"`
	Response      string  `parquet:"response" doc:"text of the response; bytes that are not UTF-8 are U+FFFD, and token_ids hold the exact bytes"`
	Finish        string  `parquet:"finish,dict" doc:"stop or length: why the response ended; empty if there is none (excluded)"`
	ToolCalls     int32   `parquet:"tool_calls" doc:"closed blocks of calls in the response, parsed or not; 1 in an environment with one action per turn"`
	Answered      bool    `parquet:"answered" doc:"the response closes an answer"`
	AnchorHash    string  `parquet:"anchor_hash,dict" doc:"identifies what the policy saw before this turn (see Anchor states)"`
	PolicyVersion string  `parquet:"policy_version,dict" doc:"checkpoint digest of the policy that wrote the response; empty for imported rows"`
	Excluded      *string `parquet:"excluded,optional" since:"2" doc:"why there is no response, in one line; null if there is one"`
	ParsedCalls   *int32  `parquet:"parsed_calls,optional" since:"3" doc:"those of tool_calls that could be parsed; null for imported rows"`
	Wrapped       *bool   `parquet:"wrapped,optional" since:"3" doc:"no text of the response is outside the protocol's tags; null for imported rows"`
	Summary       *bool   `parquet:"summary,optional" since:"8" doc:"true for a turn in which the policy wrote a summary of its episode instead of acting (rollout.summary); else null"`
	Lag           *int32  `parquet:"lag,optional" since:"9" unit:"updates" doc:"updates between the policy that wrote the response and the one that the step updates; null where no response was written, and for imported rows and evaluations"`
	Content       *string `parquet:"content,optional" since:"9" doc:"text of the response outside of its reasoning and its calls, as a message of a chat has it; null where messages of the protocol list no calls, where the response is cut inside its reasoning or a call, and for imported rows"`
	Reasoning     *string `parquet:"reasoning,optional" since:"9" doc:"the reasoning of the response, as a message of a chat has it; null if it has none, and where content is null"`
}

// IsSummary reports whether the turn is a summary of its episode.
func (r TurnRow) IsSummary() bool { return r.Summary != nil && *r.Summary }

// Valid reports whether a turn acts: one of its calls could be parsed, or it closes an answer. known is false for rows
// that do not record this, and for summaries, which do not act.
func (r TurnRow) Valid() (valid, known bool) {
	if r.ParsedCalls == nil || r.IsSummary() {
		return false, false
	}
	return *r.ParsedCalls > 0 || r.Answered, true
}

// ToolCallRow is one tool call and its result (table tool_calls).
type ToolCallRow struct {
	GroupID      string  `parquet:"group_id,dict" doc:"the trajectory's group"`
	TrajectoryID string  `parquet:"trajectory_id" doc:"the trajectory that made the call"`
	Turn         int32   `parquet:"turn" doc:"number of the turn that made the call"`
	Call         int32   `parquet:"call" doc:"number of the call in its turn, from 0"`
	Name         string  `parquet:"name,dict" doc:"the tool; empty if the call could not be parsed"`
	Arguments    string  `parquet:"arguments" doc:"the arguments as the policy wrote them, usually JSON"`
	Code         string  `parquet:"code" doc:"the program, for a tool that runs one"`
	Stdin        string  `parquet:"stdin" doc:"the program's input"`
	Status       string  `parquet:"status,dict" doc:"how the call ended: a status of its tool (ok, error, timeout …), why it could not run (unknown_tool, decode_error, over_budget …), or for a recorded call ok, tool_error or no_response; empty if excluded"`
	ExitCode     int32   `parquet:"exit_code" doc:"the program's exit code; −N if signal N ended it"`
	Stdout       string  `parquet:"stdout" doc:"what the program wrote to standard output"`
	Stderr       string  `parquet:"stderr" doc:"what the program wrote to standard error"`
	Value        string  `parquet:"value" doc:"the value of the program's last expression, as text"`
	Response     string  `parquet:"response" doc:"the part that the policy saw: the body of the tool response"`
	Excluded     *string `parquet:"excluded,optional" since:"2" doc:"why there is no verdict, in one line; null if there is one"`
}

// TransitionRow is one action in an interactive environment and what it led to (table transitions). Only runs in such
// an environment have the table.
type TransitionRow struct {
	GroupID      string  `parquet:"group_id,dict" doc:"the trajectory's group"`
	TrajectoryID string  `parquet:"trajectory_id" doc:"the trajectory that acted"`
	Turn         int32   `parquet:"turn" doc:"number of the turn that acted"`
	SeenHash     string  `parquet:"seen_hash,dict" doc:"identifies what the environment showed before the action: 16 hexadecimal digits of a digest; empty if excluded"`
	Situation    string  `parquet:"situation,dict" doc:"identifies the state that the environment was in before the action, in the same form"`
	Action       string  `parquet:"action,dict" doc:"the action, as the protocol read it from the response"`
	WellFormed   bool    `parquet:"well_formed" doc:"the response has its protocol's form"`
	Valid        bool    `parquet:"valid" doc:"it has, and the environment knows the action"`
	Reward       float64 `parquet:"reward,split" doc:"the environment's reward of the action"`
	Done         bool    `parquet:"done" doc:"the episode ended with the action"`
	Success      bool    `parquet:"success" doc:"it ended because the task was done"`
	State        string  `parquet:"state" doc:"the state after the action, in the environment's own encoding"`
	Observation  string  `parquet:"observation" doc:"what the environment showed after the action"`
	Admissible   *string `parquet:"admissible,optional" doc:"the actions that the environment accepted then, as a JSON list; null if it does not list them"`
	Excluded     *string `parquet:"excluded,optional" doc:"why there is no transition, in one line; null if there is one"`
}

// TrajectoryRow is one episode (table trajectories).
type TrajectoryRow struct {
	GroupID        string   `parquet:"group_id,dict" doc:"the group: all samples of one prompt"`
	TrajectoryID   string   `parquet:"trajectory_id" doc:"group and number of the sample in it"`
	ProblemID      string   `parquet:"problem_id,dict" doc:"the problem's name in its environment (see Problems)"`
	Level          int32    `parquet:"level" doc:"the environment's level of difficulty; 0 if it has none"`
	Source         string   `parquet:"source,dict" doc:"rollout, or the importer's name and system"`
	Turns          int32    `parquet:"turns" doc:"number of turns; summaries do not count"`
	ToolCalls      int32    `parquet:"tool_calls" doc:"calls with a verdict, whether they could run or not"`
	ToolErrors     int32    `parquet:"tool_errors" doc:"those of tool_calls whose status is not ok"`
	AnswerTags     int32    `parquet:"answer_tags" doc:"closed answers over all turns"`
	Tokens         int32    `parquet:"tokens" unit:"tokens" doc:"contexts and responses"`
	ResponseTokens int32    `parquet:"response_tokens" unit:"tokens" doc:"responses only"`
	Finish         string   `parquet:"finish,dict" doc:"answered, no_action, max_turns, length, done (by the environment), tool_calls (an imported one ended after calls) or excluded"`
	FinalAnswer    string   `parquet:"final_answer,dict" doc:"the last closed answer"`
	HasAnswer      bool     `parquet:"has_answer" doc:"whether there is one"`
	Gold           string   `parquet:"gold,dict" doc:"the correct answer; empty if there is none"`
	PolicyVersion  string   `parquet:"policy_version,dict" doc:"checkpoint digest of the policy that wrote the last turn; empty for imported rows"`
	Text           string   `parquet:"text" doc:"every response, concatenated with the observations, as graded"`
	Reference      *bool    `parquet:"reference,optional" doc:"the verdict of an imported row's source; null for rollouts"`
	Excluded       *string  `parquet:"excluded,optional" since:"2" doc:"what broke, in one line; null for a whole trajectory"`
	SourceReward   *float64 `parquet:"source_reward,optional,split" since:"2" doc:"the reward that an imported conversation came with; null for all other trajectories"`
	Messages       *string  `parquet:"messages,optional" since:"2" doc:"its unchanged messages, a JSON list; null likewise"`
	Item           *string  `parquet:"item,optional" since:"2" doc:"the remaining fields of its source, a JSON object; null likewise"`
	BegunCalls     *int32   `parquet:"begun_calls,optional" since:"3" doc:"closed blocks of calls, run or not: the sum of tool_calls of its turns; null for imported rows"`
	ParsedCalls    *int32   `parquet:"parsed_calls,optional" since:"3" doc:"those that could be parsed; null likewise"`
	ToolTurns      *int32   `parquet:"tool_turns,optional" since:"3" doc:"turns with a call that could be parsed; null likewise"`
	MalformedTurns *int32   `parquet:"malformed_turns,optional" since:"3" doc:"turns with text outside the protocol's tags; null likewise"`
	VoidTurns      *int32   `parquet:"void_turns,optional" since:"3" doc:"turns with neither a call that could be parsed nor a closed answer; null likewise"`
	OpenCalls      *int32   `parquet:"open_calls,optional" since:"6" doc:"calls that were begun and not closed, most of them cut off at the limit of tokens; begun_calls does not count them; null likewise"`
}

// ImportedRow is one trajectory as an import read it, before its calls were checked (table imported). The table
// trajectories then has the whole row, and nothing else reads this one.
type ImportedRow TrajectoryRow
