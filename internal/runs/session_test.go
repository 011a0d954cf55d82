package runs

import (
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/badinput"
)

// A named interpreter that does not start is found before any server starts for the run.
func TestABadInterpreterIsFoundBeforeTheStackStarts(t *testing.T) {
	home := t.TempDir()
	t.Setenv("ROPEWALK_HOME", home)
	t.Setenv("ROPEWALK_PYTHON", "/nowhere/python3")
	_, err := Connector{Messages: io.Discard}.Join(t.Context(), NeedAll)
	var bad badinput.Error
	require.ErrorAs(t, err, &bad)
	require.ErrorContains(t, err, "/nowhere/python3 cannot start")
	require.ErrorContains(t, err, "set ROPEWALK_PYTHON to one that can")
	left, err := os.ReadDir(home)
	require.NoError(t, err)
	require.Empty(t, left)
}
