package resample

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/ropewalk/ropewalk/rl/advantage"
	"github.com/ropewalk/ropewalk/rl/choice"
)

func mustRun(t testing.TB, rows []Row, source Source, links ...Link) Selection {
	t.Helper()
	s, err := Chain{Links: links, Source: source}.Select(rows)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestChainNamesItsLinks(t *testing.T) {
	for want, o := range map[string]Options{
		"every row with a reward": {},
		"VSPO, then RoC":          {VSPO: &advantage.VSPO{}, RoC: &RoC{}},
		"dynamic sampling, then no equal rewards, then low variance, then overlong mask, then void mask": {
			Dynamic: &Rounds{}, RejectEqual: true, LowVariance: &LowVariance{},
			Masks: masking("overlong", "void_turns"),
		},
		"repetition mask, then unreadable mask": {Masks: masking("repetition", "unreadable")},
	} {
		if got := o.String(); got != want {
			t.Errorf("the chain is %q, want %q", got, want)
		}
	}
}

// masking makes the links of filters without parameters, in that order.
func masking(names ...string) []Link {
	var out []Link
	for _, name := range names {
		f, _ := choice.Declared(filters, name)
		masker, _ := f.Settings.(Masker)
		out = append(out, Mask{Filter: f, Masker: masker})
	}
	return out
}

func TestLinksSeeWhatIsLeft(t *testing.T) {
	rows := append(rowsOf("a", "++++"), rowsOf("b", "++--")...)
	rows = append(rows, rowsOf("c", "+---")...)
	rows = append(rows, rowsOf("d", "----")...)
	// Of four groups half are kept: with the equal ones rejected first, half of two.
	for name, tt := range map[string]struct {
		links []Link
		want  map[Reason]int
		kept  int
	}{
		"reject equal": {[]Link{RejectEqual{}}, map[Reason]int{ZeroVariance: 8}, 2},
		"low variance": {[]Link{LowVariance{Keep: 0.5}}, map[Reason]int{LowVarianceGroup: 8}, 2},
		"equal, then low": {
			[]Link{RejectEqual{}, LowVariance{Keep: 0.5}}, map[Reason]int{ZeroVariance: 8, LowVarianceGroup: 4}, 1,
		},
		"low, then equal": {
			[]Link{LowVariance{Keep: 0.75}, RejectEqual{}}, map[Reason]int{LowVarianceGroup: 4, ZeroVariance: 4}, 2,
		},
		"reversed":       {[]Link{LowVariance{Keep: 0.5, Reverse: true}}, map[Reason]int{LowVarianceGroup: 8}, 2},
		"int() may be 0": {[]Link{LowVariance{Keep: 0.2}}, map[Reason]int{LowVarianceGroup: 16}, 0},
		"all":            {[]Link{LowVariance{Keep: 1}}, map[Reason]int{}, 4},
		"low, then resampled": {
			[]Link{LowVariance{Keep: 0.5}, RoC{Keep: 2}},
			map[Reason]int{LowVarianceGroup: 8, RoCPositiveSurplus: 1, RoCNegativeSurplus: 3}, 2,
		},
	} {
		s := mustRun(t, rows, streams(1), tt.links...)
		checkInvariants(t, s)
		if !reflect.DeepEqual(s.DroppedBy, tt.want) || s.KeptGroups != tt.kept {
			t.Errorf("%s: %d groups kept, dropped %v; want %d, %v", name, s.KeptGroups, s.DroppedBy, tt.kept, tt.want)
		}
	}
}

// Value resampling after another filter knows only the groups that are left.
func TestValueResamplingAfterAFilter(t *testing.T) {
	rows := append(rowsOf("a", "++++"), rowsOf("b", "++--")...)
	rows[0].Reward, rows[1].Reward = 9, 9 // the greatest reward, in the group that varies most
	vspo := ValueResampling{advantage.DefaultVSPO}
	s := mustRun(t, rows, streams(1), LowVariance{Keep: 0.5, Reverse: true}, vspo)
	if s.RewardMax != 1 || s.Resampled || s.KeptRows != 4 || s.Rows[4].ValueScore != 0.5*0.25 {
		t.Errorf("selection %+v", s)
	}
}

func TestLowVarianceTies(t *testing.T) {
	third := math.Sqrt(2) / 3
	for _, tt := range []struct {
		filter     LowVariance
		deviations []float64
		want       string
	}{
		{LowVariance{Keep: 0.75}, []float64{0, 0.5, 0.25, 0.4, 0}, "[false true true true false]"},
		{LowVariance{Keep: 0.5}, []float64{third, 0, third * (1 + 1e-15), 0}, "[true false true false]"},
		{LowVariance{Keep: 0.5}, []float64{third, third * (1 + 1e-15)}, "[true false]"}, // group order, not rounding
		{LowVariance{Keep: 0.5, Reverse: true}, []float64{1, 1, 1, 0.5}, "[true false false true]"},
		{LowVariance{Keep: 0.75}, []float64{1}, "[false]"},
		{LowVariance{Keep: 0.75}, nil, "[]"},
	} {
		if got := fmt.Sprint(tt.filter.Chosen(tt.deviations)); got != tt.want {
			t.Errorf("%+v of %v keeps %s, want %s", tt.filter, tt.deviations, got, tt.want)
		}
	}
}

func TestDeviation(t *testing.T) {
	if d := SampleDeviation.Of([]float64{1, 0, 1, 0}); math.Abs(d-math.Sqrt(1.0/3)) > 1e-15 {
		t.Errorf("sample deviation %g", d)
	}
	if d := PopulationDeviation.Of([]float64{1, 0, 1, 0}); d != 0.5 {
		t.Errorf("population deviation %g", d)
	}
	for _, v := range [][]float64{nil, {3}, {0.1, 0.1, 0.1}} {
		if SampleDeviation.Of(v) != 0 || PopulationDeviation.Of(v) != 0 {
			t.Errorf("%v has a deviation", v)
		}
	}
}

func TestMasksKeepTheReward(t *testing.T) {
	rows := rowsOf("a", "++--")
	rows[0].Matched = []Reason{OverlongResponse}
	rows[2].Matched = []Reason{RepetitiveResponse, VoidTurn}
	rows[3].Matched = []Reason{UnreadableResponse}
	plain := mustRun(t, rows, nil)
	s := mustRun(t, rows, nil, masking("overlong", "void_turns", "repetition", "unreadable")...)
	for i, want := range []Reason{OverlongResponse, "", VoidTurn, UnreadableResponse} {
		r := s.Rows[i]
		if r.Reason != want || r.Masked != (want != "") || !r.Kept || r.Count != 1 || r.Weight != 1 {
			t.Errorf("row %d: %+v, want reason %q", i, r, want)
		}
		if r.GroupMean != plain.Rows[i].GroupMean || r.Reward != plain.Rows[i].Reward {
			t.Errorf("a mask changed the statistics of row %d: %+v", i, r)
		}
	}
	if s.KeptRows != 4 || s.MaskedRows != 3 || s.Empty() || len(s.DroppedBy) != 0 || s.MaskedBy[VoidTurn] != 1 {
		t.Errorf("selection %+v", s)
	}
	if s := mustRun(t, rows, nil, masking("overlong", "void_turns", "overlong")...); s.MaskedRows != 2 || s.Empty() {
		t.Errorf("selection %+v", s)
	}
	for i := range rows {
		rows[i].Matched = []Reason{OverlongResponse}
	}
	if s := mustRun(t, rows, nil, masking("overlong")...); !s.Empty() || s.KeptRows != 4 {
		t.Errorf("a batch that is masked whole is left to learn from: %+v", s)
	}
	// A masked row is still a candidate of RoC; what drops it is its reason then.
	s = mustRun(t, rows, streams(3), append(masking("overlong"), RoC{Keep: 2})...)
	if s.KeptRows != 2 || s.MaskedRows != 2 || s.DroppedBy[RoCPositiveSurplus] != 1 ||
		s.DroppedBy[RoCNegativeSurplus] != 1 {
		t.Errorf("selection %+v", s)
	}
}

func TestHardProblems(t *testing.T) {
	h := HardProblems{MinSamples: 4, MinCorrect: 2, Evaluations: []Evaluation{
		{"solved", 8, 8}, {"hard", 5, 8}, {"hopeless", 1, 8}, {"barely", 2, 8}, {"few", 3, 3}, {"none", 0, 0},
	}}
	verdicts, err := h.Filter()
	if err != nil {
		t.Fatal(err)
	}
	want := []ProblemVerdict{{"barely", true, ""}, {"few", true, ""}, {"hard", true, ""},
		{"hopeless", false, HopelessProblem}, {"none", true, ""}, {"solved", false, SolvedProblem}}
	if !reflect.DeepEqual(verdicts, want) {
		t.Errorf("verdicts %+v", verdicts)
	}
	for name, bad := range map[string]HardProblems{
		"evaluation":      {Evaluations: []Evaluation{{"p", 3, 2}}},
		"same evaluation": {Evaluations: []Evaluation{{"p", 1, 2}, {"p", 1, 2}}},
		"minimum":         {MinSamples: -1},
	} {
		if _, err := bad.Filter(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestTextPenaltiesCanStandIn(t *testing.T) {
	rows := rowsOf("a", "++++----")
	for i := range rows[:4] {
		rows[i].Penalties = &Penalties{Error: float64(4 - i), Format: 0.5}
	}
	s := mustRun(t, rows, nil, RoC{Keep: 4, Choice: ChooseLowest})
	for i, kept := range []bool{false, false, true, true} {
		if s.Rows[i].Kept != kept || s.Rows[i].Penalties.Total() != float64(4-i)+0.5 {
			t.Errorf("row %d: %+v", i, s.Rows[i])
		}
	}
}

// wholeChain uses every link at once.
func wholeChain() []Link {
	return append(
		masking("overlong", "void_turns", "repetition", "unreadable"),
		LowVariance{Keep: 0.9}, ValueResampling{advantage.DefaultVSPO}, RoC{Keep: 4, MinPositive: 1},
	)
}

func TestWholeChainIgnoresOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	shapes := []string{"++++----", "+-------", "e+n+--+-", "--------", "++++++++", "+-", "+"}
	differs := false
	for range 100 {
		var rows []Row
		for i := range 1 + rng.IntN(8) {
			rows = append(rows, rowsOf(fmt.Sprint("g", i), shapes[rng.IntN(len(shapes))])...)
		}
		for i := range rows {
			r := &rows[i]
			for _, f := range filters {
				if rng.IntN(5) == 0 {
					r.Matched = append(r.Matched, f.Why)
				}
			}
			r.Excluded = rng.IntN(9) == 0
			r.Reward += rng.Float64()
		}
		want := mustRun(t, rows, streams(5), wholeChain()...)
		rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		if got := mustRun(t, rows, streams(5), wholeChain()...); !reflect.DeepEqual(got, want) {
			t.Fatalf("order changed the selection:\n%+v\n%+v", got, want)
		}
		differs = differs || !reflect.DeepEqual(mustRun(t, rows, streams(6), wholeChain()...), want)
		for _, r := range want.Rows {
			if r.Kept != (r.Count > 0) || r.Masked && !r.Kept || (r.Reason == "") != (r.Kept && !r.Masked) {
				t.Fatalf("verdict %+v contradicts itself", r)
			}
		}
	}
	if !differs {
		t.Error("another seed selects the same everywhere")
	}
	if s := mustRun(t, nil, streams(1), wholeChain()...); !s.Empty() || len(s.Rows) != 0 {
		t.Errorf("no rows give %+v", s)
	}
}

func TestChainRefuses(t *testing.T) {
	vspo := ValueResampling{advantage.DefaultVSPO}
	row := Row{GroupID: "g", TrajectoryID: "t"}
	penalty := row
	penalty.Penalties = &Penalties{Error: math.NaN()}
	for name, tt := range map[string]struct {
		rows   []Row
		source Source
		links  []Link
	}{
		"nil":        {links: []Link{nil}},
		"two vspo":   {links: []Link{vspo, vspo}, source: streams(1)},
		"two roc":    {links: []Link{RoC{Keep: 4}, RoC{Keep: 2}}, source: streams(1)},
		"no source":  {links: []Link{vspo}},
		"keep 0":     {links: []Link{LowVariance{}}},
		"keep NaN":   {links: []Link{LowVariance{Keep: math.NaN()}}},
		"deviation":  {links: []Link{LowVariance{Keep: 1, Deviation: "mean"}}},
		"repetition": {links: []Link{Mask{Filter: repetition, Masker: Repetition{Gram: 20, Times: 1}}}},
		"penalty":    {rows: []Row{penalty}},
	} {
		if _, err := (Chain{Links: tt.links, Source: tt.source}).Select(tt.rows); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// BenchmarkRoC selects of 100,000 trajectories in groups of 32, in random order.
func BenchmarkRoC(b *testing.B) {
	const group, total = 32, 100_000
	rng := rand.New(rand.NewPCG(1, 1))
	rows := make([]Row, total)
	for i := range rows {
		rows[i] = Row{
			GroupID: fmt.Sprintf("s000001/g%06d", i/group), TrajectoryID: fmt.Sprintf(
				"s000001/g%06d/%03d", i/group, i%group,
			),
			ToolCalls: 4, ToolErrors: rng.IntN(5), AnswerTags: rng.IntN(3), Turns: 5, Reward: float64(rng.IntN(2)),
		}
	}
	rng.Shuffle(total, func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	source := func(_, g string) *rand.Rand { return rand.New(rand.NewPCG(uint64(len(g)), 7)) }
	for _, choice := range []Choice{ChooseWeighted, ChooseLowest} {
		b.Run(string(choice), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := mustRun(b, rows, source, RoC{Keep: 16, MinPositive: 2, MinNegative: 2, Choice: choice})
				if s.KeptRows != total/2 {
					b.Fatalf("kept %d rows", s.KeptRows)
				}
			}
			b.ReportMetric(float64(total)*float64(b.N)/b.Elapsed().Seconds(), "trajectories/s")
		})
	}
}
