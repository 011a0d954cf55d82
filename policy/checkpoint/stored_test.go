package checkpoint

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Numbers stay in their files until they are read, and come out in pieces that make the whole.
func TestOpenLeavesNumbersInTheirFiles(t *testing.T) {
	wide := small
	wide.Vocab = pieceNumbers/wide.Hidden + 3 // the embedding is more than a piece
	want := withOptimizer(t, wide)
	dir := filepath.Join(t.TempDir(), "a")
	digest, err := Write(dir, want)
	require.NoError(t, err)
	got, err := Open(dir, true)
	require.NoError(t, err)
	for i, w := range got.Weights {
		for _, pair := range [][2]Tensor{
			{want.Weights[i], w}, {want.Optimizer.States[0][i], got.Optimizer.States[0][i]},
			{want.Optimizer.States[1][i], got.Optimizer.States[1][i]},
		} {
			require.Nil(t, pair[1].Data)
			var numbers []float32
			pieces := 0
			require.NoError(t, pair[1].Read(func(at int, piece []float32) {
				require.Equal(t, len(numbers), at)
				require.LessOrEqual(t, len(piece), pieceNumbers)
				numbers = append(numbers, piece...)
				pieces++
			}))
			require.Equal(t, pair[0].Data, numbers, pair[1].Name)
			require.Equal(t, (len(numbers)+pieceNumbers-1)/pieceNumbers, pieces)
		}
	}
	again, err := Write(filepath.Join(t.TempDir(), "b"), got)
	require.NoError(t, err)
	require.Equal(t, digest, again, "an open checkpoint is written from file to file")
	require.NoError(t, got.Close())
	require.NoError(t, got.Close())
	require.ErrorIs(t, got.Weights[0].Read(func(int, []float32) { t.Error("read from a closed file") }), os.ErrClosed)
	_, err = Write(filepath.Join(t.TempDir(), "c"), got)
	require.ErrorIs(t, err, os.ErrClosed)
}

// A file that is cut short after it was opened is an error, and no zeros.
func TestReadFindsAShortFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	_, err := Write(dir, withOptimizer(t, small))
	require.NoError(t, err)
	c, err := Open(dir, false)
	require.NoError(t, err)
	defer c.Close()
	info, err := os.Stat(filepath.Join(dir, FileWeights))
	require.NoError(t, err)
	require.NoError(t, os.Truncate(filepath.Join(dir, FileWeights), info.Size()-1))
	last := c.Weights[len(c.Weights)-1]
	require.ErrorContains(t, last.Read(func(int, []float32) {}), last.Name)
}
