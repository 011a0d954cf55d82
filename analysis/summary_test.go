package analysis

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/terminal"
	"github.com/ropewalk/ropewalk/schema"
)

// show marks a turn in which the policy wrote a summary, and it is in no anchor group.
func TestSummariesAreMarked(t *testing.T) {
	turns := []schema.TurnRow{{Response: "a call", AnchorHash: "x", TokenIDs: []int32{1}},
		{Turn: 1, Response: "what I did", AnchorHash: "y", TokenIDs: []int32{2}, Summary: new(true), Finish: "length"}}
	var b strings.Builder
	p := terminal.NewPrinter(&b)
	for _, turn := range turns {
		Episode{}.writeTurn(p, turn, Layout{})
	}
	require.Contains(t, b.String(), "turn 0\n")
	require.Contains(t, b.String(), "turn 1 · summary\n")
	require.Contains(t, b.String(), "what I did")
	require.Equal(t, []string{"x"}, sequence(turns).Anchors)
}
