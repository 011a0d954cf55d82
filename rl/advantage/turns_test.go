package advantage

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// naiveGiGPO is the estimator with exact anchors as its formulas read, a loop for every sum.
func naiveGiGPO(g GiGPO, rows []GiGPORow) []float64 {
	score, episode := make([]float64, len(rows)), make([]float64, len(rows))
	for i, a := range rows {
		for _, b := range rows {
			if a.Group != b.Group || a.Trajectory != b.Trajectory {
				continue
			}
			episode[i] += b.Reward
			if b.Turn >= a.Turn {
				score[i] += math.Pow(g.Gamma, float64(b.Turn-a.Turn)) * b.Reward
			}
		}
		if a.Invalid {
			score[i], episode[i] = score[i]-g.InvalidPenalty, episode[i]-g.InvalidPenalty
		}
	}
	uid, anchor := make([]string, len(rows)), make([]string, len(rows))
	for i, r := range rows {
		uid[i], anchor[i] = r.Group, r.Group+"|"+r.Observation
	}
	std := g.Mode != ModeMeanNorm
	out, step := naive(episode, uid, std), naive(score, anchor, std)
	for i := range out {
		alone := true
		for j := range anchor {
			alone = alone && (i == j || anchor[i] != anchor[j])
		}
		if !alone {
			out[i] += g.Omega * step[i]
		}
	}
	return out
}

func TestGiGPOAgreesWithTheFormula(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	for range 200 {
		rows := gigpoRows(randomSample(rng))
		for _, mode := range []Mode{ModeMeanNorm, ModeMeanStdNorm} {
			g := GiGPO{Gamma: 0.9, Omega: 0.7, Mode: mode, InvalidPenalty: 0.1}
			got, err := g.Estimate(rows)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range naiveGiGPO(g, rows) {
				// Rounding is divided by a deviation that may be 0 but for it, hence the 1e-6 of epsilon.
				if math.Abs(got.Advantage[i]-want) > 1e-8 {
					t.Fatalf("%s row %d: %g, want %g", mode, i, got.Advantage[i], want)
				}
			}
		}
	}
}

// A summary between two turns changes neither their returns nor their anchor groups. Its own advantage is the
// episode's.
func TestGiGPOIgnoresTurnsAside(t *testing.T) {
	row := func(trajectory string, turn int, observation string, reward float64) GiGPORow {
		return GiGPORow{Row: Row{Group: "g", Trajectory: trajectory, Turn: turn}, Observation: observation,
			Reward: reward}
	}
	aside := func(trajectory string, turn int) GiGPORow {
		r := row(trajectory, turn, "", 0)
		r.Aside = true
		return r
	}
	plain := []GiGPORow{row("a", 0, "", 0), row("a", 1, "y", 10), row("b", 0, "", 0), row("b", 1, "y", 0)}
	with := []GiGPORow{row("a", 0, "", 0), aside("a", 1), row("a", 2, "y", 10), row("b", 0, "", 0), aside("b", 1),
		row("b", 2, "y", 0)}
	for _, anchors := range []Anchors{{}, {Similarity: 0.9}} {
		g := GiGPO{Gamma: 0.5, Omega: 1, Mode: ModeMeanNorm, Anchors: anchors}
		want, err := g.Estimate(plain)
		if err != nil {
			t.Fatal(err)
		}
		got, err := g.Estimate(with)
		if err != nil {
			t.Fatal(err)
		}
		for i, at := range []int{0, 2, 3, 5} {
			if got.StepReturn[at] != want.StepReturn[i] || got.Step[at] != want.Step[i] {
				t.Errorf("row %d: return %g, step %g; without summaries %g, %g", i, got.StepReturn[at], got.Step[at],
					want.StepReturn[i], want.Step[i])
			}
		}
		for _, at := range []int{1, 4} {
			if got.Step[at] != 0 || got.Advantage[at] != got.Episode[at] {
				t.Errorf("summary at row %d: step %g, advantage %g, episode %g", at, got.Step[at], got.Advantage[at],
					got.Episode[at])
			}
		}
	}
}

