package schema

// TaskRow says of one training task whether the run draws it (table tasks), where the recipe has a data section.
type TaskRow struct {
	Place   int32   `parquet:"place" doc:"place of the task among the training tasks in the order of the files, from 0"`
	TaskID  string  `parquet:"task_id" doc:"digest of the content that defines the task; problem_id in prompts"`
	Level   int32   `parquet:"level" doc:"the task's level"`
	Kept    bool    `parquet:"kept" doc:"whether the run draws it"`
	Reason  string  `parquet:"reason,dict" doc:"why it was dropped: not_integer, duplicate, contaminated or solved; empty if kept"`
	Detail  *string `parquet:"detail,optional" doc:"what the reason rests on, in one line; null if kept"`
	Samples *int32  `parquet:"samples,optional" doc:"samples of the task in the record of the other run that the recipe names; null if there are none"`
	Correct *int32  `parquet:"correct,optional" doc:"those of the samples that solved it; null if there are none"`
}

// Table implements Row.
func (TaskRow) Table() Table { return Tasks }

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
	if (r.Samples == nil) != (r.Correct == nil) {
		c.fail("correct", "must be null exactly if samples is null")
	} else if r.Samples != nil && *r.Correct > *r.Samples {
		c.fail("correct", "must be ≤ samples (%d), got %d", *r.Samples, *r.Correct)
	}
	return c.err
}

func (r TaskRow) position() position { return position{numbers: [5]int64{int64(r.Place)}} }
