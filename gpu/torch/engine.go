package torch

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/gpu/wire"
	"github.com/ropewalk/ropewalk/policy"
)

// Engine is a policy.Engine that a supervised PyTorch process serves.
type Engine struct {
	opts Options
	turn chan struct{}   // holds one token while a call runs
	stop context.Context // ends with Close
	end  context.CancelFunc

	mu     sync.Mutex
	live   *process // the latest; it may be lost
	starts uint64
	kept   map[policy.Kept]keptPass
	usage  Usage
}

var _ policy.Engine = (*Engine)(nil)

// keptPass is what this side must know about a kept forward pass.
type keptPass struct {
	role    policy.Role
	lengths []int32
	outputs policy.Outputs
}

// Open starts an engine. If the engine does not start (no torch, another protocol version, no greeting within
// Options.StartLimit), the error holds the reason and the engine's last lines.
func Open(ctx context.Context, o Options) (*Engine, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open torch engine: %w", err)
	}
	e := &Engine{opts: o, turn: make(chan struct{}, 1), kept: map[policy.Kept]keptPass{}}
	e.stop, e.end = context.WithCancel(context.Background())
	if err := e.restart(ctx); err != nil {
		return nil, fmt.Errorf("open torch engine: %w", err)
	}
	return e, nil
}

// restart starts a process if there is none or the last one is lost. The caller must hold the turn or be the only
// caller.
func (e *Engine) restart(ctx context.Context) error {
	began := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.stop, cancel)()
	p, err := start(ctx, e.opts)
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.live = p
	e.starts++
	clear(e.kept)
	e.usage.Starts, e.usage.StartSeconds = e.usage.Starts+1, e.usage.StartSeconds+time.Since(began).Seconds()
	e.mu.Unlock()
	if e.stop.Err() != nil {
		p.end(lostClosed, "the engine is closed")
		return p.lost
	}
	e.opts.Logger.Info(
		"engine started", "pid", p.hello.PID, "ranks", p.hello.Ranks, "device", p.hello.DeviceName, "dtype",
		p.hello.Dtype, "seconds", time.Since(began).Seconds(),
	)
	return nil
}

// acquire waits for the turn and returns the process, which may be lost.
func (e *Engine) acquire(ctx context.Context) (*process, func(), error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	leave := func() { <-e.turn }
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stop.Err() != nil {
		leave()
		return nil, nil, fmt.Errorf("%w: the engine is closed", policy.ErrLost)
	}
	return e.live, leave, nil
}

// runCall runs one call on the process, or returns why there is none.
func (e *Engine) runCall(ctx context.Context, what string, run func(p *process) error) error {
	p, leave, err := e.acquire(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer leave()
	if p.isLost() {
		return fmt.Errorf("%s: %w", what, p.lost)
	}
	if err := run(p); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func (p *process) isLost() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// answer is any answer's header.
type answer interface {
	Time() (seconds, torch float64)
}

// ask sends a call and returns the header and arrays of its answer. It is not an error if the context ends after the
// call has finished.
func ask[A answer](
	ctx context.Context, e *Engine, p *process, c outgoing, wants ...wire.Want,
) (a A, arrays []wire.Array, err error) {
	began := time.Now()
	defer func() { e.account(p, c, a, time.Since(began)) }()
	f, err := p.call(ctx, c)
	if err != nil {
		return a, nil, err
	}
	envelope, err := wire.Peek(f.Header)
	if err == nil && envelope.Type == wire.TypeError {
		return a, nil, p.refusal(ctx, f)
	}
	if err == nil {
		err = wire.Decode(f.Header, &a)
	}
	if err == nil {
		arrays, err = wire.Take(f.Body, wants...)
	}
	if err != nil {
		p.endOnBreach(err)
		return a, nil, p.lost
	}
	return a, arrays, nil
}

// refusal converts an error answer into the contract's error. An error that leaves the engine in an unknown state ends
// the engine.
func (p *process) refusal(ctx context.Context, f wire.Frame) error {
	var said wire.Error
	if err := wire.Decode(f.Header, &said); err != nil {
		p.endOnBreach(err)
		return p.lost
	}
	err, sound := contract(ctx, said)
	switch {
	case sound:
	case said.Kind == wire.KindProtocol:
		p.end(lostBroke, "the engine says: "+said.Message)
		return p.lost
	default:
		p.end(lostInternal, "it failed: "+said.Kind+": "+said.Message)
		return p.lost
	}
	if full, ok := err.(*outOfMemoryError); ok {
		full.Memory, _ = p.pulse.use()
	}
	return err
}

// Describe names the device and the software of the engine.
func (e *Engine) Describe() policy.Description {
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.live.hello
	device := h.Device
	if h.DeviceName != "" && h.DeviceName != h.Device {
		device += ": " + h.DeviceName
	}
	if h.Ranks > 1 {
		device += fmt.Sprintf(", %d ranks", h.Ranks)
		if e.opts.Hosts > 1 {
			device += fmt.Sprintf(" on %d hosts", e.opts.Hosts)
		}
	}
	software := []string{"torch " + h.Versions["torch"], "transformers " + h.Versions["transformers"], h.Dtype}
	if h.Deterministic {
		software = append(software, "deterministic")
	}
	return policy.Description{Device: device, BLAS: strings.Join(software, ", "), Threads: e.opts.Threads}
}

// Capabilities are those of every engine of this package, whatever its devices.
func Capabilities() policy.Capabilities {
	return policy.Capabilities{TokenIDs: true, LogProbs: true, TopLogProbs: mostTop, Entropy: policy.EntropyFull,
		Temperature: true,
		TopP:        true, TopK: true, MinP: true, RowSeeds: true, Reference: true,
		Weights: policy.WeightsLoad}
}

// Capabilities implements policy.Sampler.
func (e *Engine) Capabilities() policy.Capabilities { return Capabilities() }

// shutdownLimit is how long an idle engine may take to answer a shutdown.
const shutdownLimit = 2 * time.Second

// Close ends the engine and everything that belongs to it. A running call is lost.
func (e *Engine) Close() error {
	if e.stop.Err() != nil {
		return nil
	}
	e.end()
	select {
	case e.turn <- struct{}{}: // idle, so it may end by itself
		e.shutdown()
	default:
		e.latest().end(lostClosed, "the engine is closed")
		e.turn <- struct{}{} // the caller that has the turn notices, and starts nothing any more
	}
	p := e.latest()
	<-e.turn
	p.end(lostClosed, "the engine is closed")
	if _, err := os.Stat(p.dir); err == nil {
		return fmt.Errorf("close torch engine: its folder %s cannot be removed", p.dir)
	}
	return nil
}

// shutdown asks the engine to end. The engine may ignore the request.
func (e *Engine) shutdown() {
	p := e.latest()
	if p.isLost() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), shutdownLimit)
	defer cancel()
	_, _, _ = ask[wire.Answer](
		ctx, e, p, outgoing{name: wire.CallShutdown, message: func(h wire.Head) any { return wire.Shutdown{Head: h} }},
	)
}

// PID returns the process that was started last: the engine itself, or torchrun. It may have ended.
func (e *Engine) PID() int { return e.latest().tree.root }

func (e *Engine) latest() *process {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.live
}
