package schedule

import (
	"reflect"
	"testing"

	"github.com/ropewalk/ropewalk/rl/choice"
)

func TestDeclarations(t *testing.T) {
	want := map[string]reflect.Type{
		"gamma_horizon": reflect.TypeFor[int](), "mu_horizon": reflect.TypeFor[int](),
		"stages": reflect.TypeFor[[]Stage](),
	}
	fields := choice.Switches(Declarations())
	if len(fields) != len(want) {
		t.Errorf("%d schedules, want %d", len(fields), len(want))
	}
	for _, f := range fields {
		if f.Type != want[f.Name] || f.Tag.Get("doc") == "" {
			t.Errorf("%s is %s: %q", f.Name, f.Type, f.Tag.Get("doc"))
		}
	}
}

// The schedule of CONTRIBUTING.md: a temperature that falls. In the tree it is a separate file, and one more line in
// declarations; the stage that samples calls At.

var cooling = choice.Choice{
	Name: "cooling", Doc: "the temperature falls", Source: "CONTRIBUTING.md",
	Field: "the temperature falls to a last value; null or absent = off", Settings: Cooling{Steps: 10, Last: 0.5},
}

// Cooling lowers the temperature from 1 to Last over Steps.
type Cooling struct {
	Steps int     `json:"steps" min:"1" max:"1000000" doc:"steps until the last value"`
	Last  float64 `json:"last" above:"0" max:"1" doc:"the last value"`
}

// At returns the temperature of a step.
func (c Cooling) At(step int) float64 { return 1 - (1-c.Last)*covered(step, c.Steps) }

func TestAddASchedule(t *testing.T) {
	field := choice.Switches([]choice.Choice{cooling})[0]
	if want := (map[string]string{"steps": "10", "last": "0.5"}); !reflect.DeepEqual(field.Defaults, want) {
		t.Errorf("its section in recipes has the defaults %v, want %v", field.Defaults, want)
	}
	settings, on, err := cooling.On(choice.Params{"cooling": &Cooling{Steps: 4, Last: 0.2}})
	if err != nil || !on {
		t.Fatalf("got %v and %v", on, err)
	}
	for step, want := range map[int]float64{0: 1, 2: 0.6, 4: 0.2, 99: 0.2} {
		if got := settings.(Cooling).At(step); got < want-1e-12 || got > want+1e-12 {
			t.Errorf("step %d: %g, want %g", step, got, want)
		}
	}
}
