package report

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/sql"
)

// Two evaluations with 85 steps between are points, not a line.
func TestNoLineBetweenEvaluationsFarApart(t *testing.T) {
	line := regexp.MustCompile(`<path class="line s2" d="([^"]*)"`)
	for steps, joined := range map[int32]bool{85: false, 12: true} {
		d := asked("evaluations", "step tag level problem_id success samples",
			[]any{nil, "warm_start", int32(2), "p", 0.25, int64(4)},
			[]any{steps, "final", int32(2), "p", 0.75, int64(4)})
		d.answers["rewards"] = answer{sql.Result{Columns: []string{"step", "success"}, Rows: [][]any{{int32(1), 0.5}}}}
		d.answers["greedy"] = answer{sql.Result{Columns: []string{"step", "success"}}}
		f := drawn(d, success)
		found := line.FindStringSubmatch(f.SVG)
		require.Len(t, found, 2, "the evaluations' line")
		require.Equal(t, 2, strings.Count(f.SVG, `class="dot s2"`), "both evaluations")
		require.Equal(t, joined, strings.Contains(found[1], "L"), "%d steps", steps)
	}
}
