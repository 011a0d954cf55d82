package export_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/export"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// TestAGapEndsAnExportOfItsSteps: an export of other steps lacks nothing.
func TestAGapEndsAnExportOfItsSteps(t *testing.T) {
	ctx := context.Background()
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 3, Seed: 1})
	require.NoError(t, objects.Delete(ctx, schema.HeadKey("r", "2")))
	record := analysis.New(objects)
	var gap *analysis.GapError
	for _, steps := range [][2]int{{0, 0}, {1, 3}, {2, 2}} {
		var out bytes.Buffer
		_, err := export.Write(ctx, record, &out,
			export.Options{Run: "r", Format: export.OpenAI, Only: export.All, First: steps[0], Last: steps[1]})
		require.ErrorAs(t, err, &gap)
		require.Empty(t, out.String())
	}
	var out bytes.Buffer
	done, err := export.Write(ctx, record, &out,
		export.Options{Run: "r", Format: export.OpenAI, Only: export.All, First: 3, Last: 3})
	require.NoError(t, err)
	require.Equal(t, recordtest.Groups*recordtest.Samples, done.Episodes)
}
