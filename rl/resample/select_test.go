package resample

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/ropewalk/ropewalk/rl/advantage"
)

// streams gives one seeded stream per label and group.
func streams(seed uint64) Source {
	return func(label, group string) *rand.Rand {
		h := fnv.New64a()
		fmt.Fprint(h, label, "/", group)
		return rand.New(rand.NewPCG(seed, h.Sum64()))
	}
}

// rowsOf makes one group; each letter of shape is a trajectory: + right, − wrong, e right after a
// failing call, n right without any call.
func rowsOf(group, shape string) []Row {
	var rows []Row
	for i, c := range shape {
		r := Row{GroupID: group, TrajectoryID: fmt.Sprintf("%s/%02d", group, i), Turns: 2, AnswerTags: 1, ToolCalls: 1}
		if c != '-' {
			r.Reward = 1
		}
		switch c {
		case 'e':
			r.ToolErrors = 1
		case 'n':
			r.ToolCalls = 0
		}
		rows = append(rows, r)
	}
	return rows
}

func chain(keep int) Options {
	v := advantage.DefaultVSPO
	return Options{VSPO: &v, RoC: &RoC{Keep: keep, MinPositive: 2, MinNegative: 2}, Source: streams(7)}
}

func mustSelect(t *testing.T, rows []Row, o Options) Selection {
	t.Helper()
	s, err := Select(rows, o)
	if err != nil {
		t.Fatal(err)
	}
	checkInvariants(t, s)
	return s
}

// checkInvariants holds what is true of every selection.
func checkInvariants(t *testing.T, s Selection) {
	t.Helper()
	kept, dropped := 0, 0
	for i, r := range s.Rows {
		if r.Kept {
			kept++
		}
		if r.Kept != (r.Count > 0) || r.Kept != (r.Weight > 0) || r.Kept != (r.Reason == "") {
			t.Fatalf("row %+v is both kept and dropped", r)
		}
		if i > 0 &&
			(s.Rows[i-1].GroupID > r.GroupID || s.Rows[i-1].GroupID == r.GroupID &&
				s.Rows[i-1].TrajectoryID >= r.TrajectoryID) {
			t.Fatalf("row %d is out of order", i)
		}
	}
	for _, n := range s.DroppedBy {
		dropped += n
	}
	if kept != s.KeptRows || kept+dropped != len(s.Rows) || s.Empty() != (kept == 0) {
		t.Fatalf("%d kept rows, counted %d; %d dropped of %d", kept, s.KeptRows, dropped, len(s.Rows))
	}
}

func TestChain(t *testing.T) {
	var rows []Row
	rows = append(rows, rowsOf("a", "+++-----")...)
	rows = append(rows, rowsOf("b", "++++++++")...)
	rows = append(rows, rowsOf("c", "--------")...)
	rows = append(rows, rowsOf("d", "+-")...)
	s := mustSelect(t, rows, chain(4))
	// Two groups without variance, so two draws among a and d.
	repeats := 0
	for _, g := range []struct {
		id     string
		kept   int
		reason Reason
	}{{"a", 4, ""}, {"b", 0, ZeroVariance}, {"c", 0, ZeroVariance}, {"d", 0, SmallGroup}} {
		kept := 0
		for _, r := range s.Rows {
			if r.GroupID != g.id {
				continue
			}
			if r.Kept {
				kept++
				if want := advantage.SmoothingWeight(2, r.Count); r.Weight != want {
					t.Errorf("weight %g of count %d, want %g", r.Weight, r.Count, want)
				}
				repeats = r.Count - 1
			} else if g.reason != "" && r.Reason != g.reason {
				t.Errorf("%s was dropped for %s, want %s", r.TrajectoryID, r.Reason, g.reason)
			}
		}
		if kept != g.kept {
			t.Errorf("group %s keeps %d rows, want %d", g.id, kept, g.kept)
		}
	}
	if !s.Resampled || repeats < 0 || repeats > 2 || s.KeptGroups != 1 || s.Groups != 4 || s.RewardMax != 1 {
		t.Errorf("selection %+v", s)
	}
	// Statistics cover all sampled rewards, kept or not.
	if r := s.Rows[0]; r.GroupMean != 0.375 || math.Abs(r.GroupVariance-0.234375) > 1e-12 ||
		math.Abs(r.ValueScore-0.625*0.234375) > 1e-12 {
		t.Errorf("group a has mean %g, variance %g, value %g", r.GroupMean, r.GroupVariance, r.ValueScore)
	}
	if s.DroppedBy[ZeroVariance] != 16 || s.DroppedBy[SmallGroup] != 2 || s.DroppedBy[RoCPositiveSurplus] != 1 ||
		s.DroppedBy[RoCNegativeSurplus] != 3 {
		t.Errorf("dropped %v", s.DroppedBy)
	}
}

