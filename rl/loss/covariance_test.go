package loss_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ropewalk/ropewalk/internal/testing/losstest"
	"github.com/ropewalk/ropewalk/rl/loss"
)

func clipCov(r loss.CovarianceRule) loss.Objective {
	return loss.Objective{
		Policy: loss.ClipCov{Low: 0.2, High: 0.28, Rule: r}, Aggregation: loss.Aggregation{Mode: loss.TokenMean},
	}
}

func marksOf(t *testing.T, o loss.Objective, rows []loss.Row[float64], seed uint64) [][]int32 {
	t.Helper()
	plan, err := loss.Prepare(o, rows, rand.New(rand.NewPCG(seed, 1)))
	if err != nil {
		t.Fatal(err)
	}
	return plan.Marks
}

func count(marks [][]int32) (n int) {
	for _, row := range marks {
		for _, m := range row {
			n += int(m)
		}
	}
	return n
}

func TestSelectionFollowsTheSeedAndNotTheOrderOfRows(t *testing.T) {
	b := losstest.New[float64](rand.New(rand.NewPCG(5, 5)), 24, 40, losstest.Spread{Drift: 0.1})
	for _, o := range []loss.Objective{
		clipCov(loss.CovarianceRule{Ratio: 0.05, Lower: 0.1, Upper: 40}),
		clipCov(loss.CovarianceRule{Ratio: 0.05, Lower: 0.1, Upper: 40, PerRow: true}),
		clipCov(loss.CovarianceRule{Ratio: 0.05, Lower: 0.1, Upper: 40, Scope: loss.ScopeGroup}),
		{
			Policy:      loss.KLCov{Coefficient: 1, Rule: loss.CovarianceRule{Ratio: 0.05}},
			Aggregation: loss.Aggregation{Mode: loss.TokenMean},
		},
	} {
		once := marksOf(t, o, b.Rows, 9)
		if count(once) == 0 {
			t.Errorf("%+v selected nothing", o.Policy)
		}
		if !cmp.Equal(once, marksOf(t, o, b.Rows, 9)) {
			t.Errorf("%+v: one seed gave two selections", o.Policy)
		}
		order := rand.New(rand.NewPCG(6, 6)).Perm(len(b.Rows))
		moved := marksOf(t, o, permuted(b, order).Rows, 9)
		for k, i := range order {
			if !cmp.Equal(moved[k], once[i]) {
				t.Fatalf("%+v: the selection of row %d depends on its place", o.Policy, i)
			}
		}
		if another := marksOf(t, o, b.Rows, 10); o.Policy.Name() == "clip_cov" && cmp.Equal(once, another) {
			t.Errorf("%+v: another seed gave the same selection", o.Policy)
		}
	}
}

func TestSelectionKeepsItsBudgetAndBounds(t *testing.T) {
	b := losstest.New[float64](rand.New(rand.NewPCG(5, 6)), 12, 60, losstest.Spread{Drift: 0.3})
	rule := loss.CovarianceRule{Ratio: 0.03, Lower: 0.2, Upper: 1.5}
	marks, cov := marksOf(t, clipCov(rule), b.Rows, 1), loss.Covariances(b.Rows, loss.ScopeMinibatch)
	tokens := 0
	for i, r := range b.Rows {
		tokens += r.Tokens()
		for k, m := range marks[i] {
			if m != 0 && (r.Mask[k] == 0 || cov[i][k] <= rule.Lower || cov[i][k] >= rule.Upper) {
				t.Errorf("row %d token %d of covariance %g, mask %d was drawn", i, k, cov[i][k], r.Mask[k])
			}
		}
	}
	if got, want := count(marks), int(0.03*float64(tokens)); got != want {
		t.Errorf("%d tokens of %d drawn, want %d", got, tokens, want)
	}
}

