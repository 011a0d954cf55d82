package zygote

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

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

// When a call is paused, all the processes that it has started are paused, whatever their process group. They all run
// again in the call's share of each cycle.
func TestTheWholeCallIsPaused(t *testing.T) {
	e := strongest(t)
	z := e.peek().bare()
	if z.freezer() == "" {
		t.Skip("no group can be frozen")
	}
	ctx, cancel := context.WithCancel(t.Context())
	p, ended := setAside(t), make(chan error, 1)
	go func() {
		_, err := e.attempt(ctx, p, e.plan.sets.available[0],
			sandbox.Call{Code: spinner, Limits: sandbox.Limits{CPU: time.Hour, Wall: time.Hour}})
		ended <- err
	}()
	spins := 0
	until(t, func() bool {
		for _, call := range children(z.command.Process.Pid) {
			for _, child := range children(call) {
				if session, _ := unix.Getsid(child); session == child {
					spins = child
				}
			}
		}
		return spins != 0
	})
	for range 2 {
		until(t, func() bool { return stateOf(spins) == "R" })
		until(t, func() bool { return stateOf(spins) == "T" || stateOf(spins) == "S" }) // by signal, or frozen
	}
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

// A call can end while its group freezes. The next call of the same zygote must not find it frozen.
func TestACallThatEndsWhileItIsPaused(t *testing.T) {
	e := strongest(t)
	z, call := e.peek().bare(), sandbox.Call{Code: "1"}
	if z.freezer() == "" {
		t.Skip("no group can be frozen")
	}
	limits := sandbox.Limits{}.OrDefault()
	z.calls++
	r := &running{zygote: z, id: z.calls, limits: limits, pipes: [2]int{-1, -1}, found: -1, began: time.Now(),
		until: time.Now().Add(hangs), task: &task{background: true}}
	defer r.closePipes()
	require.NoError(t, r.start(call))
	_, err := unix.Poll([]unix.PollFd{{Fd: int32(z.link.fd), Events: unix.POLLIN}}, int(hangs.Milliseconds()))
	require.NoError(t, err)
	require.NoError(t, z.freezer().freeze())
	r.task.pausedAt = time.Now()
	answer, _, err := r.await(t.Context(), nil)
	require.NoError(t, err)
	r.task.ended(r, answer.cpu)
	frozen, err := z.freezer().frozen()
	require.NoError(t, err)
	require.False(t, frozen)
	next, err := z.execute(t.Context(), call, limits, nil)
	require.NoError(t, err)
	require.Equal(t, "1", next.Value, next.Status)
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
		until(t, func() bool { // the call leads its group a moment after it exists
			for _, call := range children(z.command.Process.Pid) {
				return len(r.leaders()) == 1 && (c.still || len(children(call)) > 0)
			}
			return false
		})
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
