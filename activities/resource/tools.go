package resource

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/sandbox/session"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/tool"
	"github.com/ropewalk/ropewalk/tool/tools"
)

// Toolbox opens the tools of a recipe. pool holds the interpreters of a recipe with sandbox.session. Calls that must
// not run twice are noted in the run's part of the store.
func (e *Execution) Toolbox(recipe *recipes.Recipe, pool *session.Pool) (tool.Toolbox, error) {
	return e.ToolboxFor(recipe, pool, nil, nil)
}

// ToolboxFor is toolbox for a policy that has another tokenizer than the recipe's; nil is the recipe's. pages sums up
// documents if the recipe asks for it.
func (e *Execution) ToolboxFor(recipe *recipes.Recipe, pool *session.Pool, tokens tokenizer.Codec,
	pages tools.Summariser) (tool.Toolbox, error) {
	host := tools.Host{Sandbox: e.Sandbox, Limits: CallLimits(recipe.Sandbox), ExactCarets: recipe.Sandbox.ExactCarets,
		Summaries: pages}
	if recipe.Sandbox.Session {
		host.Notebooks, host.AtOnce = pool, e.CellsAtOnce()
	}
	if tokens != nil {
		host.Encode, host.Decode = tokens.Encode, tokens.Decode
	}
	return e.OpenTools(recipe, host)
}

// OpenTools opens the tools of a recipe for a host. It completes the host with the environment's documents.
func (e *Execution) OpenTools(recipe *recipes.Recipe, host tools.Host) (tool.Toolbox, error) {
	declared, err := e.recipes.Declared(recipe)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(declared, func(t tools.Declaration) bool { return t.Reads }) {
		if err := e.Library(recipe, &host); err != nil {
			return nil, err
		}
	}
	host.Servers = e.Servers
	box, err := tools.Open(declared, host)
	if err != nil {
		return nil, err
	}
	for i, t := range box {
		box[i] = tool.Once(t, callNotes{e.store})
	}
	return box, nil
}

// Library gives a host the documents of the recipe's environment, and the tokens of the recipe's policy.
func (e *Execution) Library(recipe *recipes.Recipe, host *tools.Host) error {
	world, err := e.recipes.World(recipe)
	if err != nil {
		return err
	}
	host.Library, _ = world.(env.Library)
	if host.Encode != nil {
		return nil
	}
	tokens, err := e.recipes.Tokenizer(recipe)
	if err != nil {
		return err
	}
	host.Encode, host.Decode = tokens.Encode, tokens.Decode
	return nil
}

// CallScope completes the keys of a rollout's calls.
func CallScope(scope api.Scope) tool.Scope { return tool.Scope{Run: scope.Run, Generation: scope.Gen} }

// EndCalls releases what tools hold for episodes that make no further call: all of them, or those for which goesOn is
// false. What tools hold on other workers is released there when it has been idle for long.
func EndCalls(ctx context.Context, box tool.Toolbox, scope api.Scope, episodes []*rollout.Episode,
	goesOn func(*rollout.Episode) bool) {
	if !box.Stateful() {
		return
	}
	for _, e := range episodes {
		if goesOn != nil && goesOn(e) {
			continue
		}
		if err := box.End(ctx, e.Key(CallScope(scope)).Episode()); err != nil {
			slog.WarnContext(ctx, "end the tools of an episode", "trajectory", e.TrajectoryID, "error", err)
		}
	}
}

// callNotes is the journal of calls that must not run twice. Its notes are objects of the run that no manifest names:
// they matter only until the calls' stage has committed.
type callNotes struct{ store store.Store }

// PutIfAbsent stores a note unless there is one.
func (c callNotes) PutIfAbsent(ctx context.Context, k tool.Key, name string, note []byte) (bool, error) {
	err := c.store.PutIfAbsent(ctx, noteKey(k, name), note)
	if errors.Is(err, store.ErrExists) {
		return false, nil
	}
	return err == nil, err
}

// Get returns a note.
func (c callNotes) Get(ctx context.Context, k tool.Key, name string) ([]byte, bool, error) {
	note, err := c.store.Get(ctx, noteKey(k, name))
	if errors.Is(err, store.ErrNotFound) {
		return nil, false, nil
	}
	return note, err == nil, err
}

// noteKey is the key of a note's object.
func noteKey(k tool.Key, name string) string { return schema.CallNoteKey(k.Run, k.InRun(), name) }
