package sokoban

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A person sees a board with cells of equal size; other texts stay as they are.
func TestLay(t *testing.T) {
	for text, want := range map[string]string{
		"#####\n#PXO#\n#_√S#\n#####": "██████████\n██ P X O██\n██ · √ S██\n██████████",
		"":                           "",
		"# a heading #":              "# a heading #",
		"####\nThe room is drawn.":   "████████\nThe room is drawn.",
		"##":                         "##",
		"#\xff#":                     "#\xff#",
	} {
		require.Equal(t, want, lay("", text))
	}
}

// Every symbol that a room is drawn with has a cell.
func TestLayKnowsAllSymbols(t *testing.T) {
	e := newSokoban(t, Settings{MaxTurns: GymTurns, Size: 6, Boxes: 1, MinMoves: 1, MaxMoves: 12})
	state := begin(t, e, "#######", "#+$.* #", "# $   #", "#######")
	_, r, err := readState(state)
	require.NoError(t, err)
	require.Equal(t, "██████████████\n██ S X O √ ·██\n██ · X · · ·██\n██████████████", lay("", draw(r)))
}
