package lease_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/gpu/lease"
	"github.com/ropewalk/ropewalk/internal/testing/devicetest"
)

// open makes a pool over written devices, as another process would.
func open(t *testing.T, dir string, lib *devicetest.Library) (*lease.Pool, *device.Watch) {
	t.Helper()
	return openOver(t, dir, device.Options{Library: lib, Sysfs: t.TempDir()})
}

func openOver(t *testing.T, dir string, o device.Options) (*lease.Pool, *device.Watch) {
	t.Helper()
	h, err := device.Open(o)
	require.NoError(t, err)
	quiet := slog.New(slog.DiscardHandler)
	w, err := h.Watch(device.WatchOptions{Log: quiet})
	require.NoError(t, err)
	p, err := lease.Open(w, lease.Options{Dir: dir, Log: quiet})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, p.Close())
		require.NoError(t, w.Close())
		require.NoError(t, h.Close())
	})
	return p, w
}

// soon is a context for what would wait for ever.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	t.Cleanup(cancel)
	return ctx
}

func take(t *testing.T, p *lease.Pool, r lease.Request) *lease.Lease {
	t.Helper()
	l, err := p.Take(t.Context(), r)
	require.NoError(t, err)
	t.Cleanup(l.Release)
	return l
}

func one() lease.Request { return lease.Request{Devices: 1} }

func TestTake(t *testing.T) {
	const gib = devicetest.GiB
	for _, c := range []struct {
		name    string
		gpus    []*devicetest.GPU
		request lease.Request
		want    []string // UUIDs; nil: an error
		lacks   []string // its parts
		waits   bool     // it could have been met later
	}{
		{name: "the first", gpus: []*devicetest.GPU{{}, {}}, request: one(), want: []string{"GPU-00000000"}},
		{
			name: "all", gpus: []*devicetest.GPU{{}, {}}, request: lease.Request{Devices: 2},
			want: []string{"GPU-00000000", "GPU-00000001"},
		},
		{
			name: "a clique", gpus: []*devicetest.GPU{{}, {Peers: map[int]int{2: 4}}, {Peers: map[int]int{1: 4}}},
			request: lease.Request{Devices: 2}, want: []string{"GPU-00000001", "GPU-00000002"},
		},
		{
			name: "those asked for", gpus: []*devicetest.GPU{{}, {}},
			request: lease.Request{Devices: 1, Only: []string{"GPU-00000001"}}, want: []string{"GPU-00000001"},
		},
		{
			name: "enough free memory", gpus: []*devicetest.GPU{{Used: 100 * gib}, {}},
			request: lease.Request{Devices: 1, Memory: 80 * gib}, want: []string{"GPU-00000001"},
		},
		{name: "none", request: one(), lacks: []string{"1 wanted", "this host has none"}},
		{
			name: "too few", gpus: []*devicetest.GPU{{}}, request: lease.Request{Devices: 2},
			lacks: []string{"2 wanted", "device 0: can be had"},
		},
		{
			name: "too small", gpus: []*devicetest.GPU{{Total: 40 * gib}},
			request: lease.Request{Devices: 1, Memory: 60 * gib},
			lacks:   []string{"60.0 GiB free each", "device 0: has 40.0 GiB of memory"},
		},
		{
			name: "memory in use", gpus: []*devicetest.GPU{{Used: 100 * gib}},
			request: lease.Request{Devices: 1, Memory: 60 * gib},
			lacks:   []string{"device 0: 41.0 GiB of 141.0 GiB are free"}, waits: true,
		},
		{
			name: "degraded", gpus: []*devicetest.GPU{{RowPending: true}}, request: one(),
			lacks: []string{"device 0: degraded (gpu_row_remap_pending"},
		},
		{
			name: "lost", gpus: []*devicetest.GPU{{Lost: true}}, request: one(),
			lacks: []string{"device 0: fallen off the bus"},
		},
		{
			name: "cut up", gpus: []*devicetest.GPU{{MIG: []devicetest.Slice{{UUID: "MIG-1"}}}}, request: one(),
			lacks: []string{"device 0: cut into MIG instances"},
		},
		{
			name: "none of those asked for", gpus: []*devicetest.GPU{{}},
			request: lease.Request{Devices: 1, Only: []string{"GPU-x"}},
			lacks:   []string{"device 0: not among those asked for"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, _ := open(t, t.TempDir(), devicetest.New(c.gpus...))
			ctx := t.Context() // what waiting cannot mend does not wait
			if c.waits {
				ctx = soon(t)
			}
			l, err := p.Take(ctx, c.request)
			if c.want != nil {
				require.NoError(t, err)
				defer l.Release()
				require.Equal(t, c.want, l.UUIDs())
				require.Len(t, l.Devices(), c.request.Devices)
				require.NoError(t, l.Err())
				return
			}
			require.ErrorIs(t, err, lease.ErrNoDevice)
			require.Equal(t, c.waits, errors.Is(err, context.DeadlineExceeded), "%v", err)
			var lacking *lease.NoDeviceError
			require.ErrorAs(t, err, &lacking)
			require.Len(t, lacking.Lacks, len(c.gpus))
			for _, part := range c.lacks {
				require.ErrorContains(t, err, part)
			}
		})
	}
	p, _ := open(t, t.TempDir(), devicetest.New(&devicetest.GPU{}))
	_, err := p.Take(t.Context(), lease.Request{})
	require.ErrorContains(t, err, "at least 1")
}

