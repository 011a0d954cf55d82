package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMediansAndGoals(t *testing.T) {
	medians := summarise([]measured{
		{outcome: outcome{Orchestration: 0.04, RLSeconds: 9}, Mode: "interleaved", Steps: []step{
			{Seconds: 1, Processor: 2, Ratio: 1, Tokens: 100}, {Seconds: 2, Processor: 3, Ratio: 1.2, Tokens: 100}}},
		{outcome: outcome{Orchestration: 0.12, RLSeconds: 11}, Mode: "interleaved", Steps: []step{
			{Seconds: 3, Processor: 4, Ratio: 1.4, Tokens: 300}}},
		{outcome: outcome{Orchestration: 0.2, RLSeconds: 20}, Mode: "staged", Steps: []step{
			{Seconds: 4, Processor: 4, Ratio: 2, Tokens: 100}}},
	})
	require.Equal(t, []median{
		{"interleaved", 2, 3, 1.2, 100, 0.08, 10},
		{"staged", 4, 4, 2, 25, 0.2, 20},
	}, medians)
	require.Equal(t, []string{"a rollout takes 1.20 × its bound > 1.15",
		"orchestration takes 8.0% of the RL time > 5%"}, failed(medians))
	require.Contains(t, table(medians), "rollout of staged / interleaved: 2.00")
	medians[0].Ratio, medians[0].Orchestration = 1.15, 0.05
	require.Empty(t, failed(medians))
}