func TestNothingToLearn(t *testing.T) {
	rows := append(rowsOf("a", "++++"), rowsOf("b", "----")...)
	vspo := advantage.DefaultVSPO
	for name, tt := range map[string]struct {
		options Options
		kept    int
	}{
		"both":               {chain(2), 0},
		"RoC":                {Options{RoC: &RoC{Keep: 2}, Source: streams(1)}, 0},
		"RoC keeping equals": {Options{RoC: &RoC{Keep: 2, KeepEqual: true}, Source: streams(1)}, 4},
		"VSPO":               {Options{VSPO: &vspo, Source: streams(1)}, 8},
		"neither":            {Options{}, 8},
	} {
		s := mustSelect(t, rows, tt.options)
		if s.KeptRows != tt.kept || s.Resampled {
			t.Errorf("%s keeps %d rows, want %d", name, s.KeptRows, tt.kept)
		}
		for _, r := range s.Rows {
			if r.Kept && (r.Count != 1 || r.Weight != 1) {
				t.Errorf("%s: kept with count %d and weight %g, want 1 and 1", name, r.Count, r.Weight)
			}
		}
	}
	if s := mustSelect(t, nil, chain(2)); !s.Empty() || s.Groups != 0 {
		t.Errorf("no rows give %+v", s)
	}
}

func TestRoCAloneDropsEqualGroups(t *testing.T) {
	rows := append(rowsOf("a", "++++"), rowsOf("b", "+--+")...)
	s := mustSelect(t, rows, Options{RoC: &RoC{Keep: 2}, Source: streams(1)})
	if s.KeptRows != 2 || s.DroppedBy[ZeroVariance] != 4 || s.Rows[0].Reason != ZeroVariance {
		t.Errorf("got %+v", s)
	}
}

// With select uniform a positive with failed calls is kept as often as a clean one, and with weighted it is not.
func TestRoCUniformIgnoresPenalties(t *testing.T) {
	kept := map[Choice]int{}
	for choice := range map[Choice]bool{ChooseUniform: true, ChooseWeighted: true} {
		for seed := range uint64(400) {
			s := mustSelect(t, rowsOf("a", "+e--"), Options{RoC: &RoC{Keep: 2, Choice: choice}, Source: streams(seed)})
			if s.Rows[1].Kept {
				kept[choice]++
			}
		}
	}
	if n := kept[ChooseUniform]; n < 150 || n > 250 { // five standard errors around 200
		t.Errorf("uniform kept the worse positive %d times in 400", n)
	}
	if n := kept[ChooseWeighted]; n > 5 {
		t.Errorf("weighted kept the worse positive %d times in 400", n)
	}
}

func TestSelectIgnoresOrderAndOtherGroups(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	shapes := []string{"++++----", "+-------", "e+n+--+-", "--------", "++++++++", "nenene--"}
	for range 100 {
		var rows []Row
		for i := range 2 + rng.IntN(5) {
			rows = append(rows, rowsOf(fmt.Sprint("g", i), shapes[rng.IntN(len(shapes))])...)
		}
		want := mustSelect(t, rows, chain(4))
		rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		if got := mustSelect(t, rows, chain(4)); !reflect.DeepEqual(got, want) {
			t.Fatalf("order changed the selection:\n%+v\n%+v", got, want)
		}
		roc := Options{RoC: chain(4).RoC, Source: streams(7)}
		whole, shards := mustSelect(t, rows, roc), []Selected{}
		for i := range 7 {
			var part []Row
			for _, r := range rows {
				if r.GroupID == fmt.Sprint("g", i) {
					part = append(part, r)
				}
			}
			shards = append(shards, mustSelect(t, part, roc).Rows...)
		}
		for i := range whole.Rows {
			shards[i].ValueScore = whole.Rows[i].ValueScore // R_max belongs to the batch
		}
		if !reflect.DeepEqual(shards, whole.Rows) {
			t.Fatal("RoC in a group depends on other groups")
		}
	}
}

func TestWeightedPrefersCleanPositives(t *testing.T) {
	// Half clean, half with a failing call: the clean ones weigh a million times more.
	rows := rowsOf("a", "++++eeee--------")
	for seed := range uint64(50) {
		s := mustSelect(t, rows, Options{RoC: &RoC{Keep: 8}, Source: streams(seed)})
		for _, r := range s.Rows {
			if r.Reward > 0 && r.Kept != (r.Penalties.Error == 0) {
				t.Fatalf("seed %d: %s with penalty %g: kept %v", seed, r.TrajectoryID, r.Penalties.Total(), r.Kept)
			}
		}
	}
}

