package advantage

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func closeTo(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows, want %d", what, len(got), len(want))
	}
	for i := range got {
		if math.Abs(got[i]-want[i]) > 1e-12 {
			t.Errorf("%s: row %d has %g, want %g", what, i, got[i], want[i])
		}
	}
}

func TestOPOByHand(t *testing.T) {
	scores, lengths := []float64{1, 0, 3, 0.5, 0.5, 7}, []int{10, 30, 1, 4, 9, 2}
	groups := []string{"a", "a", "b", "c", "c", "b"}
	// a: (10·1 + 30·0)/40 = 0.25; b: (1·3 + 2·7)/3 = 17/3; c: equal scores.
	want := []float64{0.75, -0.25, 3 - 17./3, 0, 0, 7 - 17./3}
	got, err := OPO{}.Estimate(scores, lengths, groups)
	if err != nil {
		t.Fatal(err)
	}
	closeTo(t, "opo", got, want)
	if got[3] != 0 || got[4] != 0 {
		t.Errorf("equal scores give %g and %g", got[3], got[4])
	}
	for single, want := range map[SingleGroup]float64{SingleRaw: 4, SingleZero: 0} {
		got, err := OPO{SingleGroup: single}.Estimate([]float64{4}, []int{1}, []string{"g"})
		if err != nil || got[0] != want {
			t.Errorf("group of one, %s: %v, %v", single, got, err)
		}
	}
	if got, err := (OPO{}).Estimate(nil, nil, nil); len(got) != 0 || err != nil {
		t.Errorf("no rows: %v, %v", got, err)
	}
}

// Of equal lengths the baseline is the mean, and scaling all lengths changes nothing.
func TestOPOOfEqualLengths(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	scores, groups := make([]float64, 40), make([]string, 40)
	equal, lengths, longer := make([]int, 40), make([]int, 40), make([]int, 40)
	for i := range scores {
		scores[i], groups[i], equal[i], lengths[i] = rng.NormFloat64(), string(rune('a'+i%5)), 7, 1+rng.IntN(100)
		longer[i] = 3 * lengths[i]
	}
	plain, _ := Group{}.Estimate(scores, groups)
	got, err := OPO{}.Estimate(scores, equal, groups)
	if err != nil {
		t.Fatal(err)
	}
	closeTo(t, "equal lengths", got, plain)
	one, _ := OPO{}.Estimate(scores, lengths, groups)
	three, _ := OPO{}.Estimate(scores, longer, groups)
	closeTo(t, "three times as long", three, one)
}

func TestGPGByHand(t *testing.T) {
	scores := []float64{1, 0, 1, 1, 0, 0, 0, 2}
	groups := []string{"a", "a", "b", "b", "c", "c", "d", "d"}
	centred := []float64{0.5, -0.5, 0, 0, 0, 0, -1, 1}
	for _, c := range []struct {
		gpg   GPG
		alpha float64
	}{{GPG{}, 8. / 4}, {GPG{Idle: IdleEqual}, 8. / 4}, {GPG{Idle: IdleZero}, 8. / 4}} {
		got, err := c.gpg.Estimate(scores, groups)
		if err != nil {
			t.Fatal(err)
		}
		want := make([]float64, len(centred))
		for i, a := range centred {
			want[i] = c.alpha * a
		}
		closeTo(t, string(c.gpg.Idle), got, want)
	}
	tests := []struct {
		name   string
		gpg    GPG
		scores []float64
		groups []string
		want   []float64
	}{
		{
			"all right, and a mixed one", GPG{}, []float64{1, 1, 1, 0}, []string{"a", "a", "b", "b"},
			[]float64{0, 0, 1, -1},
		},
		{
			"the same by released code", GPG{Idle: IdleZero}, []float64{1, 1, 1, 0}, []string{"a", "a", "b", "b"},
			[]float64{0, 0, 2. / 3, -2. / 3},
		},
		{"nothing to learn", GPG{}, []float64{0, 0}, []string{"a", "a"}, []float64{0, 0}},
		{"a group of one", GPG{}, []float64{3, 0, 0}, []string{"a", "b", "b"}, []float64{9, 0, 0}},
		{
			"a group of one that is nothing", GPG{SingleGroup: SingleZero}, []float64{3, 1, 0, 0},
			[]string{"a", "b", "b", "b"}, []float64{0, 4. / 3 * 2 / 3, -4. / 9, -4. / 9},
		},
		{"no rows", GPG{}, nil, nil, nil},
	}
	for _, c := range tests {
		got, err := c.gpg.Estimate(c.scores, c.groups)
		if err != nil {
			t.Fatal(err)
		}
		closeTo(t, c.name, got, c.want)
	}
}

func TestBaselinesRefuse(t *testing.T) {
	nan := math.NaN()
	_, length := OPO{}.Estimate([]float64{1, 2}, []int{1, 0}, []string{"g", "g"})
	_, short := OPO{}.Estimate([]float64{1, 2}, []int{1}, []string{"g", "g"})
	_, score := OPO{}.Estimate([]float64{nan}, []int{1}, []string{"g"})
	_, single := OPO{SingleGroup: "x"}.Estimate(nil, nil, nil)
	_, idle := GPG{Idle: "x"}.Estimate(nil, nil)
	_, names := GPG{}.Estimate([]float64{1}, nil)
	for text, err := range map[string]error{
		"length of row 1": length, "1 lengths for 2 scores": short, "score of row 0": score, "single_group": single,
		"idle": idle, "1 scores for 0 group names": names,
	} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v does not say %q", err, text)
		}
	}
}
