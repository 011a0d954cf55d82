package compare

import (
	"cmp"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/schema"
)

// Selection compares which trajectories were kept.
type Selection struct {
	Trajectories int `json:"trajectories"` // in both
	Changed      int `json:"changed"`      // fate, count or weight differs
	KeptBefore   int `json:"kept_before"`
	KeptAfter    int `json:"kept_after"`
	// Fates counts the trajectories by their fates before and after.
	Fates []Fate `json:"fates"`
}

// Fate tells whether trajectories were kept, or why they were dropped.
type Fate struct {
	Before string `json:"before"`
	After  string `json:"after"`
	N      int    `json:"n"`
}

// kept is the fate of trajectories that were not dropped.
const kept = "kept"

func selection(before, after []schema.SelectionRow) Selection {
	out := Selection{Fates: []Fate{}, KeptBefore: countKept(before), KeptAfter: countKept(after)}
	old := make(map[string]schema.SelectionRow, len(before))
	for _, s := range before {
		old[s.TrajectoryID] = s
	}
	count := map[Fate]int{}
	for _, s := range after {
		b, ok := old[s.TrajectoryID]
		if !ok {
			continue
		}
		out.Trajectories++
		if fate(b) != fate(s) || b.Count != s.Count || b.Weight != s.Weight {
			out.Changed++
		}
		count[Fate{Before: fate(b), After: fate(s)}]++
	}
	for f, n := range count {
		f.N = n
		out.Fates = append(out.Fates, f)
	}
	slices.SortFunc(out.Fates, func(a, b Fate) int {
		return cmp.Or(cmp.Compare(a.Before, b.Before), cmp.Compare(a.After, b.After))
	})
	return out
}

func countKept(rows []schema.SelectionRow) int {
	n := 0
	for _, s := range rows {
		if s.Kept {
			n++
		}
	}
	return n
}

func fate(s schema.SelectionRow) string {
	if s.Kept {
		return kept
	}
	return s.Reason
}

// Advantages compares the training batches. Means and standard deviations (population) are over the
// rows of a side.
type Advantages struct {
	RowsBefore int     `json:"rows_before"`
	RowsAfter  int     `json:"rows_after"`
	Both       int     `json:"both"`    // rows in both batches
	Changed    int     `json:"changed"` // of those in both
	Flips      int     `json:"flips"`   // of those in both
	MeanBefore float64 `json:"mean_before"`
	MeanAfter  float64 `json:"mean_after"`
	StdBefore  float64 `json:"std_before"`
	StdAfter   float64 `json:"std_after"`
	// Correlation is Pearson's, over the trajectories in both; null where one side does not vary.
	Correlation *float64 `json:"correlation"`
}

func advantages(before, after []schema.BatchRow) Advantages {
	old := make(map[rowName]float64, len(before))
	all := [2][]float64{}
	for _, b := range before {
		old[nameOf(b)] = mean(b)
		all[0] = append(all[0], mean(b))
	}
	out := Advantages{RowsBefore: len(before), RowsAfter: len(after)}
	var pairs [][2]float64 // before, after
	for _, b := range after {
		now := mean(b)
		all[1] = append(all[1], now)
		was, ok := old[nameOf(b)]
		if !ok {
			continue
		}
		pairs = append(pairs, [2]float64{was, now})
		if was != now {
			out.Changed++
		}
		if was*now < 0 {
			out.Flips++
		}
	}
	out.Both = len(pairs)
	out.MeanBefore, out.StdBefore = moments(all[0])
	out.MeanAfter, out.StdAfter = moments(all[1])
	out.Correlation = correlation(pairs)
	return out
}

// rowName names a row of a batch: a trajectory, or one turn of it.
type rowName struct {
	trajectory string
	turn       int32
}

func nameOf(b schema.BatchRow) rowName {
	if b.Turn == nil {
		return rowName{b.TrajectoryID, -1}
	}
	return rowName{b.TrajectoryID, *b.Turn}
}

// mean returns a row's mean advantage, 0 for a row without a loss token.
func mean(b schema.BatchRow) float64 {
	a, _ := analysis.MeanAdvantage(b)
	return a
}

func moments(xs []float64) (mean, std float64) {
	n := float64(max(len(xs), 1))
	for _, x := range xs {
		mean += x / n
	}
	for _, x := range xs {
		std += (x - mean) * (x - mean) / n
	}
	return mean, math.Sqrt(std)
}

func correlation(pairs [][2]float64) *float64 {
	var sides [2][]float64
	for _, p := range pairs {
		sides[0], sides[1] = append(sides[0], p[0]), append(sides[1], p[1])
	}
	meanX, stdX := moments(sides[0])
	meanY, stdY := moments(sides[1])
	if len(pairs) < 2 || stdX == 0 || stdY == 0 {
		return nil
	}
	covariance := 0.0
	for _, p := range pairs {
		covariance += (p[0] - meanX) * (p[1] - meanY) / float64(len(pairs))
	}
	r := max(-1, min(1, covariance/(stdX*stdY)))
	return &r
}
