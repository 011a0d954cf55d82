package cpu

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// Options configure Open.
type Options struct {
	Threads int    // parts that work at once; 0 means as many as there are processors
	BLAS    string // openblas, gonum, or "" for ROPEWALK_BLAS, else the fastest there is
}

// processors is how many processors the program may use. A program whose threads wait in system calls raises GOMAXPROCS
// beyond that.
var processors = runtime.GOMAXPROCS(0)

// Open makes an engine that holds nothing yet.
func Open(o Options) (policy.Engine, error) { return open[float32](o) }

// open makes an engine for either element type; tests of gradients use float64.
func open[T float](o Options) (*engine[T], error) {
	l, err := chooseLibrary(o.BLAS)
	if err != nil {
		return nil, fmt.Errorf("open cpu engine: %w", err)
	}
	if o.Threads < 0 {
		return nil, fmt.Errorf("open cpu engine: %w: %d threads", policy.ErrBadRequest, o.Threads)
	}
	if o.Threads == 0 {
		o.Threads = processors
	}
	return &engine[T]{lib: l, threads: o.Threads, roles: map[policy.Role]*resident[T]{}}, nil
}

// engine implements policy.Engine; one mutex serialises all calls.
type engine[T float] struct {
	lib     library
	threads int

	mu     sync.Mutex
	closed bool
	nextID policy.Kept
	roles  map[policy.Role]*resident[T]
	caches []T // memory of the batch closed last, for the next one: a batch is opened for each version
}

// enter locks the engine for one call and finds the role.
func (e *engine[T]) enter(ctx context.Context, role policy.Role) (*resident[T], func(), error) {
	e.mu.Lock()
	err := ctx.Err()
	r := e.roles[role]
	switch {
	case err != nil:
	case e.closed:
		err = fmt.Errorf("%w: the engine is closed", policy.ErrLost)
	case r == nil:
		err = fmt.Errorf("%w: %s", policy.ErrNotLoaded, role)
	}
	if err != nil {
		e.mu.Unlock()
		return nil, nil, err
	}
	return r, e.mu.Unlock, nil
}

