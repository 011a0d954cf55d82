package zygote

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/sandbox"
)

// Tests both versions, with folders that look like the kernel's.
func TestFreezerFiles(t *testing.T) {
	for _, c := range []struct{ name, file, frozen, thawed, state, still, runs string }{
		{"version 1", "freezer.state", "FROZEN", "THAWED", "freezer.state", "FROZEN\n", "FREEZING\n"},
		{"version 2", "cgroup.freeze", "1", "0", "cgroup.events", "populated 1\nfrozen 1\n", "populated 1\nfrozen 0\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := t.TempDir()
			f := freezer(folder)
			require.Error(t, f.freeze())
			put := func(name, text string) {
				require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644))
			}
			holds := func(want string) {
				text, err := os.ReadFile(filepath.Join(folder, c.file))
				require.NoError(t, err)
				require.Equal(t, want, string(text)[:len(want)])
			}
			put(c.file, "      ")
			require.NoError(t, f.freeze())
			holds(c.frozen)
			put(c.state, c.runs)
			still, err := f.frozen()
			require.NoError(t, err)
			require.False(t, still)
			put(c.state, c.still)
			still, err = f.frozen()
			require.NoError(t, err)
			require.True(t, still)
			require.NoError(t, f.thaw())
			holds(c.thawed)
		})
	}
}

// spinner forks a process in a session of its own that uses a processor without end, and waits.
const spinner = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    while True: pass\ntime.sleep(60)"

// crowd keeps the foreground full until the test ends.
func crowd(t *testing.T, e *Executor) {
	var feeders sync.WaitGroup
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop); feeders.Wait() })
	for range 4 * e.Workers() {
		feeders.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				_, err := e.Run(t.Context(), []sandbox.Call{{Code: "sum(range(100_000))"}})
				if t.Context().Err() == nil {
					assert.NoError(t, err)
				}
			}
		})
	}
}

// spun starts a spinner in a crowd and returns its CPU clock.
func spun(t *testing.T, e *Executor) cpuClock {
	crowd(t, e)
	go func() { // until the executor closes
		_, _ = e.Run(t.Context(), []sandbox.Call{{Code: spinner,
			Limits: sandbox.Limits{CPU: time.Minute, Wall: time.Minute}}})
	}()
	return spinning(t)
}

// spinning returns the CPU clock of the spinner that runs.
func spinning(t *testing.T) cpuClock {
	var found cpuClock
	require.Eventually(t, func() bool {
		for _, zygote := range children(os.Getpid()) {
			for _, call := range children(zygote) {
				for _, child := range children(call) {
					// Other processes at this place, such as those of a zygote that starts, lead no session or use
					// little.
					used, err := clockOf(child).read()
					session, _ := unix.Getsid(child)
					if err == nil && session == child && used > 20*time.Millisecond {
						found = clockOf(child)
						return true
					}
				}
			}
		}
		return false
	}, time.Minute, 5*time.Millisecond, "no spinner was found")
	return found
}

// When a call is paused, all the processes that it has started are paused, whatever their process group.
func TestTheWholeCallIsPaused(t *testing.T) {
	e := strongest(t)
	if e.peek().bare().freezer() == "" {
		t.Skip("no group can be frozen")
	}
	clock := spun(t, e)
	before, after := time.Duration(-1), time.Duration(0)
	for began := time.Now(); before != after; {
		require.Less(t, time.Since(began), 50*time.Second, "it was never paused")
		was, err := clock.read()
		time.Sleep(700 * time.Millisecond)
		is, again := clock.read()
		if err != nil || again != nil { // it has lost its place, and starts again
			clock = spinning(t)
			continue
		}
		before, after = was, is
	}
}

// If no group can be frozen, a call of one process is paused. A call of several processes keeps running, and so does
// its wall limit.
func TestWithoutAGroupOnlyACallOfOneProcessIsPaused(t *testing.T) {
	e := strongest(t)
	set := e.plan.sets.available[0]
	for _, c := range []struct {
		code  string
		still bool
	}{{"import time\ntime.sleep(60)", true}, {spinner, false}} {
		plain := e.plan
		plain.bounds = nil
		z, err := e.spawner.start(plain, workFolder, set)
		require.NoError(t, err)
		require.Empty(t, z.freezer())
		ended := make(chan error, 1)
		go func() {
			_, err := z.execute(t.Context(), sandbox.Call{Code: c.code},
				sandbox.Limits{CPU: time.Minute, Wall: time.Minute}.OrDefault(), nil)
			ended <- err
		}()
		r, p := &running{zygote: z}, &task{}
		require.Eventually(t, func() bool { // the call leads its group a moment after it exists
			for _, call := range children(z.command.Process.Pid) {
				return len(r.leaders()) == 1 && (c.still || len(children(call)) > 0)
			}
			return false
		}, time.Minute, 5*time.Millisecond)
		p.pause(r)
		require.Equal(t, c.still, p.paused())
		require.Equal(t, !c.still, p.unpausable)
		if c.still {
			p.resume(r)
		}
		require.False(t, p.paused())
		require.NoError(t, z.command.Process.Kill()) // stop is for a zygote that runs no call
		require.Error(t, <-ended)
		z.stop()
	}
}
