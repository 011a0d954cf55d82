package view

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/schema"
)

// What an action led to is told in words. Without a layout, texts stay as they are.
func TestTransitionsAreTold(t *testing.T) {
	var layout analysis.Layout
	row := schema.TransitionRow{Action: "sing", WellFormed: true, Reward: -0.1, Observation: "<b>"}
	require.Equal(t, []analysis.Part{{Name: "action", Text: "sing"},
		{Name: "led to", Text: "reward -0.1, not a known action"}, {Name: "seen", Text: "<b>"}}, layout.Move(row))
	row.Valid, row.Done, row.Success = true, true, true
	require.Equal(t, "reward -0.1, solved", layout.Move(row)[1].Text)
}
