package recipes

// Data filters the training tasks before the first step. The run commits which tasks are kept, and why others are
// dropped (table tasks).
type Data struct {
	IntegerAnswers bool           `json:"integer_answers" default:"false" doc:"keep only tasks whose gold answer is a whole number (rStar2 §5.1); not for programs"`
	Deduplicate    bool           `json:"deduplicate" default:"false" doc:"keep the first of the tasks whose texts are equal in lower case, without punctuation and white space"`
	Decontaminate  *Decontaminate `json:"decontaminate" doc:"drop tasks that share words with evaluation sets (rStar2 §5.1); null or absent = none"`
	Hard           *Hard          `json:"hard" doc:"drop tasks that another run solves; null or absent = none"`
}

// Decontaminate drops tasks that share an n-gram with the held-out tasks of the run or with other evaluation sets.
type Decontaminate struct {
	Against []string `json:"against" default:"[]" doc:"files of evaluation sets in the form of the environment's own files: absolute paths. The held-out tasks of the run's own files always count"`
	NGram   int      `json:"ngram" default:"8" min:"2" max:"64" doc:"consecutive words that may not be shared, in lower case and without punctuation; of a shorter text, all of it"`
}

// Hard drops tasks by the record of another run.
type Hard struct {
	Run     string  `json:"run" required:"true" pattern:"^[a-z0-9][a-z0-9._-]{0,127}$" doc:"run of the same store whose rewards decide, of all of its finished steps"`
	Samples int     `json:"samples" default:"1" min:"1" max:"1000000" doc:"samples of a task that the run must have before the task can be dropped"`
	Below   float64 `json:"below" default:"1" above:"0" max:"1" doc:"keep tasks whose pass rate is lower; 1 drops those that every sample solves"`
}
