package enginepool

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/gpu/lease"
	"github.com/ropewalk/ropewalk/gpu/setup"
	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/internal/testing/devicetest"
	"github.com/ropewalk/ropewalk/policy"
)

// fake is a process that waits where it is told to.
type fake struct {
	policy.Engine
	options torch.Options
	hold    chan struct{} // a forward pass waits until it is closed; nil: none does
	entered chan struct{}

	mu     sync.Mutex
	loads  int
	closed bool
	used   torch.Usage
}

func (f *fake) Load(ctx context.Context, _ policy.Role, _ string, _ bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loads++
	return ctx.Err()
}

func (f *fake) Forward(ctx context.Context, req policy.ForwardRequest) (policy.TokenOutputs, error) {
	if f.hold != nil {
		f.entered <- struct{}{}
		select {
		case <-f.hold:
		case <-ctx.Done():
			return policy.TokenOutputs{}, ctx.Err()
		}
	}
	return policy.TokenOutputs{Kept: 1}, nil
}

func (f *fake) Backward(context.Context, policy.Role, policy.Kept, policy.Cotangents) error {
	return nil
}
func (f *fake) Usage() torch.Usage { return f.used }

func (f *fake) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return nil
}

// bench is a maker over scripted devices, and the processes that it started.
type bench struct {
	maker     *Maker
	library   *devicetest.Library
	processes []*fake
	prepare   func(*fake)
}

func newBench(t *testing.T, leases string, gpus ...*devicetest.GPU) *bench {
	t.Helper()
	b := &bench{library: devicetest.New(gpus...), prepare: func(*fake) {}}
	var err error
	b.maker, err = OpenMaker(MakerOptions{
		python: func(context.Context, ...setup.Package) (string, error) { return "/usr/bin/python3", nil },
		leases: leases, Wait: 200 * time.Millisecond, Threads: 4, Host: device.Options{Library: b.library},
		Logger: slog.New(slog.DiscardHandler),
		start: func(_ context.Context, o torch.Options) (process, error) {
			p := &fake{options: o}
			b.prepare(p)
			b.processes = append(b.processes, p)
			return p, nil
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.maker.Close()) })
	return b
}

func opened(t *testing.T, b *bench, s settings) policy.Engine {
	t.Helper()
	e, err := b.maker.openWith(t.Context(), s)
	require.NoError(t, err)
	t.Cleanup(func() { e.Close() })
	return e
}

func TestAFailedDeviceDrains(t *testing.T) {
	b := newBench(t, t.TempDir(), &devicetest.GPU{}, &devicetest.GPU{})
	b.prepare = func(f *fake) {
		if len(b.processes) == 0 {
			f.hold, f.entered = make(chan struct{}), make(chan struct{}, 1)
		}
	}
	e := opened(t, b, settings{Devices: 1, Dtype: torch.BFloat16})
	first := b.processes[0]
	require.Equal(t, torch.CUDA, first.options.Device)
	require.Len(t, first.options.UUIDs, 1)

	failed := make(chan error)
	go func() {
		_, err := e.Forward(context.Background(), policy.ForwardRequest{Role: policy.RolePolicy})
		failed <- err
	}()
	<-first.entered
	b.library.Xid(0, 79)
	err := <-failed
	var device *policy.DeviceError
	require.ErrorAs(t, err, &device)
	require.Equal(t, "gpu_xid_79", device.Kind)
	require.ErrorIs(t, err, policy.ErrLost, "so that nothing is thought resident")
	_, err = e.Forward(t.Context(), policy.ForwardRequest{Role: policy.RolePolicy})
	require.ErrorAs(t, err, &device, "until a model is loaded, nothing runs")

	require.NoError(t, e.Load(t.Context(), policy.RolePolicy, "dir", true))
	require.True(t, first.closed)
	require.Len(t, b.processes, 2)
	require.NotEqual(t, first.options.UUIDs, b.processes[1].options.UUIDs, "the other device")
	require.Equal(t, 1, b.processes[1].loads)
	_, err = e.Forward(t.Context(), policy.ForwardRequest{Role: policy.RolePolicy})
	require.NoError(t, err)
}

func TestNoDeviceLeft(t *testing.T) {
	b := newBench(t, t.TempDir(), &devicetest.GPU{})
	e := opened(t, b, settings{Devices: 1})
	b.library.Xid(0, 79)
	<-e.(*torchEngine).lease.Failed()
	err := e.Load(t.Context(), policy.RolePolicy, "dir", true)
	require.ErrorIs(t, err, lease.ErrNoDevice)
	require.ErrorIs(t, err, policy.ErrLost)
	require.NoError(t, e.Close())
}