func TestWeightedDrawFrequencies(t *testing.T) {
	from := []candidate{{0, 0.5}, {1, 1.5}, {2, 0.25}}
	source, first := rand.New(rand.NewPCG(1, 2)), make([]float64, 3)
	const draws = 20000
	for range draws {
		first[RoC{}.pickPositives(from, 2, source)[0]]++
	}
	sum := 0.0
	for _, c := range from {
		sum += PenaltyWeight(c.penalty)
	}
	for i, c := range from {
		p := PenaltyWeight(c.penalty) / sum
		if got := first[i] / draws; math.Abs(got-p) > 5*math.Sqrt(p*(1-p)/draws) {
			t.Errorf("candidate %d came first with share %.4f, want %.4f", i, got, p)
		}
	}
}

func TestLowestNeedsNoSource(t *testing.T) {
	s := mustSelect(
		t, rowsOf("a", "e+n+----"), Options{RoC: &RoC{Keep: 4, Counts: CountsRelease, Choice: ChooseLowest}},
	)
	want := []bool{false, true, false, true, true, true, false, false}
	for i, r := range s.Rows {
		if r.Kept != want[i] {
			t.Errorf("row %d kept %v, want %v", i, r.Kept, want[i])
		}
	}
}

func TestQuotaFitsEveryGroup(t *testing.T) {
	for _, counts := range []Counts{CountsPaper, CountsRelease} {
		for keep := 4; keep <= 9; keep++ {
			for total := keep + 1; total <= 3*keep; total++ {
				for positives := range total + 1 {
					for least := range 3 {
						r := RoC{Keep: keep, Counts: counts, MinPositive: least, MinNegative: least}
						p, n := r.Quota(positives, total-positives)
						if p+n != keep || p < min(least, positives) || n < min(least, total-positives) ||
							p > positives ||
							n > total-positives {
							t.Fatalf("%+v of %d+%d keeps %d+%d", r, positives, total-positives, p, n)
						}
					}
				}
			}
		}
	}
}

func TestQuotaKeepsAllWhenBothSidesAreScarce(t *testing.T) {
	if p, n := (RoC{Keep: 2, MinPositive: 2, MinNegative: 2}).Quota(2, 2); p != 2 || n != 2 {
		t.Errorf("kept %d+%d, want all 2+2", p, n)
	}
}

func TestStructuredPenalties(t *testing.T) {
	tests := []struct {
		calls, failing, answers, turns int
		want                           Penalties
	}{
		{0, 0, 1, 1, Penalties{0.5, 0}}, {2, 1, 1, 3, Penalties{0.5, 0}}, {3, 3, 0, 3, Penalties{1, 1}},
		{1, 0, 2, 2, Penalties{0, 0.5}}, {1, 0, 9, 2, Penalties{0, 1}}, {1, 0, 1, 0, Penalties{0, 1}},
	}
	for _, tt := range tests {
		if got := StructuredPenalties(tt.calls, tt.failing, tt.answers, tt.turns); got != tt.want {
			t.Errorf("%+v: got %+v", tt, got)
		}
	}
}

func TestSelectRefuses(t *testing.T) {
	row := Row{GroupID: "g", TrajectoryID: "t", Turns: 1}
	nan, errs := row, row
	nan.Reward, errs.ToolErrors = math.NaN(), 1
	vspo := advantage.VSPO{}
	for name, tt := range map[string]struct {
		rows    []Row
		options Options
	}{
		"reward":    {[]Row{nan}, Options{}},
		"errors":    {[]Row{errs}, Options{}},
		"duplicate": {[]Row{row, row}, Options{}},
		"keep":      {nil, Options{RoC: &RoC{}, Source: streams(1)}},
		"minimum":   {nil, Options{RoC: &RoC{Keep: 2, MinPositive: 3}, Source: streams(1)}},
		"counts":    {nil, Options{RoC: &RoC{Keep: 2, Counts: "half"}, Source: streams(1)}},
		"choice":    {nil, Options{RoC: &RoC{Keep: 2, Choice: "best"}, Source: streams(1)}},
		"vspo":      {nil, Options{VSPO: &vspo, Source: streams(1)}},
		"source":    {nil, Options{RoC: &RoC{Keep: 2}}},
	} {
		if _, err := Select(tt.rows, tt.options); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
