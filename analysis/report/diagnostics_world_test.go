package report

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/evaluation"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/rl/diagnose"
)

// A rate that ends above the first step's interval is marked.
func TestErrorRatesAreCompared(t *testing.T) {
	rate := func(kind string, last float64, noHigher bool) analysis.ErrorRate {
		return analysis.ErrorRate{Kind: kind, First: analysis.FailedPart{Step: 1, Rate: 0.1},
			Last: analysis.FailedPart{Step: 2, Rate: last}, Low: 0.055, High: 0.174, NoHigher: noHigher}
	}
	f := drawn(data{rates: []analysis.ErrorRate{rate("tool calls", 0.3, false),
		rate("actions", 0.12, true)}}, errorRates)
	require.Equal(t, [][]string{{"tool calls", "10.0%", "5.5% to 17.4%", "30.0%", "no"},
		{"actions", "10.0%", "5.5% to 17.4%", "12.0%", "yes"}}, f.Table.Rows)
	require.NotEmpty(t, drawn(data{}, errorRates).Empty)
}

// Successes and failures are drawn apart.
func TestActionsOfSuccessesAndFailures(t *testing.T) {
	d := asked("actions", "success labels n", []any{int32(1), "go\x1ftake\x1fput", int64(4)},
		[]any{int32(0), "go\x1funknown", int64(5)})
	good, bad := drawn(d, actionsOfSuccesses), drawn(d, actionsOfFailures)
	require.Contains(t, good.SVG, "take")
	require.NotContains(t, good.SVG, "unknown")
	require.Contains(t, bad.SVG, "unknown")
	require.Contains(t, bad.Note, "5 trajectories")
	require.Equal(t, noActions, drawn(asked("actions", "success labels n"), actionsOfFailures).Empty)
}

func TestBeforeTraining(t *testing.T) {
	require.Equal(t, noSteps, drawn(data{}, beforeTraining).Empty)
	f := drawn(data{offered: &diagnose.PropertyReport{Trajectories: 4, Groups: 2, ZeroVariance: 0.5, Success: 0.1}},
		beforeTraining)
	require.Equal(t, []string{"groups without variance", "50.0%", "VSPO, PRS", "≥ 60%", "no"}, f.Table.Rows[0])
	require.Equal(t, "yes", f.Table.Rows[2][4])
	require.Equal(t, "–", f.Table.Rows[3][1], "the record has no turns")
}

// The section of a cold start is shown where the run has measured both policies.
func TestColdStart(t *testing.T) {
	c := analysis.ColdStart{Change: evaluation.Difference{Mean: 0.25, Low: 0.125, High: 0.5}}
	c.After.Calls.Rate = api.Rate{Success: 0.5, CILow: 0.25, CIHigh: 0.75, N: 4}
	f := drawn(data{cold: &c}, coldStart)
	require.Equal(t, [][]string{{"valid calls", "–", "50.0% [25.0, 75.0]", "raised"},
		{"success", "–", "–", "changed, +25.0 points [+12.5, +50.0]"}}, f.Table.Rows)
	at := slices.IndexFunc(sections, func(s section) bool { return s.id == "cold-start" })
	require.True(t, sections[at].shown(data{cold: &c}))
	require.False(t, sections[at].shown(data{}))
}
