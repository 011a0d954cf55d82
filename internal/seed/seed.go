// Package seed derives every random stream of a run from its coordinates, so that a sample's draws depend only on (run
// seed, step, group, sample, turn) and never on what ran before it.
package seed

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
)

// Derive returns the seed of the stream that label and the coordinates name. Distinct labels or
// coordinates give independent seeds.
func Derive(label string, coordinates ...uint64) uint64 {
	h := sha256.New()
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(len(label)))
	h.Write(b[:])
	h.Write([]byte(label))
	for _, c := range coordinates {
		binary.LittleEndian.PutUint64(b[:], c)
		h.Write(b[:])
	}
	return binary.LittleEndian.Uint64(h.Sum(nil))
}

// Rand returns a generator for the stream that label and the coordinates name.
func Rand(label string, coordinates ...uint64) *rand.Rand {
	s := Derive(label, coordinates...)
	return rand.New(rand.NewPCG(s, Derive("pcg-increment", s)))
}
