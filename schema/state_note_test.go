package schema_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
)

func TestNotesOfARunsStateSortByTime(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 999_999_000, time.UTC)
	first := schema.NewStateNote("running", "", "", at)
	second := schema.NewStateNote("parked", "no_space", "disk full", at.Add(time.Microsecond))
	require.Equal(t, "states/r/20260102T030405.999999Z-running.json", schema.StateKey("r", first))
	require.Less(t, schema.StateKey("r", first), schema.StateKey("r", second))
}
