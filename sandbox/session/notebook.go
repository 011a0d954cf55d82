package session

import (
	"context"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/sandbox"
)

// Notebook is a trajectory whose cells somebody else keeps, with what came of them: a record. Its interpreter may be
// here or not; where it is not, or has run anything but Past, it is made anew out of Past.
type Notebook struct {
	ID     string // of the trajectory
	Limits sandbox.Limits
	Past   []Ran
	Cells  []sandbox.Call // to be run next, in their order
}

// Ran is a cell that has run. Of Result counts what every record holds: status, exit code, stdout, stderr, value.
type Ran struct {
	Cell   sandbox.Call
	Result sandbox.Result
}

// Restarted is the last line of stderr of a cell that a fresh interpreter ran because one before it had ended the
// trajectory's: by a time-out, by its output or memory, by an exit. It is part of the cell's result.
const Restarted = "(the interpreter was restarted: variables are gone)\n"

// Difference is an ErrSessionLost: a cell that was run again did not end as it had.
type Difference struct {
	Cell int // of the trajectory, from 1
	What string
}

// Error names the cell and what of it differs.
func (d *Difference) Error() string {
	return fmt.Sprintf("%v: cell %d %s when run again", sandbox.ErrSessionLost, d.Cell, d.What)
}

// Unwrap returns ErrSessionLost.
func (d *Difference) Unwrap() error { return sandbox.ErrSessionLost }

// mark tells a cell that has run from every other: the cell, and what a record holds of its result.
type mark struct {
	cell   string
	result digest
}

func markOf(cell sandbox.Call, result sandbox.Result) mark { return mark{cell.Key(), recorded(result)} }

// recorded is the digest of what a record holds of a result.
func recorded(r sandbox.Result) digest {
	return digestOf(sandbox.Result{Status: r.Status, ExitCode: r.ExitCode, Stdout: r.Stdout, Stderr: r.Stderr, Value: r.Value})
}

// RunNotebook runs the cells of a notebook and returns their results; with an error come those of the cells before the
// one that failed. No cell runs twice in one interpreter, and none is left out, whatever an earlier attempt has run.
// Notebooks of one id run one after another.
func (p *Pool) RunNotebook(ctx context.Context, b Notebook) ([]sandbox.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	k, err := p.enterNotebook(ctx, b)
	if err != nil {
		return nil, err
	}
	defer p.leave(k)
	defer context.AfterFunc(k.life, func() { cancel(context.Cause(k.life)) })()
	if !k.standsAfter(b.Past) {
		k.limits = b.Limits
		if err := p.goBack(ctx, k, b.Past); err != nil {
			return nil, err
		}
	}
	var results []sandbox.Result
	for _, cell := range b.Cells {
		result, err := p.next(ctx, k, cell)
		if err != nil {
			return results, err
		}
		results = append(results, result)
	}
	return results, nil
}

// enterNotebook takes the turn of the session with the notebook's id, which it opens if there is none.
func (p *Pool) enterNotebook(ctx context.Context, b Notebook) (*kept, error) {
	for {
		if err := p.Open(b.ID, "", b.Limits); err != nil && !isTaken(err) {
			return nil, err
		}
		k, err := p.find(b.ID)
		if err != nil {
			continue // it was forgotten since
		}
		if err := p.enter(ctx, k); err != nil {
			return nil, err
		}
		p.mu.Lock()
		stands := p.kept[b.ID] == k
		p.mu.Unlock()
		if stands {
			return k, nil
		}
		<-k.turn
	}
}

// standsAfter reports whether the session has run exactly these cells, with these results.
func (k *kept) standsAfter(past []Ran) bool {
	if len(k.ran) != len(past) {
		return false
	}
	for i, r := range past {
		if k.ran[i] != markOf(r.Cell, r.Result) {
			return false
		}
	}
	return true
}

// goBack brings a session to where the past leaves it. What lies before a cell that is known to have ended its
// interpreter is not run again. It needs the turn.
func (p *Pool) goBack(ctx context.Context, k *kept, past []Ran) error {
	from := 1 + lastEnd(past)
	k.ran = k.ran[:0]
	for _, r := range past[:from] {
		k.ran = append(k.ran, markOf(r.Cell, r.Result))
	}
	p.restart(k)
	for i, r := range past[from:] {
		result, err := p.next(ctx, k, r.Cell)
		if err != nil {
			return err
		}
		if what := recorded(r.Result).difference(recorded(result)); what != "" {
			p.drop(k)
			k.ran = nil
			return &Difference{Cell: from + i + 1, What: what}
		}
	}
	return nil
}

// lastEnd is the place of the last cell whose verdict says that it ended its interpreter, or −1.
func lastEnd(past []Ran) int {
	for i, r := range slices.Backward(past) {
		if ends(r.Result.Status) {
			return i
		}
	}
	return -1
}

// restart makes the session's next cell run in a fresh interpreter. It needs the turn.
func (p *Pool) restart(k *kept) {
	p.drop(k)
	k.cells, k.bytes, k.over = nil, 0, nil
	k.before, k.fresh = len(k.ran), true
}

// next runs the trajectory's next cell: in its interpreter, or in a fresh one where a cell before has ended that. It
// needs the turn.
func (p *Pool) next(ctx context.Context, k *kept, cell sandbox.Call) (sandbox.Result, error) {
	result, err := p.run(ctx, k, cell)
	if isEnded(err) && !k.fresh {
		p.restart(k)
		result, err = p.run(ctx, k, cell)
	}
	if err != nil {
		k.ran = nil // whatever has run, the next attempt begins anew
		p.restart(k)
		return sandbox.Result{}, err
	}
	if k.fresh && len(k.ran) > 0 {
		result.Stderr = withLine(result.Stderr, Restarted)
	}
	k.fresh = false
	k.ran = append(k.ran, markOf(cell, result))
	return result, nil
}

// withLine appends a line to text whose last line may be open.
func withLine(text, line string) string {
	if text != "" && text[len(text)-1] != '\n' {
		text += "\n"
	}
	return text + line
}
