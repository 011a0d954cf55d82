package analysis

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/rl/diagnose"
)

func TestPropertiesAsText(t *testing.T) {
	var all diagnose.Properties
	require.NoError(t, all.Add(
		diagnose.Sampled{Group: "a", Turns: []diagnose.SampledTurn{{Valid: true}}},
		diagnose.Sampled{Group: "a", Calls: 1, Turns: []diagnose.SampledTurn{{}}}))
	r, err := all.Report()
	require.NoError(t, err)
	var text strings.Builder
	require.NoError(t, WriteProperties(&text, &r))
	for _, line := range []string{
		"groups without variance                      100.0%   VSPO, PRS (≥ 60%): yes",
		"failed calls in positive trajectories             –   RoC (≥ 10%): no",
		"initial success                                0.0%   SPEAR (< 15%): yes",
		"turns in anchor groups that compare               –   GiGPO (≥ 50%): no",
		"invalid turns                                 50.0%   dynamic filtering (≥ 20%): yes",
		"calls per trajectory                           0.50   AEPO (≥ 3): no",
	} {
		require.Contains(t, text.String(), line)
	}
}
