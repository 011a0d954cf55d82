package workflows

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// TrainRunInput starts a training run. It is the only argument of TrainRun, as the UI's form takes it. Set either
// Recipe or RecipeYAML.
type TrainRunInput struct {
	// Run names the run; empty: the workflow's id.
	Run string `json:"run_id,omitempty"`
	// Recipe names a built-in recipe, e.g. quickstart.
	Recipe string `json:"recipe,omitempty"`
	// RecipeYAML is a whole recipe; RecipeFile is its name in messages.
	RecipeYAML string `json:"recipe_yaml,omitempty"`
	RecipeFile string `json:"recipe_file,omitempty"`
	// Set changes fields of the recipe: path=value.
	Set   []string `json:"set,omitempty"`
	Seed  *uint64  `json:"seed,omitempty"`
	Steps *int     `json:"steps,omitempty"`
	// Resume continues a run whose recipe is already committed; then no recipe is given.
	Resume bool `json:"resume,omitempty"`
	// Fork is the step of another run after which the run goes on, with that run's recipe and the changes of Set.
	Fork *schema.ForkPoint `json:"fork,omitempty"`
	// ForkFrom is a stage of the next step: reward, resample or advantage. The run then goes on from there, with what
	// the other run has committed of that step before the stage.
	ForkFrom string `json:"fork_from,omitempty"`
	// Until ends the workflow after this step, and leaves the run as it is: an experiment asks its stop rule then. The
	// same input with another Until goes on. 0: the run goes to its end.
	Until int `json:"until,omitempty"`
	// Unrecorded are the measured times that the run had not recorded when it was ended; a command that resumes it asks
	// the ended workflow for them.
	Unrecorded []api.RecordTimingsInput `json:"unrecorded,omitempty"`

	// Continued carries the state over a continue-as-new; no one else sets it.
	Continued *Continued `json:"continued,omitempty"`

	invalid string // why the JSON was refused
}

// Continued is what TrainRun carries into its next history.
type Continued struct {
	Prepared api.Prepared           `json:"prepared"`
	Policy   api.PolicyRef          `json:"policy"`
	Earlier  []api.PolicyRef        `json:"earlier,omitempty"`
	Next     int                    `json:"next"`
	Buffer   schema.Ref             `json:"buffer,omitzero"`
	Home     string                 `json:"home,omitempty"`
	Due      *Due                   `json:"due,omitempty"`
	Selected *Selected              `json:"selected,omitempty"`
	Warm     *api.EvaluationSummary `json:"warm,omitempty"`
	Measured []MeasuredLine         `json:"measured,omitempty"`
	Lines    []StepLine             `json:"lines,omitempty"`

	WarmStartSeconds float64 `json:"warm_start_seconds"`

	Amendments    []api.Amendment `json:"amendments,omitempty"`
	NextAmendment int             `json:"next_amendment,omitempty"`
	Unsettled     *api.AmendInput `json:"unsettled,omitempty"`
	Paused        bool            `json:"paused,omitempty"`
	Changes       []string        `json:"changes,omitempty"`

	// Asked is how many steps the recipe asked for at first. Started and Totals are of all executions of the run.
	Asked   int       `json:"asked,omitempty"`
	Started time.Time `json:"started,omitzero"`
	Totals  Totals    `json:"totals,omitzero"`

	// Retention is the state of pruning, Evaluated lists the evaluations that pruning has not seen yet, and Unpruned
	// says why the latest pruning failed.
	Retention *api.Retention      `json:"retention,omitempty"`
	Evaluated []api.EvaluatedStep `json:"evaluated,omitempty"`
	Unpruned  string              `json:"unpruned,omitempty"`
}

// UnmarshalJSON refuses unknown fields. It keeps the refusal instead of returning it: an error here would count as a
// decoding fault of the worker, while a bad field is the caller's fault and must fail the workflow with a readable
// message.
func (in *TrainRunInput) UnmarshalJSON(data []byte) error {
	type plain TrainRunInput
	return strictJSON(data, (*plain)(in), &in.invalid)
}

// ReprocessInput starts reward → resample → advantage over imported trajectories.
type ReprocessInput struct {
	Run        string   `json:"run_id,omitempty"`
	Recipe     string   `json:"recipe,omitempty"`
	RecipeYAML string   `json:"recipe_yaml,omitempty"`
	RecipeFile string   `json:"recipe_file,omitempty"`
	Set        []string `json:"set,omitempty"`
	Format     string   `json:"format"` // openai
	Source     string   `json:"source"` // key of the uploaded file in the store
	Digest     string   `json:"digest"` // its SHA-256, hex

	invalid string
}

// UnmarshalJSON refuses unknown fields; see TrainRunInput.
func (in *ReprocessInput) UnmarshalJSON(data []byte) error {
	type plain ReprocessInput
	return strictJSON(data, (*plain)(in), &in.invalid)
}

