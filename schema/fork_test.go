package schema

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestForks(t *testing.T) {
	m := NewManifest(AtInit("fork", StagePrepare), Digest(nil), Digest(nil))
	f, err := m.Fork()
	require.NoError(t, err)
	require.Zero(t, f)
	m.Note[NoteFork] = "quick-1@40"
	f, err = m.Fork()
	require.NoError(t, err)
	require.Equal(t, ForkPoint{"quick-1", 40}, f)
	require.Equal(t, m.Note[NoteFork], f.String())
	require.True(t, IsNote(f.ForkKey("fork")))
	for place, shared := range map[Place]bool{
		At("fork", 40, StageEvaluate): true, At("fork", 41, StageEvaluate): false,
		AtInit("fork", StageEvaluate): true, AtInit("fork", StageWarmStart): false, AtInit("fork", StagePrepare): false,
	} {
		require.Equal(t, shared, f.Shares(place), place)
	}
	for _, text := range []string{"", "quick-1", "quick-1@0", "quick-1@040", "@1", "Quick@1", "quick-1@999999"} {
		m.Note[NoteFork] = text
		_, err = m.Fork()
		require.ErrorContains(t, err, "note fork: want RUN@STEP", text)
	}
}
