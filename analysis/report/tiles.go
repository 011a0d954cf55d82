package report

import (
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
)

// Tile is one number at the top of the page, with a short explanation.
type Tile struct{ Name, Value, Note string }

func tiles(d data) []Tile {
	rewards, funnel := d.answers["rewards"], d.answers["funnel"]
	var out []Tile
	if s := evaluated(d); len(s.X) > 0 {
		last := len(s.X) - 1
		out = append(out, Tile{"held-out success", span(s.Y[0], s.Y[last], chart.Percent),
			fmt.Sprintf("95%% interval at the end: %s to %s", chart.Value(s.Low[last], chart.Percent),
				chart.Value(s.High[last], chart.Percent))})
	}
	if n := rewards.rows(); n > 0 {
		out = append(out, Tile{"reward", span(rewards.number(0, "reward"), rewards.number(n-1, "reward"), chart.Plain),
			"mean of the first and of the last step"})
	}
	if funnel.rows() > 0 && known(funnel.column("sampled")) {
		note := "no trajectory was trained on"
		if trained := funnel.number(0, "trained"); trained > 0 {
			note = chart.Value(trained, chart.Plain) + " trained on"
		}
		out = append(out, Tile{"trajectories", chart.Value(funnel.number(0, "sampled"), chart.Plain), note})
	}
	if values := numbers(d.answers["tool_errors"].column("positive")); len(values) > 0 {
		out = append(out, Tile{"tool errors in positive trajectories",
			span(values[0], values[len(values)-1], chart.Percent), "first and last step"})
	}
	if share := orchestrationShare(d); !math.IsNaN(share) {
		out = append(out, Tile{"orchestration", chart.Value(share, chart.Percent), "share of the steps' time"})
	}
	return out
}

// span writes a value before and after, or one value where both are equal.
func span(from, to float64, unit chart.Unit) string {
	if from == to {
		return chart.Value(to, unit)
	}
	return chart.Value(from, unit) + " → " + chart.Value(to, unit)
}
