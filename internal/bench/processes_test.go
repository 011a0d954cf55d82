package bench

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTicks(t *testing.T) {
	line := "17 (a ) (b) S 4 17 17 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 99 1000 3 18446744073709551615 1 1\n"
	require.EqualValues(t, 5+6+7+8, ticksOf([]byte(line)))
	require.Zero(t, ticksOf([]byte("17 (a) S 4")))
}

func TestTreeCountsDescendants(t *testing.T) {
	before, err := Tree(os.Getpid())
	require.NoError(t, err)
	require.Positive(t, before.Root)
	require.Positive(t, before.Descriptors)
	// A shell that waits for a child of its own, and a child that ends and is not waited for.
	command := exec.Command("sh", "-c", "sleep 60 & echo; wait")
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	dead := exec.Command("true")
	require.NoError(t, dead.Start())
	_, err = out.Read(make([]byte, 1))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		now, err := Tree(os.Getpid())
		require.NoError(t, err)
		return now.Processes == before.Processes+2 && now.Zombies == before.Zombies+1 && now.Others > before.Others
	}, 10*time.Second, 5*time.Millisecond)
	one, err := Tree(command.Process.Pid)
	require.NoError(t, err)
	require.Equal(t, 2, one.Processes)
	require.NoError(t, dead.Wait())
	require.NoError(t, syscall.Kill(-command.Process.Pid, syscall.SIGKILL))
	_ = command.Wait() // killed
	_, err = Tree(command.Process.Pid)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestPeakResident(t *testing.T) {
	peak, err := PeakResident(os.Getpid())
	require.NoError(t, err)
	require.Greater(t, peak, int64(1<<20))
	_, err = PeakResident(-1)
	require.Error(t, err)
}
