package resource

import (
	"context"
	"errors"
	"runtime"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/session"
)

// A recipe with sandbox.session runs the programs of a trajectory as the cells of one interpreter
// (tools.NewNotebooks). The record holds all cells and their results, and the interpreter is only a cache of the
// record. If this worker has no interpreter that has run exactly the cells of the earlier turns, it starts one and runs
// these cells again. Each cell must end as the record says, or the trajectory is excluded. So a retried activity,
// another worker and a removed interpreter all give the same rows.

// EvaluationNotebooks makes a pool for an evaluation alone. It removes no interpreter before the interpreter's
// episode has ended, so that none has to be rebuilt.
func (e *Execution) EvaluationNotebooks(r *recipes.Recipe) (*session.Pool, error) {
	if err := e.HasSessions(r); err != nil {
		return nil, err
	}
	return session.New(e.sessions, session.Settings{Most: rollout.StatefulEpisodes}), nil
}

// HasSessions refuses a recipe whose calls are cells if this worker cannot make sessions.
func (e *Execution) HasSessions(r *recipes.Recipe) error {
	if !r.Sandbox.Session || e.Notebooks != nil {
		return nil
	}
	return badinput.Errorf("sandbox.session: the recipe wants an interpreter for each trajectory, and this worker's " +
		"sandbox makes no sessions")
}

// keepsSessions is HasSessions plus a test session, before anything of a run is written.
func (e *Execution) keepsSessions(ctx context.Context, r *recipes.Recipe) error {
	if err := e.HasSessions(r); err != nil || !r.Sandbox.Session {
		return err
	}
	err := e.Notebooks.Probe(ctx, CallLimits(r.Sandbox))
	for _, lasting := range []error{sandbox.ErrBadCall, sandbox.ErrTier, sandbox.ErrNoPython} {
		if errors.Is(err, lasting) {
			return badinput.Errorf("sandbox.session: the recipe wants an interpreter for each trajectory, and this "+
				"worker's sandbox makes none: %v", err)
		}
	}
	return err
}

// CellsAtOnce is how many cells a worker runs at once: as many as its sandbox runs calls.
func (e *Execution) CellsAtOnce() int {
	if sized, ok := e.Sandbox.(interface{ Workers() int }); ok {
		return max(sized.Workers(), 1)
	}
	return runtime.NumCPU()
}
