package advantage

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// sampled draws a batch of turns: groups of four trajectories of one to three turns of four tokens.
func sampled(rng *rand.Rand) []Sample {
	var out []Sample
	for g := range 3 {
		for k := range 4 {
			turns, reward := 1+rng.IntN(3), float64(rng.IntN(3))/2
			for turn := range turns {
				out = append(out, Sample{
					Row:    Row{Group: fmt.Sprint("g", g), Trajectory: fmt.Sprint("g", g, "/", k), Turn: turn},
					Reward: reward, Score: reward - 0.1*float64(turn%2), Written: 1 + rng.IntN(9),
					Mask: []int32{0, 1, int32(rng.IntN(2)), 0}, LastTurn: turn == turns-1, Invalid: turn%2 == 1,
					Anchor: fmt.Sprint("state ", turn), Observation: fmt.Sprint("you see ", turn),
				})
			}
		}
	}
	return out
}

// batch gives rows the inputs that estimators ask for, as functions of the row alone.
func batch(rows []Sample) Batch {
	tokens := func(of func(s Sample, t int) float64) [][]float64 {
		out := make([][]float64, len(rows))
		for i, s := range rows {
			for t := range s.Mask {
				out[i] = append(out[i], of(s, t))
			}
		}
		return out
	}
	return Batch{
		Rows: rows, TurnRows: true,
		Entropies: func() [][]float64 {
			return tokens(func(s Sample, t int) float64 { return float64(s.Written*(t+1)) / 10 })
		},
		Values: func() [][]float64 {
			return tokens(func(s Sample, t int) float64 { return float64(s.Written-t) / 10 })
		},
		TokenRewards: func() ([][]float64, error) {
			return tokens(func(s Sample, t int) float64 { return s.Score * float64(t) }), nil
		},
	}
}

// estimated is the declared estimator's advantage of each token.
func estimated(t *testing.T, d Declaration, rows []Sample) [][]float64 {
	t.Helper()
	e, err := d.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := batch(rows)
	out, err := e.Estimate(b)
	if err != nil {
		t.Fatalf("%s: %v", d.Name, err)
	}
	if out.Tokens == nil {
		if out.Tokens, err = Broadcast(out.Rows, b.Masks()); err != nil {
			t.Fatalf("%s: %v", d.Name, err)
		}
	}
	return out.Tokens
}

// checkOrder holds an estimator to what every one must do: advantages follow their rows when the rows change places.
func checkOrder(t *testing.T, d Declaration) {
	t.Helper()
	rng := rand.New(rand.NewPCG(4, 7))
	for range 20 {
		rows := sampled(rng)
		want := estimated(t, d, rows)
		order := rng.Perm(len(rows))
		shuffled := make([]Sample, len(rows))
		for to, from := range order {
			shuffled[to] = rows[from]
		}
		for to, got := range estimated(t, d, shuffled) {
			if !slices.Equal(got, want[order[to]]) {
				t.Fatalf(
					"%s: row %v has %v in another place, %v before", d.Name, shuffled[to].Row, got, want[order[to]],
				)
			}
		}
	}
}

func TestDeclaredEstimators(t *testing.T) {
	for _, d := range Declarations() {
		checkOrder(t, d)
		for _, r := range d.Rules {
			if fault := d.Fault(r.Param, r.Doc, nil); fault != "" {
				t.Errorf("%s: its defaults break its rule at %s: %s", d.Name, r.Param, fault)
			}
		}
	}
	_, err := New("no_such", nil)
	if err == nil || !strings.Contains(err.Error(), `advantage "no_such" is not implemented; there are grpo, `) {
		t.Errorf("got %v", err)
	}
}

// The estimator of CONTRIBUTING.md: a row's score against the best one of its group, times Scale. In the tree it is a
// file of its own, and one more line in declarations.

var belowBest = Declaration{
	Choice: choice.Choice{
		Name: "below_best", Doc: "reward minus the best of the group", Source: "CONTRIBUTING.md",
		Settings: belowBestSettings{Scale: 1},
	},
}

type belowBestSettings struct {
	Scale float64 `json:"scale" above:"0" max:"10" doc:"factor of the advantage"`
}

func (s belowBestSettings) Estimate(b Batch) (Estimates, error) {
	best := map[string]float64{}
	for _, r := range b.Rows {
		if before, ok := best[r.Group]; !ok || r.Score > before {
			best[r.Group] = r.Score
		}
	}
	return Estimates{Rows: each(b, func(r Sample) float64 { return s.Scale * (r.Score - best[r.Group]) })}, nil
}

// An estimator needs nothing beyond its declaration: parameters and construction follow from it.
func TestAddAnAdvantage(t *testing.T) {
	checkOrder(t, belowBest)
	field := choice.Fields([]choice.Choice{grpo.Choice, belowBest.Choice})
	last := field[len(field)-1]
	if last.Name != "scale" || last.Tag.Get("default") != "1" || last.Tag.Get("max") != "10" {
		t.Errorf("the field of recipes is %+v", last)
	}
	e, err := belowBest.New(choice.Params{"scale": 2.0})
	if err != nil {
		t.Fatal(err)
	}
	rows := []Sample{
		{Row: Row{Group: "a"}, Score: 1}, {Row: Row{Group: "a"}, Score: 0.5}, {Row: Row{Group: "b"}, Score: -3},
	}
	out, err := e.Estimate(Batch{Rows: rows})
	if err != nil || !slices.Equal(out.Rows, []float64{0, -1, 0}) {
		t.Errorf("got %v and %v", out.Rows, err)
	}
}
