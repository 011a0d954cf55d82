package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/session"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// Deps is what the stages of one worker share.
type Deps struct {
	Store  store.Store
	Record *commit.Writer
	// Trainer and Rollout hold the CPU engine; recipes that ask for PyTorch get one of engines (see trainer and generator).
	Trainer *slot
	Rollout *slot
	engines *enginePool
	// Host names this worker's host; "" where no queue is the host's own.
	Host    string
	Sandbox sandbox.Executor
	// Tier is how strongly Sandbox isolates; "" satisfies no recipe.
	Tier sandbox.Tier
	// Notebooks holds the interpreters of trajectories; nil: no recipe with sandbox.session can run here.
	Notebooks *session.Pool
	sessions  sandbox.Sessions // makes them
	// Code is the digest of the program: the record says which code made what.
	Code string

	tokens *tokenizer.Tokenizer
	// configs caches resolved recipes by the digest of the manifest that committed them.
	configs sync.Map
	// outcomes caches what a done step's samples came to, by its head.
	outcomes sync.Map
}

// Options are what a worker brings along.
type Options struct {
	Store   store.Store
	Trainer policy.Engine // learns
	Rollout policy.Engine // generates
	Torch   Torch         // nil: no recipe with engine.kind torch can run here
	Sandbox sandbox.Executor
	Tier    sandbox.Tier // of Sandbox, and no stronger than that of Sessions
	// Sessions makes interpreters that live as long as a trajectory, at most MostSessions at once; nil: this worker
	// has none.
	Sessions     sandbox.Sessions
	MostSessions int    // 0 takes the pool's default
	Code         string // SHA-256 of the program, hex
	Scratch      string // folder for checkpoints on their way in and out
	Host         string // name of the host, whose own queue this worker polls too; "" where it does not
}

// New makes the stages' shared state. Whoever opened the engines, the sandbox and the sessions closes them, after Close.
func New(o Options) (*Deps, error) {
	tokens, err := rollout.NewTokenizer()
	if err != nil {
		return nil, err
	}
	record := commit.New(o.Store)
	d := &Deps{
		Store: o.Store, Record: record, Sandbox: o.Sandbox, Tier: o.Tier, Code: o.Code, tokens: tokens,
		Trainer: newSlot(record, o.Trainer, o.Scratch), Rollout: newSlot(record, o.Rollout, o.Scratch),
		sessions: o.Sessions, Host: o.Host,
	}
	d.engines = newEnginePool(o.Torch, func(e policy.Engine) *slot { return newSlot(record, e, o.Scratch) })
	if o.Sessions != nil {
		d.Notebooks = session.New(o.Sessions, session.Settings{Most: o.MostSessions})
	}
	return d, nil
}

// Close ends the trajectories' interpreters and the PyTorch engines.
func (d *Deps) Close() error {
	err := d.engines.Close()
	if d.Notebooks == nil {
		return err
	}
	return errors.Join(err, d.Notebooks.Close())
}

// config is a run's resolved recipe and its digest.
type config struct {
	recipe recipes.Recipe
	digest string
}

// config returns the recipe that a run's PrepareRun has committed.
func (d *Deps) config(ctx context.Context, ref schema.Ref) (*config, error) {
	if c, ok := d.configs.Load(ref.Digest); ok {
		return c.(*config), nil
	}
	m, err := d.Record.Read(ctx, ref)
	if err != nil {
		return nil, err
	}
	shards := m.ShardsOf(schema.Documents)
	if len(shards) == 0 {
		return nil, fmt.Errorf("%w: %s commits no recipe", commit.ErrDamaged, ref.Key)
	}
	data, err := d.Record.ReadShard(ctx, shards[0])
	if err != nil {
		return nil, err
	}
	recipe, err := recipes.Parse(shards[0].Key, data)
	if err != nil {
		return nil, fmt.Errorf("%w: committed recipe: %w", commit.ErrDamaged, err)
	}
	recipe.Engine = engineOf(m, recipe.Engine)
	c := &config{recipe: *recipe, digest: m.Config}
	d.configs.Store(ref.Digest, c)
	return c, nil
}

// recipe returns the recipe as the scope's step has it.
func (d *Deps) recipe(ctx context.Context, scope wire.Scope) (*recipes.Recipe, error) {
	c, err := d.config(ctx, scope.Config)
	if err != nil {
		return nil, err
	}
	return c.recipe.At(scope.Step), nil
}

// loop is the agent loop as the recipe sets it, at a temperature of the caller's.
func (d *Deps) loop(recipe *recipes.Recipe, temperature float64) (*rollout.Loop, error) {
	return rollout.NewLoop(rollout.Settings{
		MaxTurns: recipe.Rollout.MaxTurns, MaxTurnTokens: recipe.Rollout.MaxTurnTokens, MaxTokens: recipe.Rollout.MaxTokens, History: recipe.Rollout.History,
		MaxToolTextBytes: recipe.Rollout.MaxToolTextBytes, Temperature: temperature, CallLimits: callLimits(recipe.Sandbox),
	}, d.tokens, recipe.Seed)
}

func callLimits(s recipes.Sandbox) sandbox.Limits {
	return sandbox.Limits{
		CPU:         time.Duration(s.CPUSeconds * float64(time.Second)),
		Wall:        time.Duration(s.WallSeconds * float64(time.Second)),
		MemoryBytes: int64(s.MemoryMB) << 20,
		OutputBytes: s.OutputKB << 10,
	}
}

// logTimings says that measured times of calls could not be kept. They are no part of the
// outcome, so the stage itself stands.
func logTimings(err error) {
	if err != nil {
		slog.Warn("keep measured times", "error", err)
	}
}
