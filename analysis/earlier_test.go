package analysis_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/recordtest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// A record whose stages have the names of earlier versions is read and verified as one with today's names.
func TestEarlierNamesOfStages(t *testing.T) {
	ctx := context.Background()
	rows := map[bool][]analysis.TokenRow{}
	figures := map[bool]analysis.RunFigures{}
	for _, earlier := range []bool{true, false} {
		objects := mem.New()
		recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1, Outputs: true,
			EarlierNames: earlier})
		_, err := objects.Get(ctx, "runs/run=r/manifests/step=1/forward/gen=0.json")
		require.Equal(t, earlier, err == nil)
		require.Empty(t, verify(t, objects).Faults)
		v, err := analysis.New(objects).Visible(ctx, "r")
		require.NoError(t, err)
		rows[earlier], err = v.TokenRows(ctx, 1)
		require.NoError(t, err)
		figures[earlier], err = analysis.New(objects).Figures(ctx, "r")
		require.NoError(t, err)
	}
	require.NotEmpty(t, rows[true])
	require.Equal(t, rows[false], rows[true])
	require.Positive(t, figures[true].StageSeconds[schema.StageLogprobs])
	require.Equal(t, figures[false], figures[true])
}
