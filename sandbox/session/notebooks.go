package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/sandbox"
)

// RunNotebooks runs notebooks with different ids concurrently, at most atOnce of them, each with its cells in order. It
// returns the outcome of every cell: outcomes[i] are those of notebook i. If a notebook cannot be continued, the cells
// up to that point have verdicts, and the cells after it are broken; if the session is lost for good, the reason is its
// Difference. progress, if not nil, is called with the number of finished notebooks, possibly from several goroutines.
//
// An error means that the sandbox is broken and no notebook is to blame: ctx has ended; several notebooks broke and
// none got a verdict; or the sandbox also fails on a trivial cell.
func (p *Pool) RunNotebooks(ctx context.Context, books []Notebook, atOnce int,
	progress func(done int)) ([][]sandbox.Outcome, error) {
	outcomes := make([][]sandbox.Outcome, len(books))
	var done atomic.Int64
	err := rescue.Each(ctx, max(atOnce, 1), len(books), func(_ context.Context, i int) error {
		outcomes[i] = p.outcomes(ctx, books[i]) // a breakage is an outcome
		if n := int(done.Add(1)); progress != nil {
			progress(n)
		}
		return nil
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	return outcomes, p.blame(ctx, books, outcomes)
}

// outcomes runs one notebook.
func (p *Pool) outcomes(ctx context.Context, b Notebook) []sandbox.Outcome {
	if len(b.Cells) == 0 {
		return nil
	}
	var results []sandbox.Result
	err := rescue.Do(func() (err error) {
		results, err = p.RunNotebook(ctx, b)
		return err
	})
	out := make([]sandbox.Outcome, len(b.Cells))
	for i := range out {
		if i < len(results) {
			out[i].Result = results[i]
			continue
		}
		out[i].Broken = reason(err, len(b.Past)+len(results)+1)
	}
	if errors.As(out[len(out)-1].Broken, new(unrunnable)) && ctx.Err() == nil {
		// the recorded reason does not say why
		slog.Warn("a cell cannot be run", "notebook", b.ID, "error", err, "stack", rescue.Stack(err))
	}
	return out
}

// reason returns an error in a form that a record may contain: it names neither machines nor ids.
func reason(err error, cell int) error {
	var differs *Difference
	switch {
	case errors.As(err, &differs):
		return differs
	case errors.Is(err, sandbox.ErrBadCall):
		return fmt.Errorf("cell %d: %w", cell, err)
	}
	return unrunnable{cell, err}
}

// unrunnable is breakage that prevented a cell from running.
type unrunnable struct {
	cell  int
	cause error
}

// Error says which cell could not be run, without the cause.
func (u unrunnable) Error() string {
	return fmt.Sprintf("%v: cell %d could not be run", sandbox.ErrSessionLost, u.cell)
}

// Unwrap returns the cause, which may name machines.
func (u unrunnable) Unwrap() error { return u.cause }

// blame returns an error if notebooks broke because of the sandbox.
func (p *Pool) blame(ctx context.Context, books []Notebook, outcomes [][]sandbox.Outcome) error {
	var first *unrunnable
	broken, verdicts := 0, 0
	limits := sandbox.Limits{}
	for i, of := range outcomes {
		var one unrunnable
		if len(of) == 0 {
			continue
		}
		if of[0].Broken == nil {
			verdicts++
		}
		if errors.As(of[len(of)-1].Broken, &one) {
			broken++
			if first == nil {
				first, limits = &one, books[i].Limits
			}
		}
	}
	if first == nil {
		return nil
	}
	if broken > 1 && verdicts == 0 {
		return fmt.Errorf("none of %d notebooks got a verdict: %w", len(books), first.cause)
	}
	if err := p.Probe(ctx, limits); err != nil {
		return fmt.Errorf("the sandbox broke on %d notebooks, and on a trivial one: %w", broken, first.cause)
	}
	return nil
}

// Probe runs a trivial cell in a new interpreter. The error says why that failed.
func (p *Pool) Probe(ctx context.Context, limits sandbox.Limits) error {
	one, err := p.sessions.OpenSession(ctx, "", limits)
	if err != nil {
		return fmt.Errorf("open session: %w", err)
	}
	defer one.Close()
	result, err := one.Run(ctx, sandbox.Call{Code: "6 * 7"})
	if err == nil && result.Value != "42" {
		err = fmt.Errorf("%w: a session says that 6 * 7 is %q (%s)", sandbox.ErrInfrastructure, result.Value,
			result.Status)
	}
	if err != nil {
		return fmt.Errorf("try session: %w", err)
	}
	return nil
}