// Two pools over one folder are what two workers of one host have.
func TestNoDeviceIsSharedBetweenPools(t *testing.T) {
	dir := t.TempDir()
	lib := devicetest.New(&devicetest.GPU{}, &devicetest.GPU{})
	a, _ := open(t, dir, lib)
	b, _ := open(t, dir, lib)
	first := take(t, a, one())
	second := take(t, b, one())
	require.NotEqual(t, first.UUIDs(), second.UUIDs())
	_, err := b.Take(soon(t), one())
	require.ErrorIs(t, err, lease.ErrNoDevice)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "device 0: leased")
	first.Release()
	first.Release() // again does nothing
	require.Equal(t, []string{"GPU-00000000"}, take(t, b, one()).UUIDs())
}

// Two workers on a DGX A100, whose mock tells neither of links nor of events: five and three devices, and no ninth.
func TestDGXBetweenTwoPools(t *testing.T) {
	dir, dgx := t.TempDir(), device.Options{Library: devicetest.DGX(), Sysfs: t.TempDir()}
	a, w := openOver(t, dir, dgx)
	b, _ := openOver(t, dir, dgx)
	require.Len(t, a.Leasable(), 8)
	const memory = 40 << 30
	five := take(t, a, lease.Request{Devices: 5, Memory: memory})
	three := take(t, b, lease.Request{Devices: 3, Memory: memory})
	var all []string
	for _, s := range w.Status() {
		all = append(all, s.UUID)
	}
	require.ElementsMatch(t, all, append(five.UUIDs(), three.UUIDs()...))
	_, err := b.Take(soon(t), one())
	require.ErrorIs(t, err, lease.ErrNoDevice)
	_, err = b.Take(t.Context(), lease.Request{Devices: 9})
	require.ErrorIs(t, err, lease.ErrNoDevice, "waiting does not help")
	five.Release()
	require.Len(t, take(t, b, lease.Request{Devices: 4}).UUIDs(), 4)
}