func TestAnchorsAreNumberedInCanonicalOrder(t *testing.T) {
	rows := []GiGPORow{
		{Row: Row{"b", "t", 0}, Observation: "x"},
		{Row: Row{"a", "t", 1}, Observation: "x"},
		{Row: Row{"a", "t", 0}, Observation: "y"},
		{Row: Row{"a", "s", 7}, Observation: "x"},
	}
	got, err := DefaultGiGPO.Estimate(rows)
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{2, 0, 1, 0}; !slices.Equal(got.Anchor, want) {
		t.Errorf("anchors %v, want %v", got.Anchor, want)
	}
}

func TestTurnEstimatorsRefuse(t *testing.T) {
	nan, twice := math.NaN(), []Row{{"g", "t", 1}, {"g", "u", 1}, {"g", "t", 1}}
	mask := [][]int32{{1}, {1}, {1}}
	ones := [][]float64{{1}, {1}, {1}}
	gigpo := func(rows []Row, reward float64) error {
		in := make([]GiGPORow, len(rows))
		for i := range in {
			in[i] = GiGPORow{Row: rows[i], Reward: reward}
		}
		_, err := DefaultGiGPO.Estimate(in)
		return err
	}
	empg := func(rows []Row, entropy float64) error {
		in := make([]EMPGRow, len(rows))
		for i := range in {
			in[i] = EMPGRow{Row: rows[i], Entropy: entropy}
		}
		_, err := DefaultEMPG.Estimate(in)
		return err
	}
	turnRows := func(scores []float64, rows []Row) error { _, err := (TurnRows{}).Estimate(scores, rows); return err }
	means := func(scores []float64, rows []Row) error { _, err := GroupMeans(1, rows, scores); return err }
	_, _, aepo := DefaultAEPO.Estimate(twice, []float64{1, 1, 1}, ones, mask)
	_, _, aepoNaN := DefaultAEPO.Estimate(twice[:1], []float64{nan}, ones[:1], mask[:1])
	_, _, aepoRows := DefaultAEPO.Estimate(twice[:2], []float64{1}, ones[:1], mask[:1])
	_, rloo := RLOO{}.Estimate([]float64{nan}, []string{"g"})
	_, entropy := TurnEntropy([]float64{nan}, []int32{1})
	_, entropyMask := TurnEntropy([]float64{1}, []int32{3})
	_, broadcast := Broadcast([]float64{1}, nil)
	const same = "rows 0 and 2 have the same name (group g, trajectory t, turn 1)"
	const named = "row 0 (group g, trajectory t, turn 1)"
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"gigpo twice":      {gigpo(twice, 0), same},
		"gigpo reward":     {gigpo(twice[:1], nan), named},
		"empg twice":       {empg(twice, 0), same},
		"empg entropy":     {empg(twice[:1], nan), named},
		"turn rows twice":  {turnRows([]float64{1, 1, 1}, twice), same},
		"turn rows score":  {turnRows([]float64{nan}, twice[:1]), named},
		"turn rows length": {turnRows(nil, twice), "0 scores for 3 rows"},
		"means twice":      {means([]float64{1, 1, 1}, twice), same},
		"means reward":     {means([]float64{nan}, twice[:1]), named},
		"means length":     {means(nil, twice), "0 rewards for 3 rows"},
		"aepo twice":       {aepo, same},
		"aepo advantage":   {aepoNaN, "advantage of row 0 is NaN"},
		"aepo rows":        {aepoRows, "2 rows for 1 rows of mask"},
		"rloo score":       {rloo, "score of row 0 of group g is NaN"},
		"entropy":          {entropy, "token 0 is NaN"},
		"entropy mask":     {entropyMask, "token 0 is 3"},
		"broadcast":        {broadcast, "1 advantages for 0 rows"},
	} {
		if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, tt.err, tt.want)
		}
	}
}

