package recipes

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/schema"
)

// Data filters the training tasks before the first step. The run commits which tasks are kept, and why others are
// dropped (table tasks).
type Data struct {
	IntegerAnswers bool           `json:"integer_answers" default:"false" doc:"keep only tasks whose gold answer is a whole number (rStar2 §4.2); not for programs"`
	Deduplicate    bool           `json:"deduplicate" default:"false" doc:"keep the first of the tasks whose texts are equal in lower case, without punctuation and white space"`
	Decontaminate  *Decontaminate `json:"decontaminate" doc:"drop tasks that share words with evaluation sets (rStar2 §5.1); null or absent = none"`
	Hard           *Hard          `json:"hard" doc:"drop tasks that another run solves; null or absent = none"`
	Difficulty     *Difficulty    `json:"difficulty,omitempty" doc:"keep tasks by how many answers of a given model are right (rStar2 §4.2), after the other filters; null or absent = all"`
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

// Difficulty keeps tasks by the pass rate of a given model. The run has the model answer each task and commits the
// answers (table task_answers).
type Difficulty struct {
	Model       string  `json:"model" required:"true" doc:"who answers: a run of the same store as RUN, its latest policy, or RUN@STEP; 0 is the policy before the first step. Or a checkpoint's folder: an absolute path. The model must have this recipe's tokenizer"`
	Weights     string  `json:"weights,omitempty" optional:"true" pattern:"^[0-9a-f]{64}$" doc:"weights digest of that model, as ropewalk show prints it of a checkpoint; another model is refused. Absent = any; the run notes which"`
	Samples     int     `json:"samples" default:"16" min:"1" max:"1000" doc:"answers to each task"`
	AtLeast     int     `json:"at_least" default:"2" min:"0" max:"1000" doc:"answers that must be right; tasks with fewer are dropped as too_hard"`
	AtMost      int     `json:"at_most,omitempty" optional:"true" min:"1" max:"1000" doc:"answers that may be right; tasks with more are dropped as too_easy. Absent = all"`
	Temperature float64 `json:"temperature" default:"1" above:"0" max:"10" doc:"at which the model answers; turns and tokens have the limits of rollout"`
	ShardTasks  int     `json:"shard_tasks" default:"32" min:"1" max:"10000" doc:"tasks that one activity answers and commits together; more if there would be over 1000 activities"`
}

// fault checks the bounds and how the model is named.
func (d Difficulty) fault() string {
	switch {
	case d.AtLeast > d.Samples:
		return fmt.Sprintf("has at_least %d, more than its %d samples", d.AtLeast, d.Samples)
	case d.AtMost > d.Samples:
		return fmt.Sprintf("has at_most %d, more than its %d samples", d.AtMost, d.Samples)
	case d.AtMost > 0 && d.AtMost < d.AtLeast:
		return fmt.Sprintf("has at_most %d, less than at_least %d", d.AtMost, d.AtLeast)
	case d.AtLeast == 0 && d.AtMost == 0:
		return "keeps every task: set at_least or at_most"
	}
	if _, _, err := d.Answerer(); err != nil {
		return err.Error()
	}
	return ""
}

// LatestPolicy is the step of a model that names none.
const LatestPolicy = -1

// Folder returns the folder of the model's checkpoint; "" if the model is a run's.
func (d Difficulty) Folder() string {
	if filepath.IsAbs(d.Model) {
		return filepath.Clean(d.Model)
	}
	return ""
}

// Answerer returns the run whose policy is the model, and the step: 0 before the first one, or LatestPolicy. The run is
// "" if the model is a folder.
func (d Difficulty) Answerer() (run string, step int, err error) {
	if d.Folder() != "" {
		return "", 0, nil
	}
	run, at, named := strings.Cut(d.Model, "@")
	if err := schema.CheckRunID(run); err != nil {
		return "", 0, fmt.Errorf("must have as model RUN, RUN@STEP or an absolute path, got %q", d.Model)
	}
	if !named {
		return run, LatestPolicy, nil
	}
	if step, err = strconv.Atoi(at); err != nil || step < 0 || strconv.Itoa(step) != at {
		return "", 0, fmt.Errorf("must have as model RUN, RUN@STEP or an absolute path, got %q", d.Model)
	}
	return run, step, nil
}
