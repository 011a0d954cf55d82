package analysis_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
)

func TestProgramsAreNamed(t *testing.T) {
	for version, want := range map[string]string{"": "d", "(devel)": "d (devel)", "v0.1.0": "d (v0.1.0)"} {
		require.Equal(t, want, analysis.Program{Digest: "d", Version: version}.Name())
	}
}

func TestErrorRatesAreSaid(t *testing.T) {
	first, last := analysis.FailedPart{Step: 1, Rate: 0.815}, analysis.FailedPart{Step: 12, Rate: 0.855}
	var out strings.Builder
	analysis.WriteErrorRates(&out, []analysis.ErrorRate{
		{Kind: "tool calls", First: first, Last: last, High: 0.848},
		{Kind: "actions", First: last, Last: first, High: 0.88, NoHigher: true},
	})
	require.Equal(t, "failed      81.5% of tool calls in step 1 → 85.5% in step 12: a rise (step 1's 95% interval "+
		"ends at 84.8%)\n"+
		"failed      85.5% of actions in step 12 → 81.5% in step 1: no rise (step 12's 95% interval ends at 88.0%)\n",
		out.String())
}
