package engines

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/ropewalk/ropewalk/activities/resolver"
	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/gpu/gang"
	"github.com/ropewalk/ropewalk/gpu/lease"
	"github.com/ropewalk/ropewalk/gpu/leased"
	"github.com/ropewalk/ropewalk/gpu/plan"
	"github.com/ropewalk/ropewalk/gpu/setup"
	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/gpu/versions"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/planning"
	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
)

// Torch makes a worker's PyTorch engines; it implements enginepool.Torch.
type Torch struct{ maker *leased.Maker }

var _ enginepool.Torch = Torch{}

// Options says where a worker's PyTorch engines find what they need.
type Options struct {
	State   string // folder of the program's state, in which a Python may have been installed
	Scratch string // folder for temporary files
	Threads int
	Gangs   leased.Gangs // how engines come to use several hosts
}

// OpenTorch looks for this host's devices.
func OpenTorch(o Options) (Torch, error) {
	found := &python{state: o.State}
	m, err := leased.Open(leased.Options{Python: found.path, Dir: o.Scratch, Threads: o.Threads, Logger: slog.Default(),
		Gangs: o.Gangs})
	if err != nil {
		return Torch{}, fmt.Errorf("look for devices: %w", err)
	}
	return Torch{m}, nil
}

// Close ends watching the devices.
func (t Torch) Close() error { return t.maker.Close() }

// Watch returns the watch over the host's devices and the pool that leases them, for metrics; nil without a driver.
func (t Torch) Watch() (*device.Watch, *lease.Pool) { return t.maker.Watch() }

// Devices implements enginepool.Torch.
func (t Torch) Devices() int { return t.maker.Devices() }

// Serve implements enginepool.Torch.
func (t Torch) Serve(ctx context.Context, i gang.Invitation, room enginepool.Room) error {
	return t.maker.Serve(ctx, i, leased.Room(room))
}

// Offer implements enginepool.Torch.
func (t Torch) Offer(ctx context.Context, r *recipes.Recipe) (enginepool.Offer, error) {
	settings, _, err := engineSettings(r)
	if err != nil {
		return enginepool.Offer{}, err
	}
	gpu, on, err := t.maker.Offer(ctx, settings)
	return enginepool.Offer{GPU: gpu, Device: on, Capabilities: torch.Capabilities()}, err
}

// Open implements enginepool.Torch.
func (t Torch) Open(ctx context.Context, r *recipes.Recipe) (policy.Engine, error) {
	settings, _, err := engineSettings(r)
	if err != nil {
		return nil, err
	}
	return t.maker.Open(ctx, settings)
}

// engineSettings returns a recipe's engine settings and the memory that each device needs, by estimate.
func engineSettings(r *recipes.Recipe) (leased.Settings, plan.Memory, error) {
	model, err := modelOf(r)
	if err != nil {
		return leased.Settings{}, plan.Memory{}, err
	}
	e := r.Engine
	adapter := planning.Adapter(e)
	s := leased.Settings{
		Devices: e.Devices, Hosts: e.Hosts, Deterministic: e.Deterministic, Checkpointing: e.Checkpointing,
		OffloadOptimizer: e.OffloadOptimizer,
		Flops:            model.TrainFlops,
		LoRA:             loraOf(r),
		Estimate:         func(tokens, _ int) int64 { return planning.Update(r, model, tokens).Total() },
	}
	if adapter != nil {
		s.Flops = func(lengths ...int) float64 { return model.AdapterTrainFlops(*adapter, lengths...) }
	}
	if e.Dtype != "auto" {
		s.Dtype = e.Dtype
	}
	memory := planning.Update(r, model, planning.BatchTokens(r))
	s.Memory = memory.Total()
	return s, memory, nil
}

// loraOf returns the engine settings of a recipe's adapter. The seed of a new adapter follows from the run's seed.
func loraOf(r *recipes.Recipe) *torch.LoRA {
	l := r.Engine.LoRA
	if l == nil {
		return nil
	}
	return &torch.LoRA{Rank: l.Rank, Alpha: l.Alpha, Targets: l.Targets, Seed: seed.Derive("engine/lora", r.Seed)}
}

// modelOf returns the sizes of the model that a recipe makes or starts from.
func modelOf(r *recipes.Recipe) (plan.Model, error) {
	if shape, known, err := r.Policy.Shape(); known || err != nil {
		return plan.Of(shape), err
	}
	tokens, err := resolver.TokenizerOf(r)
	if err != nil {
		return plan.Model{}, err
	}
	shape, err := resolver.PolicyShape(r.Policy, tokens)
	if err != nil {
		return plan.Model{}, err
	}
	if r.Tokenizer != nil { // it is trained later, and has at most so many tokens
		shape.Vocab = r.Tokenizer.Vocabulary
	}
	return plan.Of(shape), nil
}

// python looks for an interpreter on first use, and again as long as none has the needed packages: one may be set up
// while the worker runs.
type python struct {
	mu    sync.Mutex
	state string
	found setup.Python
}

func (f *python) path(ctx context.Context, more ...versions.Package) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.found.Path != "" && versions.Check(f.found.Packages, more...) == nil {
		return f.found.Path, nil
	}
	found, err := setup.Find(ctx, f.state, more...)
	if err != nil {
		return "", err
	}
	f.found = found
	return found.Path, nil
}