// The form of SPEAR's equations 15 and 16: tokens are compared with those at the same place of the responses to one
// prompt, in the same turn. Each row has a budget of its own, and a covariance at a bound is within it.
func TestCovariancesOfAGroup(t *testing.T) {
	row := func(group string, turn int32, advantage float64, context int, logProbs ...float64) loss.Row[float64] {
		n := context + len(logProbs)
		r := loss.Row[float64]{Group: group, Turn: turn, Count: 1, LogProbs: make([]float64, n),
			Old: make([]float64, n), Advantages: make([]float64, n), Mask: make([]int32, n)}
		for k, l := range logProbs {
			at := context + k
			r.LogProbs[at], r.Old[at], r.Advantages[at], r.Mask[at] = l, l, advantage, 1
		}
		return r
	}
	rows := []loss.Row[float64]{
		row("a", 0, 0.5, 1, -1, -0.5, -4), row("a", 0, -0.5, 3, -2, -0.75), row("a", 1, 3, 0, -9, -9),
		row("b", 0, 7, 2, -3),
	}
	want := [][]float64{{0, 0.25, 0.0625, 0}, {0, 0, 0, 0.25, 0.0625}, {0, 0}, {0, 0, 0}}
	if got := loss.Covariances(rows, loss.ScopeGroup); !cmp.Equal(got, want) {
		t.Errorf("covariances %v, want %v", got, want)
	}
	marks := marksOf(t, clipCov(loss.CovarianceRule{
		Scope: loss.ScopeGroup, Ratio: 0.5, Lower: 0.0625, Upper: 0.25, PerRow: true,
	}), rows, 1)
	if n := count(marks); n != 2 || count(marks[:1]) != 1 || count(marks[1:2]) != 1 {
		t.Errorf("marks %v: half of the tokens of a row is one", marks)
	}
}

// KL-Cov's tokens are the greatest: no other token has a greater covariance.
func TestKLCovTakesTheGreatest(t *testing.T) {
	b := losstest.New[float64](rand.New(rand.NewPCG(5, 7)), 12, 60, losstest.Spread{Drift: 0.3})
	o := loss.Objective{
		Policy:      loss.KLCov{Coefficient: 1, Rule: loss.CovarianceRule{Ratio: 0.02}},
		Aggregation: loss.Aggregation{Mode: loss.TokenMean},
	}
	marks, cov := marksOf(t, o, b.Rows, 1), loss.Covariances(b.Rows, loss.ScopeMinibatch)
	least, rest := 1e300, -1e300
	for i, r := range b.Rows {
		for k, m := range r.Mask {
			switch {
			case m == 0:
			case marks[i][k] != 0:
				least = min(least, cov[i][k])
			default:
				rest = max(rest, cov[i][k])
			}
		}
	}
	if count(marks) == 0 || least < rest {
		t.Errorf("%d tokens down to %g were taken, one of %g was left", count(marks), least, rest)
	}
}

func TestObjectivesThatNeedTheMinibatchSaySo(t *testing.T) {
	cov := clipCov(loss.CovarianceRule{Ratio: 0.1, Upper: 1})
	replay := cov
	replay.Policy = loss.SelfImitation{Policy: cov.Policy, Gamma: 1}
	shrink := loss.Objective{
		Policy: loss.PPOClip{}, Aggregation: cov.Aggregation, SequenceMask: &loss.SequenceMask{Shrink: true},
	}
	for _, o := range []loss.Objective{cov, replay, shrink} {
		if _, err := o.Plan([][]int32{{1}}, nil); !o.NeedsMinibatch() || err == nil {
			t.Errorf("%+v was planned from masks alone", o)
		}
	}
	shrink.SequenceMask.Shrink = false
	if _, err := shrink.Plan([][]int32{{1}}, nil); shrink.NeedsMinibatch() || err != nil {
		t.Errorf("a fixed sequence mask needs the mini-batch: %v", err)
	}
	if _, err := loss.Prepare(cov, []loss.Row[float64]{}, nil); err == nil {
		t.Error("Clip-Cov draws without a random stream")
	}
}