func TestEMPGLooksOneTurnAhead(t *testing.T) {
	row := func(turn int, h float64) EMPGRow {
		return EMPGRow{Row: Row{"g", "t", turn}, Entropy: h, Advantage: 1}
	}
	dead := row(1, 99)
	dead.Dead = true
	for name, tt := range map[string]struct {
		rows []EMPGRow
		want []float64 // A before centring
	}{
		"next":      {[]EMPGRow{row(0, 1), row(1, 1)}, []float64{1.5, 1}},
		"a gap":     {[]EMPGRow{row(0, 1), row(2, 1)}, []float64{1, 1}},
		"dead next": {[]EMPGRow{row(0, 1), dead}, []float64{1}},
	} {
		got, err := EMPG{K: 1, KPrime: 1, Zeta: 0.5}.Estimate(tt.rows)
		if err != nil {
			t.Fatal(err)
		}
		mean := 0.0
		for _, v := range tt.want {
			mean += v / float64(len(tt.want))
		}
		for i, v := range tt.want {
			if math.Abs(got.Advantage[i]-(v-mean)) > 1e-7 || math.Abs(got.Gain[i]-1) > 1e-7 || got.Future[i] != 1 {
				t.Errorf(
					"%s: row %d has A %g, g %g, f %g; want A %g and 1, 1", name, i, got.Advantage[i], got.Gain[i],
					got.Future[i], v-mean,
				)
			}
		}
		if len(tt.want) < len(tt.rows) && got.Advantage[1] != 0 {
			t.Errorf("%s: a dead row has advantage %g", name, got.Advantage[1])
		}
	}
}

func TestRLOOIsTheMeanOfTheOthers(t *testing.T) {
	rng := rand.New(rand.NewPCG(33, 34))
	for range 100 {
		scores, groups := randomBatch(rng)
		for _, single := range []SingleGroup{SingleRaw, SingleZero} {
			got, err := RLOO{SingleGroup: single}.Estimate(scores, groups)
			if err != nil {
				t.Fatal(err)
			}
			for i := range scores {
				sum, n := 0.0, 0.0
				for j := range scores {
					if j != i && groups[j] == groups[i] {
						sum, n = sum+scores[j], n+1
					}
				}
				want := scores[i] - sum/max(n, 1)
				if n == 0 && single == SingleZero {
					want = 0
				}
				if !near(got[i], want) {
					t.Fatalf("row %d of %v: %g, want %g", i, scores, got[i], want)
				}
			}
		}
	}
}

func TestPerTrajectoryTakesTheFirstTurn(t *testing.T) {
	rows := []Row{{"g", "a", 3}, {"g", "a", 1}, {"g", "b", 0}}
	got, err := TurnRows{Stats: StatsPerTrajectory}.Estimate([]float64{9, 1, 3}, rows)
	if err != nil {
		t.Fatal(err)
	}
	if want := []float64{7, -1, 1}; !slices.Equal(got, want) { // the mean is of 1 and 3
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestOrderWithout(t *testing.T) {
	rows := []Row{{"a", "t", 0}, {"a", "u", 0}, {"b", "t", 0}, {"c", "t", 0}, {"c", "t", 1}}
	o, err := canonical(len(rows), func(i int) Row { return rows[i] })
	if err != nil {
		t.Fatal(err)
	}
	for skip, want := range map[string]string{
		"":     "[0 1 2 3 4] [0 1 2 3 5] [0 2 3 4]",
		"0":    "[1 2 3 4] [0 1 2 4] [0 1 2 3]",
		"2":    "[0 1 3 4] [0 1 2 4] [0 2 3]",
		"34":   "[0 1 2] [0 1 2 3] [0 2 3]",
		"0123": "[4] [0 1] [0 1]",
	} {
		left := o.skipRows(func(i int) bool { return strings.Contains(skip, fmt.Sprint(i)) })
		if got := fmt.Sprint(left.rows, left.trajectories, left.groups); got != want {
			t.Errorf("without %q: %s, want %s", skip, got, want)
		}
	}
}

func ExampleGiGPO() {
	r, _ := GiGPO{Gamma: 0.5, Omega: 1, Mode: ModeMeanNorm}.Estimate([]GiGPORow{
		{Row: Row{"task", "first", 0}, Observation: "kitchen"},
		{Row: Row{"task", "first", 1}, Observation: "fridge open", Reward: 1},
		{Row: Row{"task", "second", 0}, Observation: "kitchen"},
		{Row: Row{"task", "second", 1}, Observation: "drawer open"},
	})
	fmt.Println(r.Episode)
	fmt.Println(r.Step) // only the kitchen was seen twice
	// Output:
	// [0.5 0.5 -0.5 -0.5]
	// [0.25 0 -0.25 0]
}
