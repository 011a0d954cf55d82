package zygote

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
)

// An endless loop is set aside when other calls wait. Calls behind more loops than there are places end while the loops
// run.
func TestEndlessLoopsDoNotHoldUpOthers(t *testing.T) {
	e := open(t, Options{Workers: 1})
	var aside atomic.Int64
	first := make(chan struct{})
	ctx, cancel := context.WithCancel(sandbox.WithAside(t.Context(), func() {
		if aside.Add(1) == 1 {
			close(first)
		}
	}))
	defer cancel()
	loops := make([]sandbox.Call, 4)
	for i := range loops {
		loops[i] = sandbox.Call{Code: "while True: pass",
			Limits: sandbox.Limits{CPU: time.Hour, Wall: time.Hour}}
	}
	ended := make(chan error, 1)
	go func() {
		_, err := e.Run(ctx, loops)
		ended <- err
	}()
	<-first
	var calls []sandbox.Call
	for i := range 50 {
		calls = append(calls, sandbox.Call{Code: fmt.Sprint(i)})
	}
	results, err := e.Run(ctx, calls)
	require.NoError(t, err)
	for i, r := range results {
		require.Equal(t, fmt.Sprint(i), r.Value)
	}
	require.Empty(t, ended, "the loops have ended first")
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Equal(t, aside.Load(), e.Stats().Aside)
	require.Zero(t, e.Stats().Busy)
}

// If no other call waits, a call may use the foreground for as long as it likes.
func TestNoCallIsSetAsideWithoutOthersWaiting(t *testing.T) {
	e := open(t, Options{Workers: 1})
	result := run(t, e, "import time\ntime.sleep(.2)\n1")
	require.Equal(t, "1", result.Value)
	require.Zero(t, e.Stats().Aside)
}

// A call that is started again in the background gives the result that it would have given the first time: one effect,
// one verdict.
func TestRestartedCallsGiveTheSameResults(t *testing.T) {
	e := open(t, Options{Workers: 1})
	const code = "import time\nprint('once')\nopen('file', 'a').write('x')\nend = time.process_time() + .2\n" +
		"while time.process_time() < end: pass\nopen('file').read()"
	calls := make([]sandbox.Call, 4)
	for i := range calls {
		calls[i] = sandbox.Call{Code: code, Collect: []string{"file"}}
	}
	forks := e.Stats().Forks
	results := runAll(t, e, calls...)
	for _, r := range results {
		require.Equal(t, sandbox.StatusOK, r.Status, r.Stderr)
		require.Equal(t, "once\n", r.Stdout)
		require.Equal(t, "'x'", r.Value)
		require.Len(t, r.Files, 1)
		require.Equal(t, "x", string(r.Files[0].Content))
	}
	require.Greater(t, e.Stats().Forks-forks, int64(len(calls)), "some calls were restarted")
}

// Time slices follow the length of calls: where all calls are long, so are time slices, and few calls are restarted.
func TestTimeSlicesFollowCalls(t *testing.T) {
	l := newScheduler(1)
	require.Equal(t, shortestSlice, l.slice())
	for range 200 {
		l.record(time.Hour) // counts as one time slice
	}
	require.Equal(t, longestSlice, l.slice())
	for range 2000 {
		l.record(time.Millisecond)
	}
	require.Equal(t, shortestSlice, l.slice())
	for i := range 10_000 { // one in a hundred is a loop
		if i%100 == 0 {
			l.record(l.slice())
		} else {
			l.record(2 * time.Millisecond)
		}
	}
	require.LessOrEqual(t, l.slice(), shortestSlice*5/4)
}

// setAside returns a task in the background of a scheduler whose foreground is full.
func setAside(t *testing.T) *task {
	t.Helper()
	s := newScheduler(1)
	p := &task{scheduler: s, background: true}
	require.NoError(t, s.enter(t.Context()))
	require.NoError(t, s.enterBackground(t.Context(), p))
	return p
}

// The wall limit of a call that was set aside does not run while the call is paused. The call sleeps for longer than
// the limit, and is paused meanwhile.
func TestAPauseIsNoTimeOut(t *testing.T) {
	e := open(t, Options{Workers: 1})
	result, err := e.attempt(t.Context(), setAside(t), e.plan.sets.available[0],
		sandbox.Call{Code: "import time\ntime.sleep(1.5)\n1", Limits: sandbox.Limits{Wall: time.Second}})
	require.NoError(t, err)
	require.Equal(t, "1", result.Value, result.Status)
}
