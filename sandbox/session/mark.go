package session

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/ropewalk/ropewalk/sandbox"
)

// mark identifies a cell that has run: the cell, and the recorded part of its result.
type mark struct {
	cell   string
	result digest
}

func markOf(cell sandbox.Call, result sandbox.Result) mark { return mark{cell.Key(), recorded(result)} }

type sum [sha256.Size]byte

// digest holds the digests of a result's fields separately, so that a difference can be named.
type digest struct{ status, stdout, stderr, value sum }

// recorded returns the digest of the part of a result that a record contains.
func recorded(r sandbox.Result) digest {
	return digest{
		status: sha256.Sum256(binary.LittleEndian.AppendUint64([]byte(r.Status), uint64(int64(r.ExitCode)))),
		stdout: sha256.Sum256([]byte(r.Stdout)),
		stderr: sha256.Sum256([]byte(r.Stderr)),
		value:  sha256.Sum256([]byte(r.Value)),
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
	}
	return ""
}