// EvaluateInput starts an evaluation of its own: one policy, measured under a recipe. The recipe's last step names the
// place of the evaluation in the record.
type EvaluateInput struct {
	Run        string   `json:"run_id,omitempty"`
	RecipeYAML string   `json:"recipe_yaml,omitempty"`
	RecipeFile string   `json:"recipe_file,omitempty"`
	Set        []string `json:"set,omitempty"`
	// Policy is the policy to measure. With LatestOf it is the latest one of a training, as the evaluation finds it.
	// With Checkpoint it is the model at the recipe's policy.checkpoint, and may name its digest.
	Policy     api.PolicyRef `json:"policy,omitzero"`
	LatestOf   string        `json:"latest_of,omitempty"`
	Checkpoint bool          `json:"checkpoint,omitempty"`
	// Resume continues with the recipe and the policy that the run has committed.
	Resume bool `json:"resume,omitempty"`

	invalid string
}

// UnmarshalJSON refuses unknown fields; see TrainRunInput.
func (in *EvaluateInput) UnmarshalJSON(data []byte) error {
	type plain EvaluateInput
	return strictJSON(data, (*plain)(in), &in.invalid)
}

func (in EvaluateInput) validate() error {
	switch {
	case in.invalid != "":
		return badInput("%s", in.invalid)
	case in.Resume && (in.RecipeYAML != "" || len(in.Set) > 0 || in.Policy.Digest != "" || in.LatestOf != ""):
		return badInput("resume: goes on with the recipe and the policy that the run has committed; recipe_yaml, " +
			"set, policy and latest_of must be left out")
	case in.Resume:
		return nil
	case in.RecipeYAML == "":
		return badInput("recipe_yaml: give the recipe of the evaluation (ropewalk evaluate makes it of the policy's)")
	case in.LatestOf != "" && (in.Policy.Digest != "" || in.Checkpoint):
		return badInput("policy, latest_of, checkpoint: give one of them")
	case in.Checkpoint && in.Policy.Manifest.Key != "":
		return badInput("policy.manifest: the recipe's policy.checkpoint is measured; leave it out")
	case in.Checkpoint:
		return nil
	case in.LatestOf != "":
		return checkRun(in.LatestOf)
	case in.Policy.Digest == "" || in.Policy.Manifest.Key == "":
		return badInput("policy: name the manifest and the digest of the policy to evaluate")
	}
	return nil
}

// strictJSON decodes an input without unknown fields. An error becomes the text invalid, with the other fields empty;
// it is not returned.
func strictJSON[T any](data []byte, into *T, invalid *string) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		*into = *new(T)
		*invalid = fmt.Sprintf("input: %v", badinput.JSON(err))
	}
	return nil
}

var runIDPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,127}$`)

// checkRun refuses a run id that cannot be part of a key.
func checkRun(run string) error {
	if !runIDPattern.MatchString(run) {
		return badInput("run_id: must match %s, got %q", runIDPattern, run)
	}
	return nil
}

// badInput is an error that Temporal never retries; the person who started the workflow reads its text.
func badInput(format string, args ...any) error {
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), api.FailBadInput, nil)
}

func (in TrainRunInput) validate() error {
	switch {
	case in.invalid != "":
		return badInput("%s", in.invalid)
	case in.Recipe != "" && in.RecipeYAML != "":
		return badInput("recipe, recipe_yaml: give one of them, not both")
	case in.Fork != nil && (in.Resume || in.Recipe != "" || in.RecipeYAML != "" || in.Seed != nil || in.Steps != nil):
		return badInput("fork: goes on with the recipe of the other run; recipe, resume, seed and steps must be left " +
			"out, and set changes the recipe")
	case in.ForkFrom != "" && in.Fork == nil:
		return badInput("fork_from: only a fork begins at a stage")
	case in.Fork != nil:
		if err := in.Fork.Validate(); err != nil {
			return badInput("fork: %v", err)
		}
	case !in.Resume && in.Recipe == "" && in.RecipeYAML == "":
		return badInput("recipe: name a built-in recipe (quickstart), or give one whole as recipe_yaml")
	case in.Resume && (in.Recipe != "" || in.RecipeYAML != "" || len(in.Set) > 0 || in.Seed != nil || in.Steps != nil):
		return badInput("resume: goes on with the recipe that the run has committed; recipe, set, seed and steps " +
			"must be left out")
	}
	return nil
}

func (in ReprocessInput) validate() error {
	switch {
	case in.invalid != "":
		return badInput("%s", in.invalid)
	case in.Format != api.FormatOpenAI:
		return badInput("format: must be %s, got %q", api.FormatOpenAI, in.Format)
	case in.Source == "" || in.Digest == "":
		return badInput("source, digest: name the uploaded file by its key and SHA-256 (ropewalk import uploads and " +
			"starts this)")
	}
	return nil
}