func TestTakeWaits(t *testing.T) {
	lib := devicetest.New(&devicetest.GPU{}, &devicetest.GPU{})
	p, _ := open(t, t.TempDir(), lib)
	held := take(t, p, lease.Request{Devices: 2})
	got := make(chan *lease.Lease)
	go func() {
		l, err := p.Take(context.Background(), lease.Request{Devices: 2})
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	require.Eventually(t, func() bool { return p.Stats().Waiting == 1 }, 10*time.Second, time.Millisecond)
	select {
	case <-got:
		t.Fatal("the devices are leased")
	case <-time.After(50 * time.Millisecond):
	}
	held.Release()
	l := <-got
	require.Len(t, l.UUIDs(), 2)
	require.Equal(
		t, lease.Stats{Leased: map[string]bool{"GPU-00000000": true, "GPU-00000001": true}, Taken: 2}, p.Stats(),
	)
	l.Release()
	require.Empty(t, p.Stats().Leased)
}

// An Xid in the middle of a lease: the holder of the device receives the kind of the failure, and holders of other
// devices receive nothing. No process of the host gets the device again, before or after a restart.
func TestXidInMidLease(t *testing.T) {
	dir := t.TempDir()
	lib := devicetest.New(&devicetest.GPU{}, &devicetest.GPU{}, &devicetest.GPU{})
	p, _ := open(t, dir, lib)
	hit, other := take(t, p, one()), take(t, p, one())
	work, done := hit.Context(t.Context())
	defer done()
	lib.Xid(0, 13) // the program's own doing
	lib.Xid(0, 94) // degrades
	lib.Xid(0, 79)
	<-work.Done()
	var failure *device.Error
	require.ErrorAs(t, context.Cause(work), &failure)
	require.Equal(t, "gpu_xid_79", failure.FailureKind())
	require.Equal(t, "GPU-00000000", failure.UUID)
	<-hit.Failed()
	require.Equal(t, failure, hit.Err())
	require.Equal(t, []int{13, 94, 79}, hit.Xids())
	require.Empty(t, other.Xids())
	require.NoError(t, other.Err())
	hit.Release()

	retried := take(t, p, one())
	require.Equal(t, []string{"GPU-00000002"}, retried.UUIDs(), "the update is retried elsewhere")
	retried.Release()

	fresh, w := open(t, dir, devicetest.New(&devicetest.GPU{}))
	require.Equal(t, device.Healthy, w.Status()[0].Health.State, "a worker started later has not seen the Xid")
	_, err := fresh.Take(t.Context(), one())
	require.ErrorIs(t, err, lease.ErrNoDevice)
	require.ErrorContains(t, err, "marked as failed (gpu_xid_79")
	seen, err := lease.Peek(t.Context(), dir, []string{"GPU-00000000", "GPU-00000001"})
	require.NoError(t, err)
	require.Equal(t, device.Kind("gpu_xid_79"), seen["GPU-00000000"].Mark.Kind)
	require.False(t, seen["GPU-00000000"].Leased)
	require.True(t, seen["GPU-00000001"].Leased)

	require.NoError(t, lease.Readmit(dir, "GPU-00000000"))
	require.ErrorIs(t, lease.Readmit(dir, "GPU-00000000"), lease.ErrNotMarked)
	require.Equal(t, []string{"GPU-00000000"}, take(t, fresh, one()).UUIDs())
}

func TestDeviceVanishesInMidLease(t *testing.T) {
	gpu := &devicetest.GPU{}
	lib := devicetest.New(gpu)
	p, w := open(t, t.TempDir(), lib)
	l := take(t, p, one())
	lib.Alter(func() { gpu.Gone = true })
	require.NoError(t, w.Poll(t.Context()))
	<-l.Failed()
	var failure *device.Error
	require.ErrorAs(t, l.Err(), &failure)
	require.Equal(t, "gpu_lost", failure.FailureKind())
	require.Equal(t, 1, p.Stats().Failed)
	l.Release()
	_, err := p.Take(t.Context(), one())
	require.ErrorContains(t, err, "no longer listed by the driver")
}

// A lease of a degraded device continues to its end. The device is not leased again while it is degraded.
func TestDegradedInMidLease(t *testing.T) {
	gpu := &devicetest.GPU{}
	lib := devicetest.New(gpu)
	p, w := open(t, t.TempDir(), lib)
	l := take(t, p, one())
	lib.Alter(func() { gpu.RowPending = true })
	require.NoError(t, w.Poll(t.Context()))
	require.NoError(t, l.Err())
	l.Release()
	_, err := p.Take(t.Context(), one())
	require.ErrorContains(t, err, "gpu_row_remap_pending")
	lib.Alter(func() { gpu.RowPending = false })
	take(t, p, one())
}

func TestLeaseContextEndsWithItsParent(t *testing.T) {
	p, _ := open(t, t.TempDir(), devicetest.New(&devicetest.GPU{}))
	l := take(t, p, one())
	parent, cancel := context.WithCancel(t.Context())
	work, done := l.Context(parent)
	defer done()
	cancel()
	<-work.Done()
	require.ErrorIs(t, context.Cause(work), context.Canceled)
	require.NoError(t, l.Err())
}
