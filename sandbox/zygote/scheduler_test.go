package zygote

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
)

// An endless loop is set aside when other calls wait. A batch behind more loops than there are places ends long before
// the loops do, and each loop gets its own verdict.
func TestEndlessLoopsDoNotHoldUpOthers(t *testing.T) {
	e := open(t, Options{Workers: 1})
	const loops = 4
	var calls []sandbox.Call
	for range loops {
		calls = append(calls, sandbox.Call{Code: "while True: pass",
			Limits: sandbox.Limits{CPU: time.Second, Wall: time.Minute}})
	}
	for i := range 50 {
		calls = append(calls, sandbox.Call{Code: fmt.Sprint(i)})
	}
	var aside atomic.Int64
	ctx := sandbox.WithAside(t.Context(), func() { aside.Add(1) })
	began := time.Now()
	var behind time.Duration
	var later sync.WaitGroup
	later.Go(func() {
		time.Sleep(50 * time.Millisecond)
		_, err := e.Run(ctx, []sandbox.Call{{Code: "1"}})
		behind = time.Since(began)
		assert.NoError(t, err)
	})
	results, err := e.Run(ctx, calls)
	took := time.Since(began)
	later.Wait()
	require.NoError(t, err)
	for i, r := range results {
		if i < loops {
			require.Equal(t, sandbox.StatusTimeoutCPU, r.Status)
		} else {
			require.Equal(t, fmt.Sprint(i-loops), r.Value)
		}
	}
	require.GreaterOrEqual(t, aside.Load(), int64(loops))
	require.Equal(t, aside.Load(), e.Stats().Aside)
	require.Zero(t, e.Stats().Busy)
	require.Less(t, behind, took/2, "a call behind loops that take %s", took)
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
	const code = "import time\nprint('once')\nopen('file', 'a').write('x')\nend = time.process_time() + .3\n" +
		"while time.process_time() < end: pass\nopen('file').read()"
	calls := make([]sandbox.Call, 6)
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

// The wall limit of a call that was set aside does not run while the call is paused. The call needs a tenth of a second
// of processor time, and gets a fortieth of a processor while the foreground is full.
func TestAPauseIsNoTimeOut(t *testing.T) {
	e := open(t, Options{Workers: runtime.NumCPU()})
	var feeders sync.WaitGroup
	stop := make(chan struct{})
	defer feeders.Wait()
	defer close(stop)
	for range 4 * e.Workers() {
		feeders.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				_, err := e.Run(t.Context(), []sandbox.Call{{Code: "sum(range(100_000))"}})
				assert.NoError(t, err)
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	const code = "import time\nend = time.process_time() + .1\nwhile time.process_time() < end: pass"
	const wall = 700 * time.Millisecond
	paused := func() time.Duration {
		began := time.Now()
		results := runAll(t, e, sandbox.Call{Code: code, Limits: sandbox.Limits{CPU: 2 * time.Second, Wall: wall}})
		require.Equal(t, sandbox.StatusOK, results[0].Status)
		return time.Since(began)
	}
	// Where other processes take the processors from the feeders, the foreground is not always full.
	for tries := 0; paused() <= wall; tries++ {
		require.Less(t, tries, 20, "no pause was longer than the wall limit")
	}
	require.NotZero(t, e.Stats().Aside)
}
