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
	// Figures are by name (see analysis.StepFigures), a value for each run; null where the run has none.
	Figures map[string][]*float64 `json:"figures"`
}

// steps gathers the figures of every step of any run.
func steps(ctx context.Context, views []*analysis.Visible, overviews []analysis.Overview) ([]Step, error) {
	all := map[int]map[string][]*float64{}
	for run, o := range overviews {
		for _, s := range o.Steps {
			var err error
			if s.Lengths, err = measure(ctx, views[run], s.Step); err != nil {
				return nil, err
			}
			if all[s.Step] == nil {
				all[s.Step] = map[string][]*float64{}
				for _, f := range analysis.StepFigures {
					all[s.Step][f.Name] = make([]*float64, len(views))
				}
			}
			for _, f := range analysis.StepFigures {
				all[s.Step][f.Name][run] = f.Of(s)
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
func measure(ctx context.Context, v *analysis.Visible, step int) (out analysis.Lengths, err error) {
	shards, err := v.StepShards(ctx, step, schema.Trajectories)
	if err != nil {
		return out, err
	}
	var n, tokens, turns, calls float64
	for _, s := range shards {
		data, err := v.Bytes(ctx, s)
		if err != nil {
			return out, err
		}
		for rows, err := range schema.Groups[schema.TrajectoryRow](data) {
			if err != nil {
				return out, fmt.Errorf("read %s: %w", s.Key, err)
			}
			for _, r := range rows {
				n, tokens = n+1, tokens+float64(r.ResponseTokens)
				turns, calls = turns+float64(r.Turns), calls+float64(r.ToolCalls)
			}
		}
	}
	if n > 0 {
		out = analysis.Lengths{Tokens: new(tokens / n), Turns: new(turns / n), Calls: new(calls / n)}
	}
	return out, nil
}
