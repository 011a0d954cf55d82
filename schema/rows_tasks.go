package schema

// TaskRow says of one training task whether the run draws it (table tasks), where the recipe has a data section.
type TaskRow struct {
	Place   int32   `parquet:"place" doc:"place of the task among the training tasks in the order of the files, from 0"`
	TaskID  string  `parquet:"task_id" doc:"digest of the content that defines the task; problem_id in prompts"`
	Level   int32   `parquet:"level" doc:"the task's level"`
	Kept    bool    `parquet:"kept" doc:"whether the run draws it"`
	Reason  string  `parquet:"reason,dict" doc:"why it was dropped: not_integer, duplicate, contaminated, solved, too_hard or too_easy; empty if kept"`
	Detail  *string `parquet:"detail,optional" doc:"what the reason rests on, in one line; null if kept"`
	Samples *int32  `parquet:"samples,optional" doc:"samples of the task in the record of the other run that the recipe names; null if there are none"`
	Correct *int32  `parquet:"correct,optional" doc:"those of the samples that solved it; null if there are none"`
	Answers *int32  `parquet:"answers,optional" since:"8" doc:"answers of the model by which the recipe judges the difficulty (see task_answers); null if there are none"`
	Matched *int32  `parquet:"matched,optional" since:"8" doc:"those of the answers that are right; null if there are none"`
}

// Validate implements Row.
func (r TaskRow) Validate() error {
	var c checks
	c.count("place", int64(r.Place))
	c.present("task_id", r.TaskID)
	c.count("level", int64(r.Level))
	c.line("detail", r.Detail)
	if r.Kept {
		c.empty("reason", r.Reason, "if the task is kept")
	} else {
		c.present("reason", r.Reason)
	}
	c.countOrNull("samples", r.Samples)
	c.countOrNull("correct", r.Correct)
	c.countOrNull("answers", r.Answers)
	c.countOrNull("matched", r.Matched)
	c.partOf("correct", r.Correct, "samples", r.Samples)
	c.partOf("matched", r.Matched, "answers", r.Answers)
	return c.err
}

// partOf checks that a number counts some of another one, and that both are null or neither.
func (c *checks) partOf(name string, some *int32, whole string, all *int32) {
	if (all == nil) != (some == nil) {
		c.fail(name, "must be null exactly if %s is null", whole)
	} else if all != nil && *some > *all {
		c.fail(name, "must be ≤ %s (%d), got %d", whole, *all, *some)
	}
}

// TaskAnswerRow is one answer of a given model to a training task (table task_answers). How many are right decides
// whether the run draws the task.
type TaskAnswerRow struct {
	Place          int32  `parquet:"place" doc:"place of the task among the training tasks, as in tasks"`
	TaskID         string `parquet:"task_id,dict" doc:"the task, as in tasks"`
	Sample         int32  `parquet:"sample" doc:"number of the answer to the task, from 0"`
	Matched        bool   `parquet:"matched" doc:"whether the answer is right by the recipe's reward"`
	FinalAnswer    string `parquet:"final_answer,dict" doc:"the last closed answer"`
	HasAnswer      bool   `parquet:"has_answer" doc:"whether there is one"`
	Gold           string `parquet:"gold,dict" doc:"the correct answer"`
	Turns          int32  `parquet:"turns" doc:"number of turns"`
	ToolCalls      int32  `parquet:"tool_calls" doc:"as in trajectories"`
	ToolErrors     int32  `parquet:"tool_errors" doc:"as in trajectories"`
	ResponseTokens int32  `parquet:"response_tokens" unit:"tokens" doc:"responses only"`
	Finish         string `parquet:"finish,dict" doc:"as in trajectories"`
	Text           string `parquet:"text" doc:"every response, concatenated with the observations, as graded"`
	PolicyVersion  string `parquet:"policy_version,dict" doc:"checkpoint digest of the model"`
}

// Validate implements Row.
func (r TaskAnswerRow) Validate() error {
	var c checks
	c.count("place", int64(r.Place))
	c.present("task_id", r.TaskID)
	c.count("sample", int64(r.Sample))
	c.count("turns", int64(r.Turns))
	c.count("tool_calls", int64(r.ToolCalls))
	c.count("tool_errors", int64(r.ToolErrors))
	c.count("response_tokens", int64(r.ResponseTokens))
	c.present("policy_version", r.PolicyVersion)
	return c.err
}

// Position implements Row.
func (r TaskAnswerRow) Position() Position {
	return Position{numbers: [5]int64{int64(r.Place), int64(r.Sample)}}
}

// Position implements Row.
func (r TaskRow) Position() Position { return Position{numbers: [5]int64{int64(r.Place)}} }
