package resample

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// inRounds writes rounds of groups as rows, two each; a capital is informative.
func inRounds(rounds ...string) []Row {
	var rows []Row
	for round, names := range rounds {
		for i, n := range names {
			id := fmt.Sprintf("%d%d", round, i)
			for sample, reward := range []float64{1, 1} {
				if strings.ToUpper(string(n)) == string(n) {
					reward = float64(sample)
				}
				rows = append(
					rows,
					Row{GroupID: id, TrajectoryID: fmt.Sprintf("%s/%d", id, sample), Round: round, Reward: reward},
				)
			}
		}
	}
	return rows
}

// fates lists the groups that a selection keeps, and why it drops each other one.
func fates(s Selection) string {
	var out []string
	for i := 0; i < len(s.Rows); i += 2 {
		fate := s.Rows[i].GroupID
		if why := s.Rows[i].Reason; why != "" {
			fate += " " + string(why)
		}
		out = append(out, fate)
	}
	return strings.Join(out, ", ")
}

func TestRounds(t *testing.T) {
	for name, tt := range map[string]struct {
		r    Rounds
		rows []Row
		want string
	}{
		"filled at last": {
			Rounds{DynamicSampling{Target: 3, Tries: 2}, 0}, inRounds("aBc", "Def"),
			"00 zero_variance, 01, 02 zero_variance, 10, 11, 12 zero_variance",
		},
		"enough before": {
			Rounds{DynamicSampling{Target: 3, Tries: 3}, 0}, inRounds("aBC", "DEF"),
			"00 zero_variance, 01, 02, 10, 11 dynamic_surplus, 12 dynamic_surplus",
		},
		"one round of one":     {Rounds{DynamicSampling{Target: 2, Tries: 1}, 0}, inRounds("ab"), "00, 01"},
		"no more than sampled": {Rounds{DynamicSampling{Target: 2, Tries: 3}, 0}, inRounds("aB"), "00, 01"},
		"cold start": {
			Rounds{DynamicSampling{Target: 2, Tries: 3, ColdStart: 1}, 0}, inRounds("aB"), "00, 01",
		},
		"fewer tries than sampled": {Rounds{DynamicSampling{Target: 2, Tries: 1}, 0}, inRounds("aB", "cD"),
			"00, 01, 10 zero_variance, 11 dynamic_surplus"},
		"a later cold start": {Rounds{DynamicSampling{Target: 2, Tries: 2, ColdStart: 9}, 8}, inRounds("aB", "cD"),
			"00, 01, 10 dynamic_surplus, 11 dynamic_surplus"},
		"a round of which nothing is left": {Rounds{DynamicSampling{Target: 2, Tries: 3}, 0}, inRounds("aB", "", "cd"),
			"00 zero_variance, 01, 20, 21 zero_variance"},
	} {
		got, err := Select(tt.rows, Options{Dynamic: &tt.r})
		if err != nil {
			t.Fatal(err)
		}
		if fates(got) != tt.want {
			t.Errorf("%s: %s, want %s", name, fates(got), tt.want)
		}
		rand.New(rand.NewPCG(1, 2)).Shuffle(
			len(tt.rows), func(i, j int) { tt.rows[i], tt.rows[j] = tt.rows[j], tt.rows[i] },
		)
		if again, err := Select(tt.rows, Options{Dynamic: &tt.r}); err != nil || !reflect.DeepEqual(got, again) {
			t.Errorf("%s: the order of the rows matters", name)
		}
	}
}

// A group that exclusions left too few rows is of no round: it is dropped for that, and fills nothing.
func TestRoundsLeaveShortGroupsOut(t *testing.T) {
	rows := inRounds("aBc")
	rows[0].Excluded = true
	got, err := Select(rows, Options{Dynamic: &Rounds{DynamicSampling{Target: 3, Tries: 1}, 0}})
	if err != nil {
		t.Fatal(err)
	}
	reasons := []Reason{got.Rows[0].Reason, got.Rows[1].Reason}
	if !slices.Equal(reasons, []Reason{Excluded, TooFewRows}) || got.KeptGroups != 2 {
		t.Errorf("%v, %d groups kept", reasons, got.KeptGroups)
	}
}

// RoC then chooses inside the groups that are left, from the same streams as without rounds.
func TestRoundsBeforeRoC(t *testing.T) {
	source := func(label, group string) *rand.Rand { return rand.New(rand.NewPCG(uint64(len(label+group)), 3)) }
	roc := &RoC{Keep: 2, Counts: CountsPaper, Choice: ChooseWeighted, MinPositive: 1, MinNegative: 1}
	got, err := Select(
		inRounds("AB", "CD"),
		Options{Dynamic: &Rounds{DynamicSampling{Target: 3, Tries: 2}, 0}, RoC: roc, Source: source},
	)
	if err != nil {
		t.Fatal(err)
	}
	if got.KeptRows != 6 || got.KeptGroups != 3 || got.DroppedBy[DynamicSurplus] != 2 {
		t.Errorf("%+v", got)
	}
}

func TestRoundsRefuse(t *testing.T) {
	good := Rounds{DynamicSampling{Target: 1}, 0}
	torn := inRounds("A")
	torn[1].Round = 1
	negative := inRounds("A")
	negative[0].Round = -1
	for name, tt := range map[string]struct {
		c    Chain
		rows []Row
		want string
	}{
		"step":           {Chain{Links: []Link{Rounds{DynamicSampling{Target: 1}, -1}}}, nil, "step must be ≥ 0"},
		"target":         {Chain{Links: []Link{Rounds{}}}, nil, "dynamic.target must be ≥ 1"},
		"not first":      {Chain{Links: []Link{RejectEqual{}, good}}, nil, "must be the first link"},
		"a group of two": {Chain{Links: []Link{good}}, torn, "group 00 is of rounds 0 and 1"},
		"negative":       {Chain{Links: []Link{good}}, negative, "is of round -1"},
	} {
		if _, err := tt.c.Select(tt.rows); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
