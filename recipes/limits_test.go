package recipes

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
)

// idLimits lists the fields that ids number, with the largest value.
var idLimits = []struct {
	path string
	now  int
}{
	{"steps", schema.MaxSteps},
	{"rollout.prompts", schema.MaxGroups},
	{"rollout.samples_per_prompt", schema.MaxSamples},
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
