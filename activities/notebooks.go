package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/session"
)

// A recipe with sandbox.session runs the calls of a trajectory as the cells of one interpreter. The record holds all
// cells and what came of them, and the interpreter is but a cache of it: where this worker has none that has run just
// the cells of the earlier turns, one is made that runs them again, and each must end as the record says, or the
// trajectory is excluded. So a retried activity, another worker and an interpreter that was taken away give the same rows.

// notebookID is the same for every attempt, on every worker.
func notebookID(scope wire.Scope, e *rollout.Episode) string {
	return fmt.Sprintf("%s/%d/%d/%s", scope.Run, scope.Step, scope.Gen, e.TrajectoryID)
}

// runCells runs what the episodes wait for, and returns what became of each of PendingCalls.
func (d *Deps) runCells(ctx context.Context, w *draft, scope wire.Scope, loop *rollout.Loop, episodes []*rollout.Episode) ([]sandbox.Outcome, error) {
	books := loop.PendingNotebooks(episodes, func(e *rollout.Episode) string { return notebookID(scope, e) })
	of, err := d.Notebooks.RunNotebooks(ctx, books, d.cellsAtOnce(), func(done int) { w.progress.set(done, len(books)) })
	if err != nil {
		return nil, fmt.Errorf("run tool calls: %w", err)
	}
	var outcomes []sandbox.Outcome
	for _, some := range of {
		outcomes = append(outcomes, some...)
	}
	return outcomes, nil
}

// endNotebooks ends the interpreters of episodes that have no cell to run any more. Those that this worker does not
// know of are ended by another one, or when they have been idle for long.
func (d *Deps) endNotebooks(ctx context.Context, scope wire.Scope, episodes []*rollout.Episode, goesOn func(*rollout.Episode) bool) {
	if d.Notebooks == nil {
		return
	}
	for _, e := range episodes {
		if goesOn != nil && goesOn(e) {
			continue
		}
		if err := d.Notebooks.End(ctx, notebookID(scope, e)); err != nil && !errors.Is(err, session.ErrUnknown) {
			slog.Warn("end an interpreter", "trajectory", e.TrajectoryID, "error", err)
		}
	}
}

// evaluationNotebooks is a pool of an evaluation's own: it takes no interpreter away before its episode has ended, so
// that none has to be made anew.
func (d *Deps) evaluationNotebooks(r *recipes.Recipe) (*session.Pool, error) {
	if err := d.hasSessions(r); err != nil {
		return nil, err
	}
	return session.New(d.sessions, session.Settings{Most: rollout.NotebookEpisodes}), nil
}

// hasSessions refuses a recipe whose calls are cells where this worker makes no sessions.
func (d *Deps) hasSessions(r *recipes.Recipe) error {
	if !r.Sandbox.Session || d.Notebooks != nil {
		return nil
	}
	return refuse(wire.FailBadInput, "sandbox.session: the recipe wants an interpreter for each trajectory, and this worker's sandbox makes no sessions")
}

// keepsSessions is hasSessions that has a session answer, before anything of a run is written.
func (d *Deps) keepsSessions(ctx context.Context, r *recipes.Recipe) error {
	if err := d.hasSessions(r); err != nil || !r.Sandbox.Session {
		return err
	}
	err := d.Notebooks.Probe(ctx, callLimits(r.Sandbox))
	for _, lasting := range []error{sandbox.ErrBadCall, sandbox.ErrTier, sandbox.ErrNoPython} {
		if errors.Is(err, lasting) {
			return refuse(wire.FailBadInput, "sandbox.session: the recipe wants an interpreter for each trajectory, and this worker's sandbox makes none: %v", err)
		}
	}
	return err
}

// cellsAtOnce is how many cells a worker runs at once: as many as its sandbox runs calls.
func (d *Deps) cellsAtOnce() int {
	if sized, ok := d.Sandbox.(interface{ Workers() int }); ok {
		return max(sized.Workers(), 1)
	}
	return runtime.NumCPU()
}
