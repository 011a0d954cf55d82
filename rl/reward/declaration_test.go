package reward

import (
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// solved is a trajectory of two turns that called once and answered.
func solved(answer, gold string) Trajectory {
	paid, won := 0.25, true
	return Trajectory{
		Text: `so <answer>\boxed{` + answer + `}</answer>`, Gold: gold, Answer: answer, Answered: true, ToolWeight: 1,
		Facts:        Facts{Turns: 2, ToolTurns: 1, Calls: 1, ParsedCalls: 1, ExecutedCalls: 1, Answered: true},
		SourceReward: &paid, SourceSuccess: &won,
	}
}

// Every reward that a run can take scores with its defaults, and a right answer at least as high as a wrong one.
func TestDeclaredRewards(t *testing.T) {
	for _, d := range Declarations() {
		if d.Called { // what it gives is the committed result of a user's function
			continue
		}
		s, err := New(d.Name, nil)
		if err != nil {
			t.Fatal(err)
		}
		var scores []float64
		for _, answer := range []string{"7", "8"} {
			trajectory := solved(answer, "7")
			if d.Name == calls.Name {
				trajectory = solved(`[{"name": "f", "arguments": {"x": `+answer+`}}]`, `[{"f": {"x": [7]}}]`)
			}
			o := d.Outcome(trajectory, Options{Literal: true})
			if d.Tested { // its verdicts come from outside
				o = o.Settled(answer == "7")
			}
			r, err := s.Score(trajectory, o)
			if err != nil {
				t.Fatalf("%s: %v", d.Name, err)
			}
			if want := answer == "7" || d.FromSource; o.Verdict.Correct() != want {
				t.Errorf("%s finds %s for a gold 7 %s", d.Name, answer, o.Verdict)
			}
			scores = append(scores, r)
		}
		if scores[0] < scores[1] || scores[0] == scores[1] && !d.FromSource {
			t.Errorf("%s gives the right answer %g and the wrong one %g", d.Name, scores[0], scores[1])
		}
	}
	_, err := New("no_such", nil)
	if err == nil || !strings.Contains(err.Error(), `reward "no_such" is not implemented; there are rstar2_outcome, `) {
		t.Errorf("got %v", err)
	}
}

// The reward of CONTRIBUTING.md: 1 for a right answer, less a price for each turn. In the tree it is a separate file,
// and one more line in declarations.

var briefly = Declaration{
	Choice: choice.Choice{
		Name: "briefly", Doc: "1 for a right answer, less a price for each turn", Source: "CONTRIBUTING.md",
		Settings: brieflyReward{Price: 0.1},
	},
	ReadsTurns: true,
}

type brieflyReward struct {
	Price float64 `json:"turn_price" min:"0" max:"1" doc:"taken for each turn"`
}

func (b brieflyReward) Score(t Trajectory, o Outcome) (float64, error) {
	return o.Reward - b.Price*float64(t.Facts.Turns), nil
}

// A reward needs nothing beyond its declaration: parameters and construction follow from it.
func TestAddAReward(t *testing.T) {
	field := choice.Fields([]choice.Choice{briefly.Choice, spear.Choice})[0]
	if field.Name != "turn_price" || field.Tag.Get("default") != "0.1" {
		t.Errorf("the field of recipes is %+v", field)
	}
	s, err := briefly.New(choice.Params{"turn_price": 0.25})
	if err != nil {
		t.Fatal(err)
	}
	trajectory := solved("7", "7")
	r, err := s.Score(trajectory, briefly.Outcome(trajectory, Options{Literal: true}))
	if err != nil || r != 0.5 {
		t.Errorf("got %g and %v, want 1 − 2·0.25", r, err)
	}
}
