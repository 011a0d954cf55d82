package runs

import (
	"bytes"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/evaluation"
	"github.com/ropewalk/ropewalk/internal/stack"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/workflows"
)

func TestTheViewOfRunsIsALink(t *testing.T) {
	t.Parallel()
	link, err := url.Parse(ViewOfRuns(stack.Addresses{UI: "http://127.0.0.1:8233", Namespace: "ropewalk"}))
	require.NoError(t, err)
	require.Equal(t, "/namespaces/ropewalk/workflows", link.Path)
	require.Equal(t, workflows.RunsQuery, link.Query().Get("query"))
}

// What a result suggests next is about its own run, and a figure without data is no 0.
func TestTheResultInWords(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	TrainReport{Run: "r", Steps: 3, Warm: api.EvaluationSummary{Rate: api.Rate{Success: 0.5, CILow: 0.25, CIHigh: 0.75,
		N: 4}}}.WriteText(&out, stack.Addresses{})
	text := out.String()
	require.Contains(t, text, "success     50.0% [25.0, 75.0] → –   (sampled, held-out problems)\n")
	require.Contains(t, text, "greedy      – → –\n")
	require.Contains(t, text, "tool errors – → –   (inside positive trajectories)\n")
	require.NotContains(t, text, "on the form of calls")
	_, next, found := strings.Cut(text, "\nnext:\n")
	require.True(t, found)
	require.Contains(t, next, " report r -o report.html\n")
	require.Contains(t, next, "from rewards where run = 'r' group by 1")
	require.NotContains(t, text, "this command", "a result that is read later took no time")
}

// A warm start on the form of calls is reported with both figures, before and after.
func TestTheResultOfAColdStart(t *testing.T) {
	t.Parallel()
	rate := func(success, low, high float64) api.Rate {
		return api.Rate{Success: success, CILow: low, CIHigh: high, N: 40}
	}
	c := &analysis.ColdStart{
		Before: analysis.ColdStartPart{Calls: evaluation.Validity{Rate: rate(0.1, 0.05, 0.2), Calls: 12, Valid: 8},
			Success: rate(0.05, 0, 0.1)},
		After: analysis.ColdStartPart{Calls: evaluation.Validity{Rate: rate(0.9, 0.8, 0.95), Calls: 90, Valid: 88},
			Success: rate(0.06, 0.01, 0.1)},
		Change: evaluation.Difference{Mean: 0.01, Low: -0.02, High: 0.03},
	}
	print := func() string {
		var out bytes.Buffer
		TrainReport{Run: "r", Steps: 1, ColdStart: c}.WriteText(&out, stack.Addresses{})
		return out.String()
	}
	require.Contains(t, print(), "\nwarm start  on the form of calls alone, before → after, held-out problems:\n"+
		"  valid     10.0% [5.0, 20.0] → 90.0% [80.0, 95.0] of episodes call, and validly (8 of 12 → 88 of 90 calls): "+
		"raised\n  success   5.0% [0.0, 10.0] → 6.0% [1.0, 10.0]: unchanged, +1.0 points [-2.0, +3.0]\nsuccess  ")
	c.Change.Low, c.After.Calls.Rate.CILow = 0.005, 0.15
	require.Contains(t, print(), "calls): not raised\n")
	require.Contains(t, print(), ": changed, +1.0 points [+0.5, +3.0]\n")
	c.Change = evaluation.Difference{}
	require.Contains(t, print(), ": unchanged, no problem is solved more or less often\n")
}