func (e *engine[T]) Load(ctx context.Context, role policy.Role, dir string, optimizer bool) (err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("load %s: %w", role, err)
	}
	if e.closed {
		return fmt.Errorf("load %s: %w: the engine is closed", role, policy.ErrLost)
	}
	c, err := checkpoint.Open(dir, optimizer)
	if err != nil {
		return fmt.Errorf("load %s: %w", role, err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	digest, err := checkpoint.Digest(dir)
	if err != nil {
		return fmt.Errorf("load %s: %w", role, err)
	}
	switch critic := role == policy.RoleCritic; {
	case critic && !c.Shape.ValueHead:
		c.AddValueHead()
		digest = ""
	case !critic && c.Shape.ValueHead:
		return fmt.Errorf("load %s: %w", role, bad("%s holds a critic: there is a value head", dir))
	}
	r, err := newResident[T](c, e.lib, e.threads)
	if err != nil {
		return fmt.Errorf("load %s: %w", role, err)
	}
	r.digest = digest
	e.roles[role] = r
	return nil
}

func (e *engine[T]) Save(ctx context.Context, role policy.Role, dir string) (string, error) {
	r, leave, err := e.enter(ctx, role)
	if err != nil {
		return "", fmt.Errorf("save %s: %w", role, err)
	}
	defer leave()
	digest, err := checkpoint.Write(dir, r.checkpoint())
	if err != nil {
		return "", fmt.Errorf("save %s: %w", role, err)
	}
	r.digest = digest
	return digest, nil
}

func (e *engine[T]) Generate(ctx context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	r, leave, err := e.enter(ctx, req.Role)
	if err != nil {
		return policy.Generated{}, fmt.Errorf("generate: %w", err)
	}
	defer leave()
	if err := checkGenerate(r.model.shape, req); err != nil {
		return policy.Generated{}, fmt.Errorf("generate: %w", err)
	}
	res, err := r.generate(ctx, &req)
	if err != nil {
		return policy.Generated{}, fmt.Errorf("generate: %w", err)
	}
	return res, nil
}

func (e *engine[T]) Forward(ctx context.Context, req policy.ForwardRequest) (policy.TokenOutputs, error) {
	r, leave, err := e.enter(ctx, req.Role)
	if err != nil {
		return policy.TokenOutputs{}, fmt.Errorf("forward: %w", err)
	}
	defer leave()
	if err := checkForward(r.model.shape, req); err != nil {
		return policy.TokenOutputs{}, fmt.Errorf("forward: %w", err)
	}
	out := newOutputs(req)
	pass, err := r.forward(ctx, req, &out)
	if err == nil {
		err = checkFinite(out)
	}
	if err != nil {
		r.giveBack(pass)
		return policy.TokenOutputs{}, fmt.Errorf("forward: %w", err)
	}
	if req.Keep {
		e.nextID++
		out.Kept = e.nextID
		r.kept[out.Kept] = pass
	}
	return out, nil
}

func (e *engine[T]) Backward(ctx context.Context, role policy.Role, kept policy.Kept, c policy.Cotangents) error {
	r, leave, err := e.enter(ctx, role)
	if err != nil {
		return fmt.Errorf("backward: %w", err)
	}
	defer leave()
	pass, ok := r.kept[kept]
	if !ok {
		return fmt.Errorf("backward: %w: %s %d", policy.ErrNotKept, role, kept)
	}
	if err := checkCotangents(pass.lengths, pass.outputs, c); err != nil {
		return fmt.Errorf("backward: %w", err)
	}
	delete(r.kept, kept)
	defer r.giveBack(pass)
	if err := r.backward(ctx, pass, c); err != nil {
		// The gradient is incomplete, and its parts cannot be told apart.
		r.discard()
		return fmt.Errorf("backward: accumulated gradients are dropped: %w", err)
	}
	return nil
}

func (e *engine[T]) Discard(ctx context.Context, role policy.Role) error {
	r, leave, err := e.enter(ctx, role)
	if err != nil {
		return fmt.Errorf("discard: %w", err)
	}
	defer leave()
	r.discard()
	return nil
}

func (e *engine[T]) Step(ctx context.Context, role policy.Role, opts policy.StepOptions) (policy.StepStats, error) {
	r, leave, err := e.enter(ctx, role)
	if err != nil {
		return policy.StepStats{}, fmt.Errorf("step: %w", err)
	}
	defer leave()
	if err := opts.Validate(); err != nil {
		return policy.StepStats{}, fmt.Errorf("step: %w", err)
	}
	if r.source.Merged {
		return policy.StepStats{}, fmt.Errorf("step: %w",
			bad("the %s was loaded with its LoRA adapter merged, which trains in PyTorch alone (engine.kind: torch)",
				role))
	}
	stats, err := r.step(opts)
	if err != nil {
		return policy.StepStats{}, fmt.Errorf("step: %w", err)
	}
	r.digest = ""
	return stats, nil
}

func (e *engine[T]) State(ctx context.Context, role policy.Role) (policy.State, error) {
	r, leave, err := e.enter(ctx, role)
	if errors.Is(err, policy.ErrNotLoaded) {
		return policy.State{}, nil
	}
	if err != nil {
		return policy.State{}, fmt.Errorf("state: %w", err)
	}
	defer leave()
	return policy.State{Digest: r.digest, Step: r.trained.step, Params: int64(len(r.model.flat))}, nil
}

func (e *engine[T]) Describe() policy.Description {
	advice := e.lib.advice
	if fast == nil && runtime.GOARCH == "amd64" {
		advice = strings.TrimPrefix(advice+"; "+loopsAdvice, "; ")
	}
	return policy.Description{Device: "cpu", BLAS: e.lib.name + ", " + loopsName(), Threads: e.threads, Advice: advice}
}

// Capabilities implements policy.Sampler. With the own kernels, a row's numbers do not depend on the other rows. With a
// library they may, by rounding, because libraries choose kernels by the number of rows. Prefixes that rows of one
// request share are computed once, and nothing is kept afterwards.
func (e *engine[T]) Capabilities() policy.Capabilities {
	return policy.Capabilities{TokenIDs: true, LogProbs: true, TopLogProbs: mostTop, Entropy: policy.EntropyFull,
		Temperature: true,
		TopP:        true, TopK: true, MinP: true, RowSeeds: true, Reference: true,
		BatchInvariant: e.lib.own, Weights: policy.WeightsLoad}
}

func (e *engine[T]) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed, e.roles, e.caches = true, map[policy.Role]*resident[T]{}, nil
	return nil
}
