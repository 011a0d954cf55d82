package device_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/internal/testing/devicetest"
)

// seen keeps a watch's changes.
type seen struct {
	mu      sync.Mutex
	changes []device.Change
}

func (s *seen) add(c device.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes = append(s.changes, c)
}

func (s *seen) all() []device.Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]device.Change(nil), s.changes...)
}

// limit is far beyond what the other tests move the clock by.
const limit = 100 * time.Hour

// watch opens a watch whose clock never advances. Only events and the test's own polls change anything.
func watch(t *testing.T, lib *devicetest.Library) (*device.Watch, *devicetest.Clock, *seen) {
	t.Helper()
	clock := devicetest.NewClock()
	w, err := open(t, lib).Watch(device.WatchOptions{Clock: clock, Limit: limit, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	s := &seen{}
	w.Subscribe(s.add)
	return w, clock, s
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, 10*time.Second, time.Millisecond, what)
}

func state(w *device.Watch, i int) device.State { return w.Status()[i].Health.State }

func TestXidsChangeStates(t *testing.T) {
	for _, c := range []struct {
		code int
		want device.State
		kind device.Kind
	}{
		{13, device.Healthy, ""}, {45, device.Healthy, ""}, {154, device.Healthy, ""},
		{94, device.Degraded, "gpu_xid_94"}, {4242, device.Degraded, "gpu_xid_4242"},
		{79, device.Failed, "gpu_xid_79"}, {48, device.Failed, "gpu_xid_48"}, {95, device.Failed, "gpu_xid_95"}, {
			119, device.Failed, "gpu_xid_119",
		},
	} {
		lib := devicetest.New(&devicetest.GPU{}, &devicetest.GPU{})
		w, _, s := watch(t, lib)
		lib.Xid(1, c.code)
		eventually(t, "the Xid is told", func() bool { return len(s.all()) > 0 })
		got := s.all()[0]
		require.Equal(t, c.code, got.Xid)
		require.Equal(t, 1, got.Index)
		require.Equal(t, c.want, got.To.State)
		require.NoError(t, w.Poll(context.Background()))
		require.Equal(t, c.want, state(w, 1), "a poll takes nothing back that an event said")
		require.Equal(t, device.Healthy, state(w, 0), "the other device has nothing to do with it")
		require.Equal(t, map[int]int{c.code: 1}, w.Status()[1].Xids)
		failure := got.Failure()
		if c.want != device.Failed {
			require.Nil(t, failure)
			continue
		}
		require.Equal(t, string(c.kind), failure.FailureKind())
		require.ErrorContains(t, failure, string(c.kind))
	}
}

func TestDoubleBitEventFails(t *testing.T) {
	lib := devicetest.New(&devicetest.GPU{})
	w, _, _ := watch(t, lib)
	lib.Send(0, nvml.EventTypeDoubleBitEccError, 0)
	eventually(t, "failed", func() bool { return state(w, 0) == device.Failed })
	require.Equal(t, device.KindDoubleBit, w.Status()[0].Health.Reasons[0].Kind)
}

// An event without its own meaning asks for a poll, which finds what the driver wants.
func TestRecoveryEventAsksForAPoll(t *testing.T) {
	gpu := &devicetest.GPU{}
	lib := devicetest.New(gpu)
	w, _, _ := watch(t, lib)
	lib.Alter(func() { gpu.Recovery = nvml.GPU_RECOVERY_ACTION_GPU_RESET })
	require.Equal(t, device.Healthy, state(w, 0))
	lib.Send(0, nvml.EventTypeGpuRecoveryAction, 0)
	eventually(t, "failed", func() bool { return state(w, 0) == device.Failed })
	require.Equal(t, device.KindResetRequired, w.Status()[0].Health.Reasons[0].Kind)
}

// Time-outs are the rule; after any other end of a wait a new set is made, the old one is freed, and events go on.
func TestWaitingForEventsBreaks(t *testing.T) {
	lib := devicetest.New(&devicetest.GPU{}, &devicetest.GPU{})
	w, clock, _ := watch(t, lib)
	for i, ret := range []nvml.Return{nvml.ERROR_UNKNOWN, nvml.ERROR_GPU_IS_LOST, nvml.ERROR_UNINITIALIZED} {
		lib.Break(ret)
		eventually(t, "noticed", func() bool { return w.EventFaults() == i+1 })
		eventually(t, "a new set", func() bool {
			clock.Advance(30 * time.Second)
			made, freed := lib.Sets()
			return made >= i+2 && freed == made-1
		})
	}
	require.Equal(t, device.Healthy, state(w, 0))
	lib.Xid(0, 79)
	eventually(t, "events still come", func() bool { return state(w, 0) == device.Failed })
	require.NoError(t, w.Close())
	made, freed := lib.Sets()
	require.Equal(t, made, freed, "no set is left")
}

func TestVanishing(t *testing.T) {
	for name, vanish := range map[string]func(*devicetest.GPU){
		"fallen off the bus": func(g *devicetest.GPU) { g.Lost = true },
		"no longer listed":   func(g *devicetest.GPU) { g.Gone = true },
		"asks for a reset":   func(g *devicetest.GPU) { g.ResetRequired = true },
		"no handle":          func(g *devicetest.GPU) { g.Unknown = map[string]bool{"GetHandle": true} },
		"memory cannot be read": func(g *devicetest.GPU) {
			g.Unknown = map[string]bool{
				"GetMemoryInfo_v2": true, "GetMemoryInfo": true,
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			gpu := &devicetest.GPU{}
			lib := devicetest.New(&devicetest.GPU{}, gpu)
			w, _, s := watch(t, lib)
			lib.Alter(func() { vanish(gpu) })
			for range 3 {
				require.NoError(t, w.Poll(context.Background()))
			}
			require.Equal(t, device.Failed, state(w, 1))
			require.Equal(t, device.Healthy, state(w, 0))
			require.Len(t, s.all(), 1, "told once, however often it is polled")
			require.NotNil(t, s.all()[0].Failure())
			require.Equal(t, "NVIDIA H200", w.Status()[1].Name, "what was known of it stays")
		})
	}
}

func TestLostBeforeTheWatch(t *testing.T) {
	w, _, _ := watch(t, devicetest.New(&devicetest.GPU{}, &devicetest.GPU{Lost: true}))
	require.Equal(t, device.Healthy, state(w, 0))
	require.Equal(t, device.Failed, state(w, 1))
	require.Empty(t, w.Status()[1].UUID)
}

// A driver that does not answer for one device holds up neither the watch nor the other devices, and costs one thread.
func TestDriverHangs(t *testing.T) {
	stuck := &devicetest.GPU{}
	lib := devicetest.New(stuck, &devicetest.GPU{})
	w, clock, _ := watch(t, lib)
	block := make(chan struct{})
	lib.Alter(func() { stuck.Block = block })
	release := sync.OnceFunc(func() { close(block) })
	t.Cleanup(release) // whatever fails, the watch can be closed
	eventually(t, "the watch waits for its next poll", func() bool { return clock.Waiting(5*time.Second) == 1 })
	before := clock.Waiting(limit)
	polled := make(chan error, 1)
	go func() { polled <- w.Poll(context.Background()) }()
	eventually(t, "the first device is waited for", func() bool { return clock.Waiting(limit) == before+1 })
	clock.Advance(limit)
	require.NoError(t, <-polled)
	require.Equal(t, device.KindHung, w.Status()[0].Health.Reasons[0].Kind)
	require.Equal(t, device.Failed, state(w, 0))
	require.Equal(t, device.Healthy, state(w, 1))
	require.NoError(t, w.Poll(context.Background()), "it is not asked again")
	lib.Alter(func() { stuck.Block = nil })
	release()
	eventually(t, "it answers again", func() bool {
		require.NoError(t, w.Poll(context.Background()))
		return state(w, 0) == device.Healthy
	})
}

func TestThrottlingOverTime(t *testing.T) {
	gpu := &devicetest.GPU{}
	lib := devicetest.New(gpu)
	w, clock, s := watch(t, lib)
	poll := func(n int, reasons uint64) {
		lib.Alter(func() { gpu.Reasons = reasons })
		for range n {
			clock.Advance(4 * time.Second) // less than the watch's own interval, which the clock then also passes
			require.NoError(t, w.Poll(context.Background()))
		}
	}
	poll(200, nvml.ClocksEventReasonSwPowerCap)
	require.Empty(t, s.all(), "a device at its power limit works as it should")
	poll(10, nvml.ClocksEventReasonSwThermalSlowdown)
	require.Empty(t, s.all(), "a few samples are no trend")
	poll(150, nvml.ClocksEventReasonSwThermalSlowdown)
	require.Equal(t, device.Degraded, state(w, 0))
	require.Equal(t, device.KindThrottleThermal, w.Status()[0].Health.Reasons[0].Kind)
	require.Greater(t, w.Status()[0].ThrottledThermal, 0.5)
	poll(200, nvml.ClocksEventReasonGpuIdle)
	require.Equal(t, device.Healthy, state(w, 0))
	require.Len(t, s.all(), 2)
}

// The watch polls by itself at its interval.
func TestWatchPolls(t *testing.T) {
	gpu := &devicetest.GPU{}
	lib := devicetest.New(gpu)
	w, clock, _ := watch(t, lib)
	lib.Alter(func() { gpu.RowPending = true })
	eventually(t, "degraded", func() bool {
		clock.Advance(5 * time.Second)
		return state(w, 0) == device.Degraded
	})
	lib.Alter(func() { gpu.RowPending = false })
	eventually(t, "healthy again", func() bool {
		clock.Advance(5 * time.Second)
		return state(w, 0) == device.Healthy
	})
}

// Devices without events, and drivers without event sets, are watched by polls alone.
func TestWithoutEvents(t *testing.T) {
	for name, lib := range map[string]*devicetest.Library{
		"the device has none": devicetest.New(
			&devicetest.GPU{Unsupported: map[string]bool{"GetSupportedEventTypes": true}},
		),
		"they are refused":     devicetest.New(&devicetest.GPU{Unsupported: map[string]bool{"RegisterEvents": true}}),
		"the library has none": {},
	} {
		t.Run(name, func(t *testing.T) {
			if len(lib.GPUs) == 0 {
				lib = devicetest.New(&devicetest.GPU{})
				lib.Missing = map[string]bool{"nvmlEventSetCreate": true}
			}
			w, _, _ := watch(t, lib)
			require.False(t, w.Status()[0].Events)
			lib.Alter(func() { lib.GPUs[0].Lost = true })
			require.NoError(t, w.Poll(context.Background()))
			require.Equal(t, device.Failed, state(w, 0))
			require.Zero(t, w.EventFaults())
		})
	}
}

func TestSubscribersStop(t *testing.T) {
	lib := devicetest.New(&devicetest.GPU{})
	w, _, s := watch(t, lib)
	other := &seen{}
	stop := w.Subscribe(other.add)
	lib.Xid(0, 13)
	eventually(t, "both are told", func() bool { return len(s.all()) == 1 && len(other.all()) == 1 })
	stop()
	lib.Xid(0, 31)
	eventually(t, "one is told", func() bool { return len(s.all()) == 2 })
	require.Len(t, other.all(), 1)
}

func TestPollAfterClose(t *testing.T) {
	w, _, _ := watch(t, devicetest.New(&devicetest.GPU{}))
	require.NoError(t, w.Close())
	require.ErrorIs(t, w.Poll(context.Background()), device.ErrEnded)
	require.NoError(t, w.Close(), "again does nothing")
	require.Len(t, w.Status(), 1)
}

func TestPollObeysItsContext(t *testing.T) {
	gpu := &devicetest.GPU{}
	lib := devicetest.New(gpu)
	w, _, _ := watch(t, lib)
	block := make(chan struct{})
	lib.Alter(func() { gpu.Block = block })
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Poll(ctx) }()
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	close(block)
}
