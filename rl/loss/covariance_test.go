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
