package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/sandbox"
)

// Notebook is a trajectory whose cells and results are kept outside of the pool, in a record. If the pool has no
// interpreter for it, or one that has run anything other than Past, it opens one and replays Past.
type Notebook struct {
	ID     string // the trajectory's id
	Limits sandbox.Limits
	Past   []Ran
	Cells  []sandbox.Call // to run next, in this order
}

// Ran is a cell that has run. Of Result only the fields in every record count: status, exit code, stdout, stderr,
// value.
type Ran struct {
	Cell   sandbox.Call
	Result sandbox.Result
}

// Restarted is the last line of stderr of a cell that ran in a fresh interpreter because an earlier cell had ended the
// trajectory's interpreter: by a time-out, its output, its memory, or an exit. It is part of the cell's result.
const Restarted = "(the interpreter was restarted: variables are gone)\n"

// Difference is an ErrSessionLost: a replayed cell did not have the same result.
type Difference struct {
	Cell int    // number of the trajectory's cell, from 1
	What string // how the result differs
}

// Error names the cell and how its result differs.
func (d *Difference) Error() string {
	return fmt.Sprintf("%v: cell %d %s when run again", sandbox.ErrSessionLost, d.Cell, d.What)
}

// Unwrap returns ErrSessionLost.
func (d *Difference) Unwrap() error { return sandbox.ErrSessionLost }

// RunNotebook runs the cells of a notebook and returns their results. With an error it returns the results of the cells
// before the one that failed. No cell runs twice in one interpreter and none is left out, whatever an earlier attempt
// has run. Notebooks with the same id run one after another.
func (p *Pool) RunNotebook(ctx context.Context, b Notebook) ([]sandbox.Result, error) {
	if err := (sandbox.Call{Limits: b.Limits}).Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.life, func() { cancel(context.Cause(p.life)) })()
	seat, err := p.seats.Enter(ctx, b.ID)
	if err != nil {
		return nil, fmt.Errorf("await place for session: %w", err)
	}
	defer p.seats.Leave(seat)
	k := &seat.Held
	if !k.hasRun(b.Past) {
		k.reset()
	}
	k.limits = b.Limits
	past := slices.Clip(b.Past)
	var results []sandbox.Result
	for _, cell := range b.Cells {
		result, err := p.run(ctx, k, past, cell)
		if err != nil {
			return results, err
		}
		results, past = append(results, result), append(past, Ran{cell, result})
	}
	return results, nil
}

// hasRun reports whether exactly these cells have run, with these results.
func (k *interpreter) hasRun(past []Ran) bool {
	return slices.EqualFunc(k.ran, past, func(m mark, r Ran) bool { return m == markOf(r.Cell, r.Result) })
}

// reset makes the trajectory start from scratch, in a new interpreter.
func (k *interpreter) reset() {
	k.drop()
	k.ran = nil
}

// mostTries bounds how often one cell is tried if its sessions break.
const mostTries = 3

// run runs the cell that follows past, again if its interpreter breaks.
func (p *Pool) run(ctx context.Context, k *interpreter, past []Ran, cell sandbox.Call) (sandbox.Result, error) {
	var faults []error
	killed := false
	for range mostTries {
		result, err := p.try(ctx, k, past, cell)
		if err == nil && (killed || !isKilled(result)) {
			return result, nil
		}
		k.reset()
		var differs *Difference
		switch {
		case err == nil:
			// One signal does not show whether the cell caused it itself or whether the machine, short of memory, or a
			// person sent it. If the cell ends so a second time, in a new interpreter, that counts.
			killed = true
			continue
		case errors.Is(err, sandbox.ErrBadCall), errors.As(err, &differs):
			return sandbox.Result{}, err
		case ctx.Err() != nil:
			return sandbox.Result{}, context.Cause(ctx)
		}
		faults = append(faults, err)
	}
	return sandbox.Result{}, fmt.Errorf("%w %d times over: %w", sandbox.ErrSessionLost, mostTries,
		errors.Join(faults...))
}

// try replays past if the interpreter has not run it, and runs the cell. Cells before the last one that is known to
// have ended its interpreter are not replayed.
func (p *Pool) try(ctx context.Context, k *interpreter, past []Ran, cell sandbox.Call) (sandbox.Result, error) {
	if len(k.ran) == len(past) {
		return p.next(ctx, k, cell)
	}
	from := 1 + lastEnd(past)
	for _, r := range past[:from] {
		k.ran = append(k.ran, markOf(r.Cell, r.Result))
	}
	for i, r := range past[from:] {
		result, err := p.next(ctx, k, r.Cell)
		if err == nil && isKilled(result) {
			err = fmt.Errorf("%w: the signal %s ended it", sandbox.ErrSessionLost, result.Signal)
		}
		if err != nil {
			return sandbox.Result{}, fmt.Errorf("run cell %d again: %w", from+i+1, err)
		}
		if what := recorded(r.Result).difference(recorded(result)); what != "" {
			return sandbox.Result{}, &Difference{Cell: from + i + 1, What: what}
		}
	}
	return p.next(ctx, k, cell)
}

// lastEnd returns the index of the last cell whose verdict says that it ended its interpreter, or −1.
func lastEnd(past []Ran) int {
	for i, r := range slices.Backward(past) {
		if ends(r.Result.Status) {
			return i
		}
	}
	return -1
}

// next runs a cell once: in the interpreter, or in a fresh one if an earlier cell has ended that.
func (p *Pool) next(ctx context.Context, k *interpreter, cell sandbox.Call) (sandbox.Result, error) {
	result, err := p.inSession(ctx, k, cell)
	if errors.Is(err, sandbox.ErrSessionEnded) && k.begun { // the cell before has exited
		k.drop()
		result, err = p.inSession(ctx, k, cell)
	}
	if err != nil {
		return sandbox.Result{}, err
	}
	if !k.begun && len(k.ran) > 0 {
		result.Stderr = withLine(result.Stderr, Restarted)
	}
	k.begun = true
	k.ran = append(k.ran, markOf(cell, result))
	if ends(result.Status) {
		k.drop()
	}
	return result, nil
}

// inSession runs a cell in the interpreter, which it opens if there is none.
func (p *Pool) inSession(ctx context.Context, k *interpreter, cell sandbox.Call) (sandbox.Result, error) {
	if k.session == nil {
		session, err := p.sessions.OpenSession(ctx, "", k.limits)
		if err != nil {
			return sandbox.Result{}, fmt.Errorf("open session: %w", err)
		}
		k.session = session
	}
	return k.session.Run(ctx, cell)
}

// ends reports whether a cell with this verdict ended its session. A cell that exits has no status of its own; the
// session reports that at the next cell.
func ends(s sandbox.Status) bool {
	switch s {
	case sandbox.StatusTimeoutWall, sandbox.StatusTimeoutCPU, sandbox.StatusOutOfMemory, sandbox.StatusOutputLimit,
		sandbox.StatusKilled:
		return true
	}
	return false
}

// isKilled reports whether a signal ended an interpreter, which its own code or something outside can have sent.
func isKilled(r sandbox.Result) bool { return r.Status == sandbox.StatusKilled && r.Signal != "" }

// withLine appends a line to text whose last line may lack its line break.
func withLine(text, line string) string {
	if text != "" && text[len(text)-1] != '\n' {
		text += "\n"
	}
	return text + line
}
