package stack

import (
	"bufio"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// heldVariable makes the test binary hold a run until it is killed.
const heldVariable = "ROPEWALK_TEST_HOLD"

func left(t *testing.T) []string {
	t.Helper()
	runs, err := LeftBehind()
	require.NoError(t, err)
	return runs
}

func TestAHeldRunIsLeftBehindByWhatLeavesIt(t *testing.T) {
	t.Setenv("ROPEWALK_HOME", t.TempDir())
	require.Empty(t, left(t), "there are no notes yet")
	first, err := Hold("a")
	require.NoError(t, err)
	second, err := Hold("a")
	require.NoError(t, err)
	other, err := Hold("b")
	require.NoError(t, err)
	require.Empty(t, left(t))

	require.NoError(t, first.Leave())
	require.Empty(t, left(t), "another process holds it")
	require.NoError(t, Forget("a"), "what is held is kept")
	require.NoError(t, second.Leave())
	require.NoError(t, other.Release())
	require.Equal(t, []string{"a"}, left(t))

	again, err := Hold("a")
	require.NoError(t, err)
	require.Empty(t, left(t))
	require.NoError(t, again.Release())
	require.Empty(t, left(t))
}

func TestOneOfTwoHoldsKeepsTheNote(t *testing.T) {
	t.Setenv("ROPEWALK_HOME", t.TempDir())
	first, err := Hold("a")
	require.NoError(t, err)
	second, err := Hold("a")
	require.NoError(t, err)
	require.NoError(t, first.Release())
	require.NoError(t, second.Leave())
	require.Equal(t, []string{"a"}, left(t))
	require.NoError(t, Forget("a"))
	require.NoError(t, Forget("a"))
	require.Empty(t, left(t))
}

// The kernel ends the hold of a process that is killed.
func TestAKilledProcessLeavesItsRunBehind(t *testing.T) {
	if os.Getenv(heldVariable) != "" {
		held, err := Hold("killed")
		require.NoError(t, err)
		defer held.Release()
		_, err = os.Stdout.WriteString("held\n")
		require.NoError(t, err)
		_, _ = os.Stdin.Read(make([]byte, 1))
		return
	}
	t.Setenv("ROPEWALK_HOME", t.TempDir())
	cmd := exec.Command(os.Args[0], "-test.run", t.Name()+"$")
	cmd.Env = append(os.Environ(), heldVariable+"=1")
	_, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "held\n", line)
	require.Empty(t, left(t))
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.Equal(t, []string{"killed"}, left(t))
}
