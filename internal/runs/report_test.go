package runs

import (
	"bytes"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/api"
	"github.com/ropewalk/ropewalk/internal/stack"
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
	_, next, found := strings.Cut(text, "\nnext:\n")
	require.True(t, found)
	require.Contains(t, next, " report r -o report.html\n")
	require.Contains(t, next, "from rewards where run = 'r' group by 1")
	require.NotContains(t, text, "this command", "a result that is read later took no time")
}
