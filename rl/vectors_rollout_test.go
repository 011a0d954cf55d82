package rl

import (
	"cmp"
	"slices"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testing/vectors"
	"github.com/ropewalk/ropewalk/policy/scheduler"
	"github.com/ropewalk/ropewalk/rollout/branch"
)

var rolloutKinds = vectors.Kinds{
	"rollout/aepo_global_budget": testGlobalBudget,
	"rollout/aepo_branch_prob":   testBranchProbability,
	"rollout/topk_entropy":       testTopKEntropy,
	"rollout/kv_safe_K":          testSafeRollouts,
	"rollout/scheduler_trace":    testSchedulerTrace,
}

func testGlobalBudget(t *testing.T, c vectors.Case) {
	var in []struct {
		K    int
		Beta float64
		Root float64 `json:"H_root"`
		Tool float64 `json:"H_tool_avg"`
	}
	var want []struct {
		Real    float64
		Release int `json:"floor_plus1_clamped"`
		Round   int `json:"round_clamped"`
	}
	c.Decode(t, &in, &want)
	for i, x := range in {
		b := branch.Budget{Total: x.K, Sensitivity: x.Beta}
		vectors.Equal(t, "real", []float64{b.Real(x.Root, x.Tool)}, []float64{want[i].Real})
		for rounding, roots := range map[branch.Rounding]int{branch.HalfUp: want[i].Round,
			branch.Floor1: want[i].Release} {
			b.Rounding = rounding
			m, rest, err := b.Split(x.Root, x.Tool)
			if err != nil {
				t.Fatal(err)
			}
			if m != roots || m+rest != x.K {
				t.Errorf("%+v, %s: %d roots and %d branches, want %d", x, rounding, m, rest, roots)
			}
		}
	}
}

func testBranchProbability(t *testing.T, c vectors.Case) {
	var in []struct {
		Alpha, Gamma, Slope float64
		Change              float64 `json:"dH"`
		L                   int
	}
	var want []struct {
		P      float64
		Branch int `json:"branch_gt_0_5"`
	}
	c.Decode(t, &in, &want)
	for i, x := range in {
		rule := branch.Rule{EntropyWeight: x.Gamma, Slope: x.Slope, Threshold: 0.5}
		p := rule.Probability(x.Alpha, x.Change, x.L)
		vectors.Equal(t, "P", []float64{p}, []float64{want[i].P})
		if rule.Branches(p) != (want[i].Branch == 1) {
			t.Errorf("%+v: P %g branches %v", x, p, rule.Branches(p))
		}
	}
}

func testTopKEntropy(t *testing.T, c vectors.Case) {
	var in struct {
		Top   [][]float64 `json:"top_logprobs"`
		Vocab int
	}
	var want struct {
		Sum        float64   `json:"released_sum_over_tokens"`
		Normalised float64   `json:"released_normalised"`
		Mean       float64   `json:"mean_over_tokens"`
		Renorm     []float64 `json:"renormalised_per_token"`
		Tail       []float64 `json:"with_tail_bucket_per_token"`
	}
	c.Decode(t, &in, &want)
	k := branch.TopK{Vocabulary: in.Vocab}
	sum, err := k.Segment(in.Top)
	if err != nil {
		t.Fatal(err)
	}
	vectors.Equal(
		t, "released", []float64{sum, k.Normalise(sum), sum / float64(len(in.Top))},
		[]float64{want.Sum, want.Normalised, want.Mean},
	)
	for mode, each := range map[branch.EntropyMode][]float64{branch.MeanRenorm: want.Renorm,
		branch.MeanTail: want.Tail} {
		k.Mode = mode
		var got []float64
		mean := 0.0
		for t2, top := range in.Top {
			h, err := k.Position(top)
			if err != nil {
				t.Fatal(err)
			}
			got, mean = append(got, h), mean+each[t2]/float64(len(in.Top))
		}
		vectors.Equal(t, string(mode), got, each)
		segment, err := k.Segment(in.Top)
		if err != nil {
			t.Fatal(err)
		}
		vectors.Equal(t, string(mode)+" segment", []float64{segment}, []float64{mean})
	}
}

func testSafeRollouts(t *testing.T, c vectors.Case) {
	var in []struct {
		KV  int `json:"kv_tokens"`
		Max int `json:"L"`
	}
	var want []int
	c.Decode(t, &in, &want)
	for i, x := range in {
		if got := scheduler.SafeRollouts(x.KV, x.Max); got != want[i] {
			t.Errorf("%+v: %d rollouts, want %d", x, got, want[i])
		}
	}
}

func testSchedulerTrace(t *testing.T, c vectors.Case) {
	var in struct {
		Reservation int
		KV          []int
		Durations   []float64
	}
	var want []struct {
		T       float64
		Rollout int
		Engine  int
	}
	c.Decode(t, &in, &want)
	got := place(t, in.Reservation, in.KV, in.Durations)
	if len(got) != len(want) {
		t.Fatalf("%d placements, want %d", len(got), len(want))
	}
	for i, w := range want {
		if !vectors.Near(got[i].at, w.T) || got[i].Episode != w.Rollout || got[i].Engine != w.Engine {
			t.Errorf("placement %d is %+v, want %+v", i, got[i], w)
		}
	}
}

// placed is a decision and its time.
type placed struct {
	at float64
	scheduler.Action
}

// place runs the scheduler over episodes of one turn that all arrive at the start.
func place(t *testing.T, reservation int, kv []int, durations []float64) (out []placed) {
	engines := make([]scheduler.Engine, len(kv))
	for i, tokens := range kv {
		engines[i].Capacity = tokens
	}
	core, err := scheduler.New(scheduler.Settings{Reserve: scheduler.Worst}, engines)
	if err != nil {
		t.Fatal(err)
	}
	var events []scheduler.Event
	for i := range durations {
		events = append(events, scheduler.Event{Kind: scheduler.Submit, Episode: i,
			Spec: scheduler.Spec{Group: i, Most: reservation}})
	}
	var running []placed
	for now := 0.0; ; {
		actions, err := core.Step(now, events...)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range actions {
			out, running = append(out, placed{now, a}), append(running, placed{now + durations[a.Episode], a})
		}
		if len(running) == 0 {
			return out
		}
		slices.SortStableFunc(running, func(a, b placed) int { return cmp.Compare(a.at, b.at) })
		now, events = running[0].at, nil
		for len(running) > 0 && running[0].at == now {
			events = append(events, scheduler.Event{Kind: scheduler.Ended, Episode: running[0].Episode,
				Attempt: running[0].Attempt})
			running = running[1:]
		}
	}
}
