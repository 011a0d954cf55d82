// Package resource holds what a worker's machine gives to its stages: the engines, the execution of programs with the
// tools that call it, and the episodes that wait for their next turn.
package resource

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/activities/resolver"
	"github.com/ropewalk/ropewalk/env/remote"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/judge"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/session"
	"github.com/ropewalk/ropewalk/sandbox/symbolic"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/tool/mcp"
)

// Execution runs programs for the stages, and says which recipes this worker's sandbox can serve.
type Execution struct {
	Sandbox sandbox.Executor
	// Tier is how strongly Sandbox isolates; "" satisfies no recipe.
	Tier sandbox.Tier
	// Notebooks holds the interpreters of trajectories; nil: no recipe with sandbox.session can run here.
	Notebooks *session.Pool
	sessions  sandbox.Sessions // makes the interpreters of Notebooks
	// Servers holds sessions with MCP servers.
	Servers *mcp.Pool
	// Judgements holds verdicts of judges that are perhaps not committed yet.
	Judgements *judge.Memory
	// Functions holds the processes of users' reward functions.
	Functions *remote.Functions
	// Confirms has programs and secrets that a recipe names used only if someone with the store's keys has asked for
	// the run.
	Confirms bool
	store    store.Store // holds the notes of calls that must not run twice
	recipes  *resolver.Recipes
}

// NewExecution makes the execution of a worker, with at most the given number of sessions; 0: the pool's default.
func NewExecution(executor sandbox.Executor, tier sandbox.Tier, sessions sandbox.Sessions, most int,
	objects store.Store, recipes *resolver.Recipes) Execution {
	e := Execution{Sandbox: executor, Tier: tier, sessions: sessions, Servers: mcp.NewPool(),
		Judgements: &judge.Memory{}, Functions: &remote.Functions{}, store: objects, recipes: recipes}
	if sessions != nil {
		e.Notebooks = session.New(sessions, session.Settings{Most: most})
	}
	return e
}

// Close ends the trajectories' interpreters and the sessions with MCP servers.
func (e *Execution) Close() error {
	err := e.Servers.Close()
	if e.Notebooks == nil {
		return err
	}
	return errors.Join(err, e.Notebooks.Close())
}

// Isolates refuses a recipe that requires stronger isolation of its calls than this worker's sandbox gives.
func (e *Execution) Isolates(r *recipes.Recipe) error {
	if !r.Environment.CallsTools() {
		return nil
	}
	least, err := sandbox.ParseTier(r.Sandbox.MinTier)
	if err != nil {
		return fmt.Errorf("sandbox.min_tier: %w", err)
	}
	if e.Tier.AtLeast(least) {
		return nil
	}
	return badinput.Errorf("sandbox.min_tier: the recipe wants tier %s, and the worker's machine grants %s: `ropewalk "+
		"sandbox doctor` says there what is missing; a recipe that names the weaker tier accepts it", least, e.Tier)
}

// Able refuses a recipe that this worker's sandbox cannot run, because it isolates too weakly, has no sympy to compare
// answers with, or makes no sessions.
func (e *Execution) Able(ctx context.Context, r *recipes.Recipe) error {
	if err := e.Isolates(r); err != nil {
		return err
	}
	if r.Reward.Symbolic {
		switch err := symbolic.Available(ctx, e.Sandbox); {
		case errors.Is(err, symbolic.ErrNoSympy):
			return badinput.Errorf("reward.symbolic: %v", err)
		case err != nil:
			return fmt.Errorf("reward.symbolic: try the sandbox: %w", err)
		}
	}
	return e.keepsSessions(ctx, r)
}

// RunsCalls refuses a recipe whose tool calls this worker cannot run itself.
func (e *Execution) RunsCalls(r *recipes.Recipe) error {
	if r.Environment.CallsTools() && e.Sandbox == nil {
		return badinput.Errorf("rollout.mode: interleaved runs tool calls on the workers of queue " +
			"rollout, and this one has no sandbox; give it one, or set rollout.mode=staged")
	}
	return nil
}

// CallLimits are the limits of one call.
func CallLimits(s recipes.Sandbox) sandbox.Limits {
	return sandbox.Limits{
		CPU:         time.Duration(s.CPUSeconds * float64(time.Second)),
		Wall:        time.Duration(s.WallSeconds * float64(time.Second)),
		MemoryBytes: int64(s.MemoryMB) << 20,
		OutputBytes: s.OutputKB << 10,
	}
}

// Engines are the engines of one worker.
type Engines struct {
	Pool *enginepool.Pool
	// Host names this worker's host; "" if the host has no queue of its own.
	Host    string
	Scratch string // folder for checkpoints that are made
	Memory  int64  // of the machine, in bytes, if this worker runs models on it; else 0
}
