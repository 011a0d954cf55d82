package activities

import (
	"context"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/session"
	"github.com/ropewalk/ropewalk/sandbox/symbolic"
)

// execution runs programs for the stages, and says which recipes this worker's sandbox can serve.
type execution struct {
	Sandbox sandbox.Executor
	// Tier is how strongly Sandbox isolates; "" satisfies no recipe.
	Tier sandbox.Tier
	// Notebooks holds the interpreters of trajectories; nil: no recipe with sandbox.session can run here.
	Notebooks *session.Pool
	sessions  sandbox.Sessions // makes the interpreters of Notebooks
}

// isolates refuses a recipe that requires stronger isolation of its calls than this worker's sandbox gives.
func (e *execution) isolates(r *recipes.Recipe) error {
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
	return refuse(api.FailBadInput,
		"sandbox.min_tier: the recipe wants tier %s, and the worker's machine grants %s: `ropewalk sandbox doctor` "+
			"says there what is missing; a recipe that names the weaker tier accepts it", least, e.Tier)
}

// able refuses a recipe that this worker's sandbox cannot run, because it isolates too weakly or has no sympy to
// compare answers with.
func (e *execution) able(ctx context.Context, r *recipes.Recipe) error {
	if err := e.isolates(r); err != nil || !r.Reward.Symbolic {
		return err
	}
	err := symbolic.Available(ctx, e.Sandbox)
	if errors.Is(err, symbolic.ErrNoSympy) {
		return refuse(api.FailBadInput, "reward.symbolic: %v", err)
	}
	if err != nil {
		return fmt.Errorf("reward.symbolic: try the sandbox: %w", err)
	}
	return nil
}
