package sql_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/sql"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// TestAGapIsTold: the caller hears of missing heads before it gets rows that lack those of their steps.
func TestAGapIsTold(t *testing.T) {
	ctx := context.Background()
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 3, Seed: 1, Created: "2026-01-02T03:04:05Z"})
	require.NoError(t, objects.Delete(ctx, schema.HeadKey("r", "2")))
	const query = "select distinct step from rewards order by step"
	_, err := sql.Query(ctx, analysis.New(objects), query)
	var gap *analysis.GapError
	require.ErrorAs(t, err, &gap)
	require.Equal(t, []int{2}, gap.Steps)

	var told []*analysis.GapError
	result, err := sql.Query(ctx, analysis.New(objects).WithGaps(func(g *analysis.GapError) error {
		told = append(told, g)
		return nil
	}), query)
	require.NoError(t, err)
	require.Len(t, told, 1)
	require.Len(t, result.Rows, 2)
}
