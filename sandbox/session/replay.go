package session

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"

	"github.com/ropewalk/ropewalk/sandbox"
)

// ranCell is a cell that has run, and the digest of its result.
type ranCell struct {
	cell   sandbox.Call
	digest digest
}

type sum [sha256.Size]byte

// digest holds the digests of a result's fields separately, so that a difference can be named. Timing is not included.
type digest struct{ status, stdout, stderr, value, files sum }

func digestOf(r sandbox.Result) digest {
	return digest{
		status: sumOf([]byte(r.Status), binary.LittleEndian.AppendUint64(nil, uint64(int64(r.ExitCode))),
			[]byte(r.Signal)),
		stdout: sumOf([]byte(r.Stdout)),
		stderr: sumOf([]byte(r.Stderr), []byte(r.Traceback)),
		value:  sumOf([]byte(r.Value)),
		files:  filesSum(r.Files),
	}
}

func sumOf(parts ...[]byte) (s sum) {
	h := sha256.New()
	put(h, parts...)
	h.Sum(s[:0])
	return s
}

func filesSum(files []sandbox.File) (s sum) {
	h := sha256.New()
	for _, f := range files {
		put(h, []byte(f.Name), f.Content)
	}
	h.Sum(s[:0])
	return s
}

// put writes each part, preceded by its length.
func put(h hash.Hash, parts ...[]byte) {
	for _, part := range parts {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
}

// difference says how a cell's result changed when the cell was run again; "" if it did not.
func (d digest) difference(again digest) string {
	switch {
	case d.status != again.status:
		return "ended otherwise"
	case d.stdout != again.stdout:
		return "printed something else"
	case d.stderr != again.stderr:
		return "wrote something else to stderr"
	case d.value != again.value:
		return "had another value"
	case d.files != again.files:
		return "left other files"
	}
	return ""
}

// perCell is roughly the memory that a cell uses in addition to its texts, in bytes.
const perCell = 400

// remember stores a cell that has run. Once all cells together exceed most bytes, none is stored.
func (k *entry) remember(cell sandbox.Call, result sandbox.Result, most int) {
	k.bytes += perCell + len(cell.Code) + len(cell.Stdin)
	for _, f := range cell.Files {
		k.bytes += len(f.Content)
	}
	if k.bytes > most {
		k.cells = nil
		return
	}
	k.cells = append(k.cells, ranCell{cell: cell, digest: digestOf(result)})
}

// reopen starts an interpreter and restores the session's state in it by replaying the cells. If it sets over, the
// session is lost for good. It needs the turn.
func (p *Pool) reopen(ctx context.Context, k *entry) error {
	if k.bytes > p.settings.Replay {
		return p.lose(k, fmt.Errorf("%w: its cells have %d bytes, at most %d are kept to be run again",
			sandbox.ErrSessionLost, k.bytes, p.settings.Replay))
	}
	if err := p.places.take(ctx, p); err != nil {
		return fmt.Errorf("await place for session: %w", err)
	}
	session, err := p.sessions.OpenSession(ctx, k.packages, k.limits)
	if err != nil {
		p.places.free(p)
		return fmt.Errorf("open session: %w", err)
	}
	k.session = session
	p.mu.Lock()
	p.counts.Opened++
	if len(k.cells) > 0 {
		p.counts.Replays++
	}
	p.mu.Unlock()
	for i, c := range k.cells {
		result, err := session.Run(ctx, c.cell)
		if errors.Is(err, sandbox.ErrSessionEnded) {
			return p.lose(k, &Difference{Cell: k.before + i + 1, What: "found it ended"})
		}
		if err != nil {
			return fmt.Errorf("run cell %d again: %w", k.before+i+1, err)
		}
		if what := c.digest.difference(digestOf(result)); what != "" {
			return p.lose(k, &Difference{Cell: k.before + i + 1, What: what})
		}
	}
	return nil
}

// lose ends the session for good.
func (p *Pool) lose(k *entry, why error) error {
	p.drop(k)
	k.over = why
	p.mu.Lock()
	p.counts.Lost++
	p.mu.Unlock()
	return k.over
}
