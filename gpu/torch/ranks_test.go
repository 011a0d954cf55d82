package torch

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
)

// One rank of two dies, in its own session: all end.
func TestRanks(t *testing.T) {
	o, _ := faked(t, "agent", "two")
	o.Ranks = 2
	for name, which := range map[string]int{"the one that speaks": 1, "the other": 0, "the agent": -1} {
		t.Run(name, func(t *testing.T) {
			e, err := Open(t.Context(), o)
			require.NoError(t, err)
			defer e.Close()
			p := e.latest()
			require.Len(t, p.tree.ranks, 2)
			if which < 0 {
				require.NoError(t, syscall.Kill(p.tree.root, syscall.SIGKILL))
			} else {
				require.NoError(t, p.tree.ranks[which].Kill())
			}
			<-p.done
			for _, r := range p.tree.ranks {
				_, there := parents()[r.Pid]
				require.False(t, there)
			}
			_, err = e.Forward(t.Context(), one)
			require.ErrorIs(t, err, policy.ErrLost)
			require.NoError(t, e.Close())
			requireNothingLeft(t, o.Dir)
		})
	}
	t.Run("stacks of all", func(t *testing.T) {
		o.command[3] = "two"
		e, err := Open(t.Context(), o)
		require.NoError(t, err)
		p := e.latest()
		up := func() bool { return strings.Count(p.lines.last(maxTail), "fake engine is up") == 2 }
		require.Eventually(t, up, time.Minute, 10*time.Millisecond)
		p.endHung(time.Second)
		require.Equal(t, 1, strings.Count(p.lost.Stacks, "Thread 0x1 of pid "+strconv.Itoa(p.tree.ranks[0].Pid)))
		require.Equal(t, 1, strings.Count(p.lost.Stacks, "Thread 0x1 of pid "+strconv.Itoa(p.tree.ranks[1].Pid)))
		require.NoError(t, e.Close())
		requireNothingLeft(t, o.Dir)
	})
}

// An engine does not outlive its host, even one that is killed.
func TestEngineDiesWithItsHost(t *testing.T) {
	host := exec.Command(os.Args[0], "fake", "host")
	out, err := host.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, host.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	require.NoError(t, err)
	require.Contains(t, parents(), pid)
	require.NoError(t, host.Process.Kill())
	_ = host.Wait() // killed
	require.Eventually(t, func() bool { _, there := parents()[pid]; return !there }, time.Minute, 10*time.Millisecond)
}
