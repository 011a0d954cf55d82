package setup

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/stack"
	"github.com/ropewalk/ropewalk/internal/temporalconf"
)

func TestOfTemporal(t *testing.T) {
	conf, err := temporalconf.Default()
	require.NoError(t, err)
	whole := stack.TemporalState{Namespace: true, Retention: conf.Retention, Attributes: conf.SearchAttributes,
		Workers: map[string]int{"cpu": 1, "rollout": 2, "sandbox": 1, "gpu": 1}}
	f := OfTemporal(conf, "ropewalk", whole)
	require.False(t, f.Has(Missing, Conflict, Note), f)

	longer := whole
	longer.Retention = 2 * conf.Retention
	require.Equal(t, OK, states(OfTemporal(conf, "ropewalk", longer))["retention"], "it is never lowered")

	short := whole
	short.Retention, short.Workers = 24*time.Hour, nil
	short.Attributes = map[string]string{"RunID": "Keyword", "Step": "Double"}
	got := OfTemporal(conf, "ropewalk", short)
	require.Contains(t, got, Finding{What: "retention", State: Missing, Need: "720h", Have: "24h"})
	require.Equal(t, OK, states(got)["search attribute RunID"])
	require.Equal(t, Conflict, states(got)["search attribute Step"])
	require.Equal(t, Missing, states(got)["search attribute Stage"])
	require.Equal(t, Note, states(got)["queue cpu"])

	nothing := OfTemporal(conf, "ropewalk", stack.TemporalState{})
	require.Equal(t, Missing, states(nothing)["namespace ropewalk"])
	require.False(t, nothing.Has(Conflict, OK))
}
