package view

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/recordtest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// What an action led to is told in words. Without a layout, texts stay as they are.
func TestTransitionsAreTold(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 1, Seed: 1})
	visible, err := analysis.New(objects).Visible(t.Context(), "r")
	require.NoError(t, err)
	layout, err := visible.Layout(t.Context())
	require.NoError(t, err)
	row := schema.TransitionRow{Action: "sing", WellFormed: true, Reward: -0.1, Observation: "<b>"}
	require.Equal(t, []analysis.Part{{Name: "action", Text: "sing"},
		{Name: "led to", Text: "reward -0.1, not a known action"}, {Name: "seen", Text: "<b>"}}, layout.Move(row))
	row.Valid, row.Done, row.Success = true, true, true
	require.Equal(t, "reward -0.1, solved", layout.Move(row)[1].Text)
}
