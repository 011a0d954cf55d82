package recipes

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
)

// idLimits lists the fields that ids number, with the largest value now and in older records.
var idLimits = []struct {
	path        string
	now, former int
}{
	{"steps", schema.MaxSteps, 1_000_000},
	{"rollout.prompts", schema.MaxGroups, 65_536},
	{"rollout.samples_per_prompt", schema.MaxSamples, 1_024},
}

// The largest allowed step, group and sample have valid ids. The next larger value has none.
func TestLimitsAreThoseOfIDs(t *testing.T) {
	for _, l := range idLimits {
		_, err := ParseWith("f", []byte(small), []string{fmt.Sprintf("%s=%d", l.path, l.now)})
		require.NoError(t, err)
		_, err = ParseWith("f", []byte(small), []string{fmt.Sprintf("%s=%d", l.path, l.now+1)})
		require.EqualError(t, err, fmt.Sprintf("--set %s=%d: must be ≤ %d, got %d", l.path, l.now+1, l.now, l.now+1))
	}
	_, _, _, err := schema.ParseTrajectoryID(schema.TrajectoryID(schema.MaxSteps, schema.MaxGroups-1,
		schema.MaxSamples-1))
	require.NoError(t, err)
	for _, id := range []string{
		schema.TrajectoryID(schema.MaxSteps+1, 0, 0), schema.TrajectoryID(1, schema.MaxGroups, 0),
		schema.TrajectoryID(1, 0, schema.MaxSamples),
	} {
		_, _, _, err := schema.ParseTrajectoryID(id)
		require.Error(t, err, id)
	}
}

// A run that started under wider limits can still be read, amended and resumed. New values are checked against the
// present limits.
func TestCommittedRecipesKeepTheLimitsOfTheirTime(t *testing.T) {
	for _, l := range idLimits {
		old, err := Parse("f", []byte(small))
		require.NoError(t, err)
		switch l.path {
		case "steps":
			old.Steps = l.former
		case "rollout.prompts":
			old.Rollout.Prompts = l.former
		case "rollout.samples_per_prompt":
			old.Rollout.SamplesPerPrompt = l.former
		}
		text, err := old.Canonical()
		require.NoError(t, err)
		_, err = Parse("f", text)
		require.ErrorContains(t, err, l.path)
		read, err := ParseCommitted("f", text, nil)
		require.NoError(t, err)
		require.Equal(t, old, read)
		amended, err := ResolveCommitted(read, []string{"optimizer.lr=0.5"})
		require.NoError(t, err)
		require.Equal(t, 0.5, amended.Recipe.Optimizer.LR)
		_, err = ResolveCommitted(read, []string{fmt.Sprintf("%s=%d", l.path, l.now+1)})
		require.ErrorContains(t, err, fmt.Sprintf("must be ≤ %d", l.now))
	}
}