func TestWorkersDoNotShareDevices(t *testing.T) {
	leases := t.TempDir()
	one, other := newBench(t, leases, &devicetest.GPU{}), newBench(t, leases, &devicetest.GPU{})
	e := opened(t, one, settings{Devices: 1})
	_, err := other.maker.openWith(t.Context(), settings{Devices: 1})
	require.ErrorIs(t, err, lease.ErrNoDevice)
	require.Empty(t, other.processes, "nothing is started without devices")
	require.NoError(t, e.Close())
	require.NoError(t, e.Close(), "twice is well")
	opened(t, other, settings{Devices: 1})
}

func TestAFailedStartGivesDevicesBack(t *testing.T) {
	b := newBench(t, t.TempDir(), &devicetest.GPU{})
	start := b.maker.o.start
	b.maker.o.start = func(context.Context, torch.Options) (process, error) { return nil, errors.New("no torch") }
	_, err := b.maker.openWith(t.Context(), settings{Devices: 1})
	require.EqualError(t, err, "no torch")
	b.maker.o.start = start
	opened(t, b, settings{Devices: 1})
}

func TestOffer(t *testing.T) {
	b := newBench(t, t.TempDir(), &devicetest.GPU{Name: "NVIDIA H200"}, &devicetest.GPU{Name: "NVIDIA H200"})
	gpu, on, err := b.maker.offer(t.Context(), settings{Devices: 1})
	require.NoError(t, err)
	require.True(t, gpu)
	require.Equal(t, "NVIDIA H200", on)
	_, on, err = b.maker.offer(t.Context(), settings{Devices: 2})
	require.NoError(t, err)
	require.Equal(t, "2 × NVIDIA H200", on)
	_, _, err = b.maker.offer(t.Context(), settings{Devices: 3})
	require.EqualError(t, err, "devices: 3 wanted, this worker has 2")
	b.maker.o.python = func(context.Context, ...setup.Package) (string, error) {
		return "", errors.New("no Python has torch")
	}
	_, _, err = b.maker.offer(t.Context(), settings{Devices: 1})
	require.EqualError(t, err, "no Python has torch")
}

func TestVisibleDevicesAlone(t *testing.T) {
	t.Setenv(lease.VisibleVariable, "1")
	b := newBench(t, t.TempDir(), &devicetest.GPU{}, &devicetest.GPU{})
	_, _, err := b.maker.offer(t.Context(), settings{Devices: 2})
	require.EqualError(t, err, "devices: 2 wanted, this worker has 1")
	opened(t, b, settings{Devices: 1})
	require.Equal(t, b.maker.watch.Status()[1].UUID, b.processes[0].options.UUIDs[0])
}

func TestUsage(t *testing.T) {
	b := newBench(t, t.TempDir(), &devicetest.GPU{Name: "NVIDIA H200"})
	b.prepare = func(f *fake) { f.used = torch.Usage{Trained: 50, TrainSeconds: 2, Peak: 9} }
	e := opened(
		t, b,
		settings{
			Devices: 1, Dtype: torch.BFloat16, Flops: func(lengths ...int) float64 { return float64(100 * lengths[0]) },
		},
	)
	out, err := e.Forward(t.Context(), policy.ForwardRequest{Sequences: [][]int32{{1, 2, 3}}, Keep: true})
	require.NoError(t, err)
	used := e.(policy.Meter).Usage()
	require.Zero(t, used.Flops, "a pass counts when it has gone backward")
	require.NoError(t, e.Backward(t.Context(), policy.RolePolicy, out.Kept, policy.Cotangents{}))
	used = e.(policy.Meter).Usage()
	require.Equal(
		t, policy.Usage{Trained: 50, TrainSeconds: 2, Flops: 300, PeakFlops: 989e12, PeakBytes: 9, Busy: used.Busy},
		used,
	)

	s := &utilisation{}
	require.Nil(t, s.mean())
	all := b.maker.watch.Status()
	all[0].Utilisation.GPU = device.Some[int64](40)
	s.record(all, []string{all[0].UUID})
	s.record(all, []string{"another"})
	require.InDelta(t, 0.4, *s.mean(), 1e-12)
	require.Nil(t, s.mean(), "since it was last asked for")
}
