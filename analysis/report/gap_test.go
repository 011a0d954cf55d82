package report_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/report"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// TestARunWithAGapHasNoReport: its curves would leave a step out.
func TestARunWithAGapHasNoReport(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 3, Seed: 1, Created: "2026-01-02T03:04:05Z"})
	require.NoError(t, objects.Delete(context.Background(), schema.HeadKey("r", "2")))
	_, err := report.Gather(context.Background(), analysis.New(objects), "r", false)
	var gap *analysis.GapError
	require.ErrorAs(t, err, &gap)
}
