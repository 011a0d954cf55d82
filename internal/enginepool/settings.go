package enginepool

import (
	"context"
	"sync"

	"github.com/ropewalk/ropewalk/gpu/setup"
	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/internal/planning"
	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
)

// settings are the settings of one engine.
type settings struct {
	Devices          int    // of each host, each with one process, that share each model; at least 1
	Hosts            int    // that share each model; 0 means 1
	Dtype            string // torch.Float32, torch.BFloat16, or "" for the device's usual
	Deterministic    bool
	Checkpointing    string // auto, on or off
	OffloadOptimizer bool
	LoRA             *torch.LoRA // nil: the whole model trains
	// Memory is the estimated free memory that each device needs, in bytes; 0 means no requirement.
	Memory int64
	// Estimate is torch.Options.Estimate.
	Estimate func(tokens, longest int) int64
	// Flops returns the model flops of a forward and backward pass over rows of these lengths; nil if they are not
	// needed.
	Flops func(lengths ...int) float64
}

// packages lists the packages that an engine with these settings needs in addition to the usual ones.
func (s settings) packages() []setup.Package {
	if s.LoRA == nil {
		return nil
	}
	return []setup.Package{setup.Peft()}
}

// Offer implements Torch.
func (m *Maker) Offer(ctx context.Context, r *recipes.Recipe) (Offer, error) {
	s, err := settingsOf(r)
	if err != nil {
		return Offer{}, err
	}
	gpu, on, err := m.offer(ctx, s)
	return Offer{GPU: gpu, Device: on, Capabilities: torch.Capabilities()}, err
}

// Open implements Torch.
func (m *Maker) Open(ctx context.Context, r *recipes.Recipe) (policy.Engine, error) {
	s, err := settingsOf(r)
	if err != nil {
		return nil, err
	}
	return m.openWith(ctx, s)
}

// settingsOf returns the settings of a recipe's engine.
func settingsOf(r *recipes.Recipe) (settings, error) {
	model, err := planning.ModelOf(r)
	if err != nil {
		return settings{}, err
	}
	e := r.Engine
	adapter := planning.Adapter(e)
	s := settings{
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
	s.Memory = s.Estimate(planning.BatchTokens(r), 0)
	return s, nil
}

// loraOf returns the engine settings of a recipe's adapter. The seed of a new adapter follows from the run's seed.
func loraOf(r *recipes.Recipe) *torch.LoRA {
	l := r.Engine.LoRA
	if l == nil {
		return nil
	}
	return &torch.LoRA{Rank: l.Rank, Alpha: l.Alpha, Targets: l.Targets, Seed: seed.Derive("engine/lora", r.Seed)}
}

// python looks for an interpreter on first use, and again as long as none has the needed packages: one may be set up
// while the worker runs.
type python struct {
	mu    sync.Mutex
	state string
	found setup.Python
}

func (f *python) path(ctx context.Context, more ...setup.Package) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.found.Path != "" && setup.Check(f.found.Packages, more...) == nil {
		return f.found.Path, nil
	}
	found, err := setup.Find(ctx, f.state, more...)
	if err != nil {
		return "", err
	}
	f.found = found
	return found.Path, nil
}
