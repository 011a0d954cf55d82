package session

import (
	"context"
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

// mark identifies a cell that has run: the cell, and the recorded part of its result.
type mark struct {
	cell   string
	result digest
}

func markOf(cell sandbox.Call, result sandbox.Result) mark { return mark{cell.Key(), recorded(result)} }

// recorded returns the digest of the part of a result that a record contains.
func recorded(r sandbox.Result) digest {
	return digestOf(sandbox.Result{Status: r.Status, ExitCode: r.ExitCode, Stdout: r.Stdout, Stderr: r.Stderr,
		Value: r.Value})
}

// RunNotebook runs the cells of a notebook and returns their results. With an error it returns the results of the cells
// before the one that failed. No cell runs twice in one interpreter and none is left out, whatever an earlier attempt
// has run. Notebooks with the same id run one after another.
func (p *Pool) RunNotebook(ctx context.Context, b Notebook) ([]sandbox.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	k, err := p.enterNotebook(ctx, b)
	if err != nil {
		return nil, err
	}
	defer p.leave(k)
	defer context.AfterFunc(k.life, func() { cancel(context.Cause(k.life)) })()
	if !k.hasRun(b.Past) {
		k.limits = b.Limits
		if err := p.restore(ctx, k, b.Past); err != nil {
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

// enterNotebook waits for the turn of the session with the notebook's id. It opens the session if there is none.
func (p *Pool) enterNotebook(ctx context.Context, b Notebook) (*entry, error) {
	for {
		if err := p.Open(b.ID, "", b.Limits); err != nil && !isTaken(err) {
			return nil, err
		}
		k, err := p.find(b.ID)
		if err != nil {
			continue // it was forgotten in the meantime
		}
		if err := p.enter(ctx, k); err != nil {
			return nil, err
		}
		p.mu.Lock()
		current := p.entries[b.ID] == k
		p.mu.Unlock()
		if current {
			return k, nil
		}
		<-k.turn
	}
}

// hasRun reports whether the session has run exactly these cells, with these results.
func (k *entry) hasRun(past []Ran) bool {
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

// restore replays past in a session. Cells before the last one that is known to have ended its interpreter are skipped.
// It needs the turn.
func (p *Pool) restore(ctx context.Context, k *entry, past []Ran) error {
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

// lastEnd returns the index of the last cell whose verdict says that it ended its interpreter, or −1.
func lastEnd(past []Ran) int {
	for i, r := range slices.Backward(past) {
		if ends(r.Result.Status) {
			return i
		}
	}
	return -1
}

// restart makes the next cell run in a fresh interpreter. It needs the turn.
func (p *Pool) restart(k *entry) {
	p.drop(k)
	k.cells, k.bytes, k.over = nil, 0, nil
	k.before, k.fresh = len(k.ran), true
}

// next runs the trajectory's next cell: in its interpreter, or in a fresh one if an earlier cell has ended that. It
// needs the turn.
func (p *Pool) next(ctx context.Context, k *entry, cell sandbox.Call) (sandbox.Result, error) {
	result, err := p.run(ctx, k, cell)
	if isEnded(err) && !k.fresh {
		p.restart(k)
		result, err = p.run(ctx, k, cell)
	}
	if err != nil {
		k.ran = nil // the next attempt starts from the beginning, whatever has run
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

// withLine appends a line to text whose last line may lack its line break.
func withLine(text, line string) string {
	if text != "" && text[len(text)-1] != '\n' {
		text += "\n"
	}
	return text + line
}
