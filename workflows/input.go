package workflows

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/schema"
)

// TrainRunInput starts a training run: the one argument of TrainRun, as the UI's form takes it.
// Either Recipe names a built-in recipe or RecipeYAML holds one.
type TrainRunInput struct {
	// Run names the run; the workflow's id when empty.
	Run string `json:"run_id,omitempty"`
	// Recipe names a built-in recipe, e.g. quickstart.
	Recipe string `json:"recipe,omitempty"`
	// RecipeYAML is a whole recipe; RecipeFile is the name that messages about it give.
	RecipeYAML string `json:"recipe_yaml,omitempty"`
	RecipeFile string `json:"recipe_file,omitempty"`
	// Set changes fields of the recipe: path=value.
	Set   []string `json:"set,omitempty"`
	Seed  *uint64  `json:"seed,omitempty"`
	Steps *int     `json:"steps,omitempty"`
	// Resume goes on with a run whose recipe is committed already; no recipe is given then.
	Resume bool `json:"resume,omitempty"`

	// Continued carries the state over a continue-as-new; nobody else sets it.
	Continued *Continued `json:"continued,omitempty"`

	invalid string // why the JSON was refused
}

// Continued is what TrainRun carries into its next history.
type Continued struct {
	Prepared wire.Prepared           `json:"prepared"`
	Policy   wire.PolicyRef          `json:"policy"`
	Next     int                     `json:"next"`
	Buffer   schema.Ref              `json:"buffer,omitzero"`
	Home     string                  `json:"home,omitempty"`
	Warm     *wire.EvaluationSummary `json:"warm,omitempty"`
	Lines    []StepLine              `json:"lines,omitempty"`

	WarmStartSeconds float64 `json:"warm_start_seconds"`

	Amendments []wire.Amendment `json:"amendments,omitempty"`
	Paused     bool             `json:"paused,omitempty"`
	Changes    []string         `json:"changes,omitempty"`
}

// UnmarshalJSON refuses unknown fields. The refusal is kept, not returned: an error here would
// be a decoding fault of the worker's, while a bad field is the caller's and fails the workflow readably.
func (in *TrainRunInput) UnmarshalJSON(data []byte) error {
	type plain TrainRunInput
	var p plain
	if err := strictJSON(data, &p); err != nil {
		*in = TrainRunInput{invalid: err.Error()}
		return nil
	}
	*in = TrainRunInput(p)
	return nil
}

// ReprocessInput starts reward → resample → advantage over imported solutions.
type ReprocessInput struct {
	Run        string   `json:"run_id,omitempty"`
	Recipe     string   `json:"recipe,omitempty"`
	RecipeYAML string   `json:"recipe_yaml,omitempty"`
	RecipeFile string   `json:"recipe_file,omitempty"`
	Set        []string `json:"set,omitempty"`
	Format     string   `json:"format"` // gsm8k-solutions | openai
	Source     string   `json:"source"` // key of the uploaded file in the store
	Digest     string   `json:"digest"` // its SHA-256, hex

	invalid string
}

// UnmarshalJSON refuses unknown fields; see TrainRunInput.
func (in *ReprocessInput) UnmarshalJSON(data []byte) error {
	type plain ReprocessInput
	var p plain
	if err := strictJSON(data, &p); err != nil {
		*in = ReprocessInput{invalid: err.Error()}
		return nil
	}
	*in = ReprocessInput(p)
	return nil
}

func strictJSON(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("input: %s: must be a %s, got a %s", wrong.Field, wrong.Type, wrong.Value)
	}
	if err != nil {
		return fmt.Errorf("input: %w", err)
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

// badInput is an error that nobody retries: its text is for the person who asked.
func badInput(format string, args ...any) error {
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), wire.FailBadInput, nil)
}

func (in TrainRunInput) validate() error {
	switch {
	case in.invalid != "":
		return badInput("%s", in.invalid)
	case in.Recipe != "" && in.RecipeYAML != "":
		return badInput("recipe, recipe_yaml: give one of them, not both")
	case !in.Resume && in.Recipe == "" && in.RecipeYAML == "":
		return badInput("recipe: name a built-in recipe (quickstart), or give one whole as recipe_yaml")
	case in.Resume && (in.Recipe != "" || in.RecipeYAML != "" || len(in.Set) > 0 || in.Seed != nil || in.Steps != nil):
		return badInput("resume: goes on with the recipe that the run has committed; recipe, set, seed and steps must be left out")
	}
	return nil
}

func (in ReprocessInput) validate() error {
	switch {
	case in.invalid != "":
		return badInput("%s", in.invalid)
	case in.Format != wire.FormatGSM8K && in.Format != wire.FormatOpenAI:
		return badInput("format: must be %s or %s, got %q", wire.FormatGSM8K, wire.FormatOpenAI, in.Format)
	case in.Source == "" || in.Digest == "":
		return badInput("source, digest: name the uploaded file by its key and SHA-256 (ropewalk import uploads and starts this)")
	}
	return nil
}
