package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/sandbox"
)

// RunNotebooks runs notebooks of different ids side by side, at most atOnce of them, each one's cells in order, and
// says what became of every cell: outcomes[i] are those of notebook i. A notebook that cannot be gone on with has
// verdicts up to that cell and is broken from there on; where the session is lost for good, the reason is its
// Difference. progress, if not nil, is told how many notebooks are done, possibly from several goroutines.
//
// An error means that the sandbox is broken and no notebook is to blame: ctx has ended, several notebooks broke and
// none got a verdict, or the sandbox has no verdict on a trivial cell either.
func (p *Pool) RunNotebooks(ctx context.Context, books []Notebook, atOnce int, progress func(done int)) ([][]sandbox.Outcome, error) {
	outcomes := make([][]sandbox.Outcome, len(books))
	var done atomic.Int64
	var group errgroup.Group
	group.SetLimit(max(atOnce, 1))
	for i, b := range books {
		group.Go(func() error {
			outcomes[i] = p.outcomes(ctx, b)
			if n := int(done.Add(1)); progress != nil {
				progress(n)
			}
			return nil
		})
	}
	_ = group.Wait() // what breaks is an outcome
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
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
		slog.Warn("a cell cannot be run", "notebook", b.ID, "error", err, "stack", rescue.Stack(err)) // its reason does not say why
	}
	return out
}

// reason is an error as a record may hold it: it names neither machines nor ids.
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

// unrunnable is breakage under a cell.
type unrunnable struct {
	cell  int
	cause error
}

func (u unrunnable) Error() string {
	return fmt.Sprintf("%v: cell %d could not be run", sandbox.ErrSessionLost, u.cell)
}

// Unwrap returns what broke, which may name machines.
func (u unrunnable) Unwrap() error { return u.cause }

// blame returns an error if notebooks broke and the sandbox is to blame for it.
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

// Probe has an interpreter of its own answer a trivial cell. An error says why none can be had.
func (p *Pool) Probe(ctx context.Context, limits sandbox.Limits) error {
	one, err := p.sessions.OpenSession(ctx, "", limits)
	if err != nil {
		return fmt.Errorf("open session: %w", err)
	}
	defer one.Close()
	result, err := one.Run(ctx, sandbox.Call{Code: "6 * 7"})
	if err == nil && result.Value != "42" {
		err = fmt.Errorf("%w: a session says that 6 * 7 is %q (%s)", sandbox.ErrInfrastructure, result.Value, result.Status)
	}
	if err != nil {
		return fmt.Errorf("try session: %w", err)
	}
	return nil
}
