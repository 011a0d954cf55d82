package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"go.temporal.io/sdk/client"

	"github.com/ropewalk/ropewalk/activities"
	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/gpu/gang"
	"github.com/ropewalk/ropewalk/gpu/leased"
	"github.com/ropewalk/ropewalk/gpu/plan"
	"github.com/ropewalk/ropewalk/gpu/setup"
	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/gpu/versions"
	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
)

// torchEngines makes a worker's PyTorch engines; it implements activities.Torch.
type torchEngines struct{ maker *leased.Maker }

var _ activities.Torch = torchEngines{}

func (o workerOptions) openTorch(scratch string, c client.Client) (torchEngines, error) {
	found := &foundPython{}
	m, err := leased.Open(leased.Options{Python: found.path, Dir: scratch, Threads: o.threads, Logger: slog.Default(), Gangs: o.gangs(c)})
	if err != nil {
		return torchEngines{}, fmt.Errorf("look for devices: %w", err)
	}
	return torchEngines{m}, nil
}

// Close ends watching the devices.
func (t torchEngines) Close() error { return t.maker.Close() }

// Devices implements activities.Torch.
func (t torchEngines) Devices() int { return t.maker.Devices() }

// Serve implements activities.Torch.
func (t torchEngines) Serve(ctx context.Context, in wire.RanksInput, room activities.Room) error {
	err := t.maker.Serve(ctx, gang.Invitation{Address: in.Address, ID: in.Gang}, leased.Room(room))
	switch {
	case errors.Is(err, gang.ErrGone):
		return fmt.Errorf("%w: %w", activities.ErrGangGone, err)
	case errors.Is(err, gang.ErrElsewhere):
		return fmt.Errorf("%w: %w", activities.ErrNoPlace, err)
	}
	return err
}

// Offer implements activities.Torch.
func (t torchEngines) Offer(ctx context.Context, r *recipes.Recipe) (activities.Offer, error) {
	settings, _, err := engineSettings(r)
	if err != nil {
		return activities.Offer{}, err
	}
	gpu, on, err := t.maker.Offer(ctx, settings)
	return activities.Offer{GPU: gpu, Device: on}, err
}

// Open implements activities.Torch.
func (t torchEngines) Open(ctx context.Context, r *recipes.Recipe) (policy.Engine, error) {
	settings, _, err := engineSettings(r)
	if err != nil {
		return nil, err
	}
	return t.maker.Open(ctx, settings)
}

// engineSettings are a recipe's, and the memory that each device needs by estimate.
func engineSettings(r *recipes.Recipe) (leased.Settings, plan.Memory, error) {
	model, err := modelOf(r)
	if err != nil {
		return leased.Settings{}, plan.Memory{}, err
	}
	e := r.Engine
	adapter := adapterOf(e)
	s := leased.Settings{
		Devices: e.Devices, Hosts: e.Hosts, Deterministic: e.Deterministic, Checkpointing: e.Checkpointing, OffloadOptimizer: e.OffloadOptimizer,
		Flops:    model.TrainFlops,
		LoRA:     loraOf(r),
		Estimate: func(tokens, _ int) int64 { return updateMemory(r, model, tokens).Total() },
	}
	if adapter != nil {
		s.Flops = func(lengths ...int) float64 { return model.AdapterTrainFlops(*adapter, lengths...) }
	}
	if e.Dtype != "auto" {
		s.Dtype = e.Dtype
	}
	memory := updateMemory(r, model, batchTokens(r))
	s.Memory = memory.Total()
	return s, memory, nil
}

// batchTokens are the most that go through a model together: a micro-batch, or one trajectory that is longer.
func batchTokens(r *recipes.Recipe) int {
	return max(r.Optimizer.MicrobatchTokens, r.Rollout.MaxTokens)
}

// updateMemory estimates a recipe's update on GPUs in micro-batches of so many tokens.
func updateMemory(r *recipes.Recipe, model plan.Model, tokens int) plan.Memory {
	return model.UpdateMemory(plan.Settings{
		BFloat16: r.Engine.Dtype != "float32", Checkpointing: r.Engine.Checkpointing != "off", Offload: r.Engine.OffloadOptimizer,
		Ranks: r.Engine.Devices * max(1, r.Engine.Hosts), Tokens: tokens, Adapter: adapterOf(r.Engine),
	})
}

func adapterOf(e recipes.Engine) *plan.Adapter {
	if e.LoRA == nil {
		return nil
	}
	return &plan.Adapter{Rank: e.LoRA.Rank, Targets: e.LoRA.Targets}
}

// loraOf are the engine's settings of a recipe's adapter; a new one's random numbers follow from the run's seed.
func loraOf(r *recipes.Recipe) *torch.LoRA {
	l := r.Engine.LoRA
	if l == nil {
		return nil
	}
	return &torch.LoRA{Rank: l.Rank, Alpha: l.Alpha, Targets: l.Targets, Seed: seed.Derive("engine/lora", r.Seed)}
}

// modelOf are the sizes of the model that a recipe makes.
func modelOf(r *recipes.Recipe) (plan.Model, error) {
	tokens, err := rollout.NewTokenizer()
	if err != nil {
		return plan.Model{}, err
	}
	shape, err := activities.PolicyShape(r.Policy, tokens)
	if err != nil {
		return plan.Model{}, err
	}
	return plan.Of(shape), nil
}

// foundPython looks for an interpreter once it is asked for, and again after it has found none, or none with what more is
// named: one may be set up while the worker runs.
type foundPython struct {
	mu    sync.Mutex
	found setup.Python
}

func (f *foundPython) path(ctx context.Context, more ...versions.Package) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.found.Path != "" && versions.Check(f.found.Packages, more...) == nil {
		return f.found.Path, nil
	}
	python, err := setup.Find(ctx, stateFolder(), more...)
	if err != nil {
		return "", err
	}
	f.found = python
	return python.Path, nil
}
