package evaluate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
)

func TestEpisodesThatIdsCannotNumberAreNotRecorded(t *testing.T) {
	require.True(t, fits(schema.MaxGroups, schema.MaxSamples))
	require.False(t, fits(schema.MaxGroups+1, 1))
	require.False(t, fits(1, schema.MaxSamples+1))
}
