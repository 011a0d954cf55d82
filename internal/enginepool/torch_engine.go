package enginepool

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ropewalk/ropewalk/gpu/lease"
	"github.com/ropewalk/ropewalk/gpu/plan"
	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/policy"
)

// process is the supervised process of a PyTorch engine.
type process interface {
	policy.Engine
	Usage() torch.Usage
}

// torchEngine is a process on leased devices.
type torchEngine struct {
	maker    *Maker
	settings settings

	mu      sync.Mutex // held by Load while it changes what follows
	process process
	lease   *lease.Lease // nil on the processor
	closed  bool
	flops   float64 // of all training
	pending map[policy.Kept]float64
	busy    *utilisation
}

var (
	_ policy.Engine = (*torchEngine)(nil)
	_ policy.Meter  = (*torchEngine)(nil)
)

// openWith leases devices, waits while other holders have them, and starts an engine on them.
func (m *Maker) openWith(ctx context.Context, s settings) (policy.Engine, error) {
	e := &torchEngine{maker: m, settings: s, pending: map[policy.Kept]float64{}}
	if err := e.open(ctx); err != nil {
		return nil, err
	}
	return e, nil
}

func (e *torchEngine) open(ctx context.Context) error {
	l, err := e.maker.leaseDevices(ctx, e.settings)
	if err != nil {
		return err
	}
	options, err := e.maker.options(ctx, e.settings, l)
	if err == nil {
		e.process, err = e.maker.o.start(ctx, options)
	}
	if err != nil {
		if l != nil {
			l.Release()
		}
		return err
	}
	e.lease = l
	clear(e.pending)
	if l != nil {
		e.busy = watchUtilisation(e.maker.watch, l.UUIDs())
	}
	return nil
}

// closeProcess ends the process, then releases the devices.
func (e *torchEngine) closeProcess() error {
	err := e.process.Close()
	if e.busy != nil {
		e.busy.stop()
	}
	if e.lease != nil {
		e.lease.Release()
	}
	e.lease, e.busy = nil, nil
	return err
}

// current returns the process and the lease that a call uses.
func (e *torchEngine) current() (process, *lease.Lease) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.process, e.lease
}

// call runs one call under the lease. If a device fails, the call ends with that failure.
func (e *torchEngine) call(ctx context.Context, run func(ctx context.Context, p process) error) error {
	p, l := e.current()
	if l == nil {
		return run(ctx, p)
	}
	under, cancel := l.Context(ctx)
	defer cancel()
	err := run(under, p)
	if failure := l.Err(); err != nil && failure != nil {
		return drained(failure, err)
	}
	return err
}

// drained joins a device's failure with the error of the call that it interrupted. The engine is lost with its device.
func drained(failure, err error) error {
	kind := "gpu_failed"
	var typed interface{ FailureKind() string }
	if errors.As(failure, &typed) {
		kind = typed.FailureKind()
	}
	return &policy.DeviceError{Kind: kind, Err: fmt.Errorf("%w: %w: %w", policy.ErrLost, failure, err)}
}

// Load also moves an engine to other devices if its devices have failed.
func (e *torchEngine) Load(ctx context.Context, role policy.Role, dir string, optimizer bool) error {
	if err := e.moveToSoundDevices(ctx); err != nil {
		return fmt.Errorf("load %s: %w", role, err)
	}
	return e.call(ctx, func(ctx context.Context, p process) error { return p.Load(ctx, role, dir, optimizer) })
}

func (e *torchEngine) moveToSoundDevices(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.lease == nil || e.lease.Err() == nil {
		return nil
	}
	e.maker.o.Logger.Warn("move the engine to other devices", "failed", e.lease.Err())
	if err := e.closeProcess(); err != nil {
		e.maker.o.Logger.Warn("close the engine on a failed device", "error", err)
	}
	if err := e.open(ctx); err != nil {
		return fmt.Errorf("%w: %w", policy.ErrLost, err)
	}
	return nil
}

func (e *torchEngine) Save(ctx context.Context, role policy.Role, dir string) (digest string, err error) {
	err = e.call(ctx, func(ctx context.Context, p process) error { digest, err = p.Save(ctx, role, dir); return err })
	return digest, err
}

func (e *torchEngine) Generate(ctx context.Context, req policy.GenerateRequest) (out policy.Generated, err error) {
	err = e.call(ctx, func(ctx context.Context, p process) error { out, err = p.Generate(ctx, req); return err })
	return out, err
}

func (e *torchEngine) Forward(ctx context.Context, req policy.ForwardRequest) (out policy.TokenOutputs, err error) {
	err = e.call(ctx, func(ctx context.Context, p process) error { out, err = p.Forward(ctx, req); return err })
	if err == nil && req.Keep && e.settings.Flops != nil {
		lengths := make([]int, len(req.Sequences))
		for i, s := range req.Sequences {
			lengths[i] = len(s)
		}
		e.mu.Lock()
		e.pending[out.Kept] = e.settings.Flops(lengths...)
		e.mu.Unlock()
	}
	return out, err
}

func (e *torchEngine) Backward(ctx context.Context, role policy.Role, kept policy.Kept, c policy.Cotangents) error {
	err := e.call(ctx, func(ctx context.Context, p process) error { return p.Backward(ctx, role, kept, c) })
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil {
		e.flops += e.pending[kept]
	}
	delete(e.pending, kept)
	return err
}

func (e *torchEngine) Discard(ctx context.Context, role policy.Role) error {
	return e.call(ctx, func(ctx context.Context, p process) error { return p.Discard(ctx, role) })
}

func (e *torchEngine) Step(ctx context.Context, role policy.Role, o policy.StepOptions) (policy.StepStats, error) {
	var s policy.StepStats
	err := e.call(ctx, func(ctx context.Context, p process) (err error) { s, err = p.Step(ctx, role, o); return err })
	return s, err
}

func (e *torchEngine) State(ctx context.Context, role policy.Role) (state policy.State, err error) {
	err = e.call(ctx, func(ctx context.Context, p process) error { state, err = p.State(ctx, role); return err })
	return state, err
}

func (e *torchEngine) Capabilities() policy.Capabilities { return torch.Capabilities() }

func (e *torchEngine) Describe() policy.Description {
	p, _ := e.current()
	return p.Describe()
}

// Usage adds the devices' peak rates, from their makers, and the readings of their counters.
func (e *torchEngine) Usage() policy.Usage {
	e.mu.Lock()
	defer e.mu.Unlock()
	used := e.process.Usage()
	u := policy.Usage{Trained: used.Trained, TrainSeconds: used.TrainSeconds, Flops: e.flops, PeakBytes: used.Peak}
	if e.lease != nil {
		// The peak is that of tensor cores, which float32 does not use.
		if e.settings.Dtype != torch.Float32 {
			for _, d := range e.lease.Devices() {
				// The devices of other hosts are the same.
				u.PeakFlops += float64(max(1, e.settings.Hosts)) * plan.PeakFlops(d.Name)
			}
		}
		u.Busy = e.busy.mean()
	}
	return u
}

// Close ends the process and releases the devices. A second call does nothing.
func (e *torchEngine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	return e.closeProcess()
}
