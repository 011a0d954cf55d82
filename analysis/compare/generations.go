package compare

import (
	"cmp"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/schema"
)

// Generations holds the differences between two generations of a step: *before* and *after*, in the order asked for.
// Shares and means are over all rows of a side.
type Generations struct {
	Run    string `json:"run_id"`
	Step   int    `json:"step"`
	Before int    `json:"before"` // generations
	After  int    `json:"after"`
	// Borrowed lists the stages whose rows belong to another generation than asked for.
	Borrowed   []Borrowed `json:"borrowed"`
	Rewards    Rewards    `json:"rewards"`
	Selection  Selection  `json:"selection"`
	Advantages Advantages `json:"advantages"`
}

// Borrowed is a stage that a generation lacks.
type Borrowed struct {
	Gen   int    `json:"gen"`
	Stage string `json:"stage"`
	From  int    `json:"from"` // −1: the step has none
}

// Rewards compares the rewards of the same trajectories.
type Rewards struct {
	Trajectories  int      `json:"trajectories"` // in both
	Changed       int      `json:"changed"`      // reward or verdict differs
	OnlyBefore    int      `json:"only_before"`
	OnlyAfter     int      `json:"only_after"`
	MeanBefore    float64  `json:"mean_before"`
	MeanAfter     float64  `json:"mean_after"`
	SuccessBefore float64  `json:"success_before"`
	SuccessAfter  float64  `json:"success_after"`
	Histogram     []Bin    `json:"histogram"` // of after − before
	Largest       []Change `json:"largest"`   // at most largestShown, largest first
}

// Bin counts the changes d with From ≤ d < To; the last bin has its end too.
type Bin struct {
	From float64 `json:"from"`
	To   float64 `json:"to"`
	N    int     `json:"n"`
}

// Change is one trajectory's reward before and after.
type Change struct {
	Trajectory    string  `json:"trajectory_id"`
	Before        float64 `json:"before"`
	After         float64 `json:"after"`
	VerdictBefore string  `json:"verdict_before"`
	VerdictAfter  string  `json:"verdict_after"`
}

// largestShown bounds the list of the largest changes.
const largestShown = 10

// bins of the histogram; odd, so that no change lies in the middle one.
const bins = 11

// OfGenerations compares the rewards, selection and advantages of two generations of a step. It reads rows and does no
// I/O.
func OfGenerations(run string, step int, before, after *analysis.StepGeneration) Generations {
	return Generations{
		Run: run, Step: step, Before: before.Gen, After: after.Gen,
		Borrowed:   append(borrowed(before), borrowed(after)...),
		Rewards:    rewards(before.Rewards, after.Rewards),
		Selection:  selection(before.Selection, after.Selection),
		Advantages: advantages(before.Batch, after.Batch),
	}
}

func borrowed(s *analysis.StepGeneration) []Borrowed {
	out := []Borrowed{}
	for _, stage := range []string{schema.StageReward, schema.StageResample, schema.StageAdvantage} {
		if from, ok := s.From[stage]; ok && from != s.Gen {
			out = append(out, Borrowed{Gen: s.Gen, Stage: stage, From: from})
		}
	}
	return out
}

func rewards(before, after []schema.RewardRow) Rewards {
	var out Rewards
	out.MeanBefore, out.SuccessBefore = meanReward(before)
	out.MeanAfter, out.SuccessAfter = meanReward(after)
	old := make(map[string]schema.RewardRow, len(before))
	for _, r := range before {
		old[r.TrajectoryID] = r
	}
	var deltas []float64
	out.Largest = []Change{}
	for _, r := range after {
		b, ok := old[r.TrajectoryID]
		if !ok {
			out.OnlyAfter++
			continue
		}
		deltas = append(deltas, r.Reward-b.Reward)
		if r.Reward != b.Reward || r.Verdict != b.Verdict {
			out.Largest = append(out.Largest, Change{r.TrajectoryID, b.Reward, r.Reward, b.Verdict, r.Verdict})
		}
	}
	out.Trajectories, out.OnlyBefore, out.Changed = len(deltas), len(before)-len(deltas), len(out.Largest)
	slices.SortStableFunc(out.Largest, func(a, b Change) int {
		return cmp.Or(cmp.Compare(math.Abs(b.After-b.Before), math.Abs(a.After-a.Before)),
			cmp.Compare(a.Trajectory, b.Trajectory))
	})
	out.Largest = out.Largest[:min(len(out.Largest), largestShown)]
	out.Histogram = histogram(deltas)
	return out
}

func meanReward(rows []schema.RewardRow) (mean, success float64) {
	for _, r := range rows {
		mean += r.Reward
		if r.Success {
			success++
		}
	}
	n := float64(max(len(rows), 1))
	return mean / n, success / n
}

// histogram counts changes in bins of equal width around 0. Without any change it has one bin.
func histogram(deltas []float64) []Bin {
	most := 0.0
	for _, d := range deltas {
		most = max(most, math.Abs(d))
	}
	if len(deltas) == 0 {
		return []Bin{}
	}
	if most == 0 {
		return []Bin{{N: len(deltas)}}
	}
	width := 2 * most / bins
	out := make([]Bin, bins)
	for i := range out {
		out[i].From, out[i].To = -most+float64(i)*width, -most+float64(i+1)*width
	}
	for _, d := range deltas {
		out[min(bins-1, int((d+most)/width))].N++
	}
	return out
}
