package advantage

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// queueOf pushes steps of means, groups named by place.
func queueOf(t *testing.T, steps ...[]float64) BaselineQueue {
	t.Helper()
	var q BaselineQueue
	for step, means := range steps {
		for i, m := range means {
			pushed, err := q.Push(Baseline{Step: step, Group: fmt.Sprint("g", i), Mean: m})
			if err != nil {
				t.Fatal(err)
			}
			q = pushed
		}
	}
	return q
}

func TestBaselineQueueTrims(t *testing.T) {
	q := queueOf(t, []float64{1, 2, 3}, []float64{4, 5}, []float64{6})
	for _, tt := range []struct {
		capacity    int
		trim, steps string
	}{
		{6, "[1 2 3 4 5 6]", "[1 2 3 4 5 6]"},
		{5, "[2 3 4 5 6]", "[4 5 6]"},
		{2, "[5 6]", "[6]"},
		{0, "[]", "[]"},
		{-1, "[]", "[]"},
	} {
		if got := fmt.Sprint(means(q.Trim(tt.capacity))); got != tt.trim {
			t.Errorf("trimmed to %d: %s, want %s", tt.capacity, got, tt.trim)
		}
		if got := fmt.Sprint(means(q.TrimSteps(tt.capacity))); got != tt.steps {
			t.Errorf("steps trimmed to %d: %s, want %s", tt.capacity, got, tt.steps)
		}
	}
	if len(q) != 6 {
		t.Error("trimming changed the queue itself")
	}
}

func means(q BaselineQueue) []float64 {
	out := make([]float64, len(q))
	for i, b := range q {
		out[i] = b.Mean
	}
	return out
}

func TestBaselineQueuePushIgnoresOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 42))
	step := []Baseline{{3, "a", 0.1}, {3, "b", 0.2}, {3, "c", 0.3}}
	want, err := BaselineQueue(nil).Push(step...)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		rng.Shuffle(len(step), func(i, j int) { step[i], step[j] = step[j], step[i] })
		got, err := BaselineQueue(nil).Push(step...)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %v, %v; want %v", got, err, want)
		}
	}
	for name, b := range map[string]Baseline{
		"occurs twice at step 3": {3, "b", 1},
		"comes after step 3":     {2, "z", 1},
		"is NaN":                 {4, "z", math.NaN()},
	} {
		if _, err := want.Push(b); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("push of %v: %v, want %q", b, err, name)
		}
	}
	if longer, err := want.Push(Baseline{4, "b", 1}); err != nil || len(longer) != 4 || len(want) != 3 {
		t.Errorf("push of the next step gave %v, %v and left %v", longer, err, want)
	}
}

func TestP50(t *testing.T) {
	if _, ok := (BaselineQueue{}).P50(); ok {
		t.Error("an empty queue has a median")
	}
	for _, means := range [][]float64{{3}, {3, 1}, {5, 1, 2}, {4, 1, 3, 2}} {
		got, ok := queueOf(t, means).P50()
		slices.Sort(means)
		// Percentile with linear interpolation: place (n−1)/2 between the sorted values.
		at := float64(len(means)-1) / 2
		low := means[int(at)]
		want := low + (means[int(math.Ceil(at))]-low)*(at-math.Floor(at))
		if !ok || got != want {
			t.Errorf("median of %v is %g, %v; want %g", means, got, ok, want)
		}
	}
}

func TestGroupMeansWeighTrajectoriesAlike(t *testing.T) {
	rows := []Row{{"b", "t", 0}, {"a", "t", 1}, {"a", "t", 0}, {"a", "u", 0}}
	got, err := GroupMeans(7, rows, []float64{5, 1, 3, 10})
	if err != nil {
		t.Fatal(err)
	}
	if want := []Baseline{{7, "a", 6}, {7, "b", 5}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestRecalibration(t *testing.T) {
	q := queueOf(t, []float64{0, 1})
	collected := []Collected{
		{Reward: 1, Advantage: 0.4}, {Reward: 0.5, Advantage: 1}, {Reward: 1, Advantage: 0}, {Reward: 0, Advantage: 2},
	}
	for name, tt := range map[string]struct {
		rule Recalibration
		want []Recalibrated
	}{
		"paper": {Recalibration{}, []Recalibrated{{0.5, true}, {0, false}, {0.5, false}, {-0.5, false}}},
		"keep zero": {
			Recalibration{KeepZero: true}, []Recalibrated{{0.5, true}, {0, true}, {0.5, false}, {-0.5, false}},
		},
		"weight decay": {
			Recalibration{WeightDecay: 0.5}, []Recalibrated{{0.2, true}, {0.5, true}, {0, false}, {1, true}},
		},
	} {
		got, err := tt.rule.Estimate(collected, q)
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, tt.want)
		}
	}
	if _, err := (Recalibration{}).Estimate(collected, nil); err == nil {
		t.Error("recalibrated without a baseline")
	}
	if got, err := (Recalibration{}).Estimate(nil, nil); err != nil || len(got) != 0 {
		t.Errorf("nothing collected: %v, %v", got, err)
	}
	if _, err := (Recalibration{WeightDecay: 0.5}).Estimate(collected, nil); err != nil {
		t.Errorf("weight decay needs no baseline: %v", err)
	}
	if _, err := (Recalibration{}).Estimate(
		[]Collected{{Reward: math.NaN()}}, q,
	); err == nil || !strings.Contains(err.Error(), "row 0") {
		t.Errorf("a reward that is not a number: %v", err)
	}
}
