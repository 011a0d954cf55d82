package compare

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/schema"
)

// Step holds the figures of one step in every run.
type Step struct {
	Step int `json:"step"`
	// Figures are by name (see Figures), a value for each run; null where the run has none.
	Figures map[string][]*float64 `json:"figures"`
}

// Figure declares one number of a step.
type Figure struct {
	Name string
	Doc  string
	of   func(summary, lengths) *float64
}

// lengths are means over a step's trajectories.
type lengths struct{ tokens, turns, calls *float64 }

// summary is a step as `ropewalk show` prints it.
type summary = analysis.StepSummary

// Figures are the numbers that steps are compared by.
var Figures = []Figure{
	{"success", "share of sampled trajectories that solved their problem", func(s summary, _ lengths) *float64 {
		return when(s.Trajectories > 0, s.Success)
	}},
	{"reward", "mean reward of the sampled trajectories", func(s summary, _ lengths) *float64 {
		return when(s.Trajectories > 0, s.Reward)
	}},
	{"kept", "trajectories that resampling kept", func(s summary, _ lengths) *float64 {
		return when(s.KeptGroups+s.DroppedGroups > 0, float64(s.Kept))
	}},
	{"entropy", "nats per trained token", func(s summary, _ lengths) *float64 { return s.Entropy }},
	{"kl", "divergence from the sampling policy, nats per trained token", func(s summary, _ lengths) *float64 {
		return when(s.Updates > 0, s.KL)
	}},
	{"reference_kl", "divergence from the reference policy, as the loss estimates it",
		func(s summary, _ lengths) *float64 { return s.ReferenceKL }},
	{"clip_fraction", "share of tokens whose ratio was clipped", func(s summary, _ lengths) *float64 {
		return when(s.Updates > 0, s.ClipFraction)
	}},
	{"grad_norm", "norm of the gradient before clipping", func(s summary, _ lengths) *float64 { return s.GradNorm }},
	{"response_tokens", "tokens that the policy wrote, mean per trajectory",
		func(_ summary, l lengths) *float64 { return l.tokens }},
	{"turns", "mean per trajectory", func(_ summary, l lengths) *float64 { return l.turns }},
	{"tool_calls", "mean per trajectory", func(_ summary, l lengths) *float64 { return l.calls }},
}

// when is a value if there is one.
func when(known bool, value float64) *float64 {
	if !known {
		return nil
	}
	return &value
}

// steps gathers the figures of every step of any run.
func steps(ctx context.Context, views []*analysis.Visible, overviews []analysis.Overview) ([]Step, error) {
	all := map[int]map[string][]*float64{}
	for run, o := range overviews {
		for _, s := range o.Steps {
			l, err := measure(ctx, views[run], s.Step)
			if err != nil {
				return nil, err
			}
			if all[s.Step] == nil {
				all[s.Step] = map[string][]*float64{}
				for _, f := range Figures {
					all[s.Step][f.Name] = make([]*float64, len(views))
				}
			}
			for _, f := range Figures {
				all[s.Step][f.Name][run] = f.of(s, l)
			}
		}
	}
	out := []Step{}
	for _, n := range slices.Sorted(maps.Keys(all)) {
		out = append(out, Step{n, all[n]})
	}
	return out, nil
}

// measure reads the lengths of a step's trajectories, one row group after the other.
func measure(ctx context.Context, v *analysis.Visible, step int) (lengths, error) {
	shards, err := v.StepShards(ctx, step, schema.Trajectories)
	if err != nil {
		return lengths{}, err
	}
	var n, tokens, turns, calls float64
	for _, s := range shards {
		data, err := v.Bytes(ctx, s)
		if err != nil {
			return lengths{}, err
		}
		for rows, err := range schema.Groups[schema.TrajectoryRow](data) {
			if err != nil {
				return lengths{}, fmt.Errorf("read %s: %w", s.Key, err)
			}
			for _, r := range rows {
				n, tokens = n+1, tokens+float64(r.ResponseTokens)
				turns, calls = turns+float64(r.Turns), calls+float64(r.ToolCalls)
			}
		}
	}
	return lengths{when(n > 0, tokens/n), when(n > 0, turns/n), when(n > 0, calls/n)}, nil
}
