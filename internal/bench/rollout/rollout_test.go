package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/bench/history"
)

func TestMediansAndGoals(t *testing.T) {
	medians := summarise([]measured{
		{outcome: outcome{Orchestration: 0.04, RLSeconds: 9}, Mode: "interleaved", Steps: []step{
			{Seconds: 1, Processor: 2, Ratio: 1, Tokens: 100}, {Seconds: 2, Processor: 3, Ratio: 1.2, Tokens: 100}},
			Loads: []history.Load{{Events: 70, Shards: 4}, {Events: 121, Shards: 4}}},
		{outcome: outcome{Orchestration: 0.12, RLSeconds: 11}, Mode: "interleaved", Steps: []step{
			{Seconds: 3, Processor: 4, Ratio: 1.4, Tokens: 300}},
			Loads: []history.Load{{Events: 150, Shards: 8}}},
		{outcome: outcome{Orchestration: 0.2, RLSeconds: 20}, Mode: "staged", Steps: []step{
			{Seconds: 4, Processor: 4, Ratio: 2, Tokens: 100}}, Loads: []history.Load{{Events: 300, Shards: 4}}},
	})
	require.Equal(t, []median{
		{"interleaved", 2, 3, 1.2, 100, 0.08, 10, history.Load{Events: 121, Shards: 4}},
		{"staged", 4, 4, 2, 25, 0.2, 20, history.Load{Events: 300, Shards: 4}},
	}, medians)
	all := goalsOf(medians, history.RoundTrips{Stage: 51, Bare: 10})
	require.Equal(t, []string{
		"rollout ÷ bound: 1.20 > 1.15",
		"orchestration, % of the RL time: 8.0 > 5.0",
		"Temporal events of a step with 4 shards: 121 > 120",
		"stage without work ÷ bare activity: 5.1 > 5.0",
	}, all.missed())
	require.Contains(t, all.String(), "1.20      1.15  missed")
	require.Contains(t, table(medians), "rollout of staged / interleaved: 2.00")

	medians[0].Ratio, medians[0].Orchestration, medians[0].Load.Events = 1.15, 0.05, 120
	all = goalsOf(medians, history.RoundTrips{Stage: 50, Bare: 10})
	require.Len(t, all, 4)
	require.Empty(t, all.missed())
	require.NotContains(t, all.String(), "missed")
	require.Len(t, goalsOf(medians[1:], history.RoundTrips{Stage: 50, Bare: 10}), 1, "no interleaved run")
}

func TestActivitiesOfTheLastInterleavedRun(t *testing.T) {
	of := func(mode, run string) measured {
		return measured{outcome: outcome{Run: run}, Mode: mode, Overlaps: []history.Overlap{
			{Activity: "RecordTimings", Count: 12, Seconds: 1.5, Alone: 0.25}}}
	}
	text := activities([]measured{of("interleaved", "a"), of("interleaved", "b"), of("staged", "c")})
	require.Contains(t, text, "activities of run b")
	require.Regexp(t, `RecordTimings +12 +1\.50 +0\.25`, text)
	require.Empty(t, activities([]measured{of("staged", "c")}))
}
