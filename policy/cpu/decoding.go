package cpu

import (
	"math/rand/v2"
	"sync/atomic"

	"github.com/ropewalk/ropewalk/policy"
)

// decoding is what rows that generate together share: the team, the caches, and one step for all of them.
type decoding[T float] struct {
	r      *resident[T]
	team   *team
	caches []cache[T] // [layer]
	memory []T        // of the caches
	live   []*liveRow
	s      states[T]
	taken  atomic.Int64 // what parts have taken of the present phase's work, one thing at a time
}

// liveRow is one row that still generates, with what it has generated.
type liveRow struct {
	row      int // of the request
	at       region
	cached   int // tokens whose keys and values are there
	rng      *rand.Rand
	sampling *sampling
	budget   int // of new tokens
	top      int // likeliest tokens to name at each position
	keep     int // first tokens whose likeliest ones are kept in tops; 0 = none, and every position has its likeliest

	tokens    []int32
	logProbs  []float32
	entropies []float32
	likeliest []policy.TokenLogProb // at the last position
	tops      [][]float32           // log-probabilities of the likeliest tokens, by position
	finish    policy.Finish
	ended     bool
	err       error // why it ended, if it is the row's fault
}

// sampling is how rows draw their tokens.
type sampling struct {
	temperature float64
	truncation  policy.Truncation
	stop        []int32
}

// newDecoding makes a decoding of a resident model with all that its steps need for sequences of a given length.
func newDecoding[T float](r *resident[T], longest int) (*decoding[T], error) {
	g := &decoding[T]{r: r, team: newTeam(len(r.workers))}
	r.model.rope.grow(longest)
	if r.own() {
		if err := r.model.f.pack(g.team); err != nil {
			g.team.stop()
			return nil, err
		}
	}
	return g, nil
}

// own reports whether products are computed by the own kernels.
func (r *resident[T]) own() bool {
	_, own := r.workers[0].mm.(*ownMatmul[T])
	return own
}

// tokenFloats is the number of floats that the caches hold for a token.
func (r *resident[T]) tokenFloats() int { return 2 * r.model.dims().K * r.model.shape.Layers }

// rowRandom is the source of a row's draws.
func rowRandom(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(stream, streamIncrement)) }

// streamIncrement is the second seed word of every row's PCG; the first is the row's stream.
const streamIncrement = 0x9E3779B97F4A7C15
