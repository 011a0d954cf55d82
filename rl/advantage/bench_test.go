package advantage

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// trajectories are 100,000 scores in groups of 8, as a large step has.
func trajectories() (scores []float64, groups []string) {
	rng := rand.New(rand.NewPCG(61, 62))
	for i := range 100_000 {
		scores = append(scores, float64(rng.IntN(2))+0.1*float64(rng.IntN(5)))
		groups = append(groups, fmt.Sprintf("prompt-%06d", i/8))
	}
	return scores, groups
}

func BenchmarkGRPO100kTrajectories(b *testing.B) {
	scores, groups := trajectories()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (Group{Std: true}).Estimate(scores, groups); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGRPO100kTrajectoriesShuffled(b *testing.B) {
	scores, groups := trajectories()
	rand.New(rand.NewPCG(63, 64)).Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (Group{Std: true}).Estimate(scores, groups); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkVSPO100kTrajectories drops half of the groups and so draws as many repeats.
func BenchmarkVSPO100kTrajectories(b *testing.B) {
	rng := rand.New(rand.NewPCG(65, 66))
	var groups [][]float64
	for g := range 100_000 / 8 {
		rewards := make([]float64, 8)
		for i := range rewards {
			rewards[i] = float64(g % 2 * rng.IntN(2))
		}
		groups = append(groups, rewards)
	}
	b.ReportAllocs()
	for b.Loop() {
		if !DefaultVSPO.Resample(groups, rng.Float64).Active {
			b.Fatal("nothing was drawn")
		}
	}
}

// millionTurns are groups of 8 trajectories of 50 turns over observations of some 200 bytes.
func millionTurns() []GiGPORow {
	rng := rand.New(rand.NewPCG(67, 68))
	const turns, perGroup = 50, 8
	rows := make([]GiGPORow, 0, 1_000_000)
	for g := 0; len(rows) < cap(rows); g++ {
		group := fmt.Sprintf("task-%05d", g)
		states := make([]string, 60)
		for i := range states {
			states[i] = observation(rng)
		}
		for tr := range perGroup {
			name := fmt.Sprintf("%s/%d", group, tr)
			for turn := range turns {
				rows = append(rows, GiGPORow{Row: Row{group, name, turn}, Reward: float64(rng.IntN(2)),
					Observation: states[rng.IntN(len(states))], Invalid: rng.IntN(10) == 0})
			}
		}
	}
	return rows
}

func benchmarkGiGPO(b *testing.B, rows []GiGPORow) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DefaultGiGPO.Estimate(rows); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(rows))*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkGiGPO1MTurns(b *testing.B) { benchmarkGiGPO(b, millionTurns()) }

func BenchmarkGiGPO1MTurnsShuffled(b *testing.B) {
	rows := millionTurns()
	rand.New(rand.NewPCG(69, 70)).Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	benchmarkGiGPO(b, rows)
}

// similarCorpus are the 2,000 distinct observations on which the two searches are compared.
func similarCorpus(b *testing.B) (texts []string) {
	texts = corpus(rand.New(rand.NewPCG(71, 72)), 2000, 0.3)
	n := 0
	for _, k := range bounded(texts, DefaultSimilarity, RatcliffObershelp{}) {
		n = max(n, k+1)
	}
	if n < 1000 {
		b.Fatalf("%d clusters", n)
	}
	return texts
}

func BenchmarkSimilarAnchorsBounded(b *testing.B) {
	texts := similarCorpus(b)
	b.ReportAllocs()
	for b.Loop() {
		bounded(texts, DefaultSimilarity, RatcliffObershelp{})
	}
}

// BenchmarkSimilarAnchorsExhaustive is the same search without bounds; run it once (-benchtime 1x).
func BenchmarkSimilarAnchorsExhaustive(b *testing.B) {
	texts := similarCorpus(b)
	b.ReportAllocs()
	clusters := 0
	for b.Loop() {
		_, clusters = exhaustive(texts, DefaultSimilarity, RatcliffObershelp{})
	}
	b.ReportMetric(float64(clusters), "clusters")
}

func BenchmarkRatcliffObershelp(b *testing.B) {
	rng := rand.New(rand.NewPCG(73, 74))
	m := newMatcher(RatcliffObershelp{})
	x, y := m.encode(observation(rng)), m.encode(observation(rng))
	b.ReportAllocs()
	for b.Loop() {
		m.ratio(x, y)
	}
}
