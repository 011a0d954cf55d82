package analysis_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/internal/testing/tamper"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// TestAGapIsAnError: a reader that does not say otherwise reads no run of which heads are missing; one that does is
// told which, and reads the rest.
func TestAGapIsAnError(t *testing.T) {
	ctx := context.Background()
	sound := mem.New()
	recordtest.Train(t, sound, recordtest.Options{Run: "r", Steps: 3, Seed: 1, Created: "2026-01-02T03:04:05Z"})
	_, err := analysis.New(sound).Visible(ctx, "r")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		deleted []string
		gap     analysis.GapError
		left    []int
	}{
		"the first": {deleted: []string{"1"},
			gap: analysis.GapError{Run: "r", Steps: []int{1}, Later: 3}, left: []int{2, 3}},
		"one between": {deleted: []string{"2"},
			gap: analysis.GapError{Run: "r", Steps: []int{2}, Later: 3}, left: []int{1, 3}},
		"the first two": {deleted: []string{"1", "2"},
			gap: analysis.GapError{Run: "r", Steps: []int{1, 2}, Later: 3}, left: []int{3}},
		"the last, which was evaluated": {deleted: []string{"3"},
			gap: analysis.GapError{Run: "r", Steps: []int{3}, Later: 3}, left: []int{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := tamper.Copy(t, sound)
			for _, step := range c.deleted {
				require.NoError(t, objects.Delete(ctx, schema.HeadKey("r", step)))
			}
			record := analysis.New(objects)
			_, err := record.Visible(ctx, "r")
			var gap *analysis.GapError
			require.ErrorAs(t, err, &gap)
			require.Equal(t, c.gap, *gap)
			require.ErrorContains(t, err, "ropewalk verify r")
			_, err = record.Overview(ctx, "r")
			require.ErrorAs(t, err, &gap)
			_, err = record.Figures(ctx, "r")
			require.ErrorAs(t, err, &gap)

			var told []analysis.GapError
			v, err := record.WithGaps(func(g *analysis.GapError) error {
				told = append(told, *g)
				return nil
			}).Visible(ctx, "r")
			require.NoError(t, err)
			require.Equal(t, []analysis.GapError{c.gap}, told)
			require.Equal(t, c.left, v.Steps())
			require.Contains(t, tamper.Faults(tamper.Verify(t, objects)), "missing "+schema.HeadKey("r", c.deleted[0]))
		})
	}
}
