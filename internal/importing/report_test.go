package importing

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

func TestPassWords(t *testing.T) {
	require.Equal(t, "1: 0.420  2: 0.273", passWords([]float64{0.42, 0.2733}))
	require.Equal(t, 8, strings.Count(passWords(make([]float64, 100)), ":"))
}

// Conversations are reported with tasks and pass^k, which are read from the record.
func TestReportOfConversations(t *testing.T) {
	objects := mem.New()
	recordtest.Conversations(t, objects, "talk")
	result := workflows.ReprocessResult{Run: "talk", Format: api.FormatOpenAI, Trajectories: 4, ToolCalls: 4,
		Rewarded: 2, Reward: 0.5, Kept: 4, BatchRows: 4}
	r, err := NewReport(t.Context(), objects, result, 2*time.Second)
	require.NoError(t, err)
	require.Equal(t, 2, r.Tasks)
	require.Equal(t, map[string]float64{"1": 0.5, "2": 0}, r.PassHatK)
	var out bytes.Buffer
	r.WriteText(&out, result)
	require.Contains(t, out.String(), "2 of 4 trajectories of 2 tasks succeed")
	require.Contains(t, out.String(), "pass^k       1: 0.500  2: 0.000")
	require.NotContains(t, out.String(), "excluded")
}
