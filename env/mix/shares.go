package mix

import (
	"math"
	"math/bits"

	"github.com/ropewalk/ropewalk/internal/seed"
)

// shares divides consecutive places among parts. After any number of places, each part has had its share of them,
// rounded up or down once for each part before it. The division needs no memory: place k belongs to the first part if
// ⌊(k+1)·w + u⌋ > ⌊k·w + u⌋, for its share w and an offset u in [0, 1). Otherwise the places that are left, counted
// from 0, are divided among the other parts in the same way. All numbers are integers, so every machine divides alike.
type shares struct {
	widths  []uint64 // of each part, in units of 1/whole of the places
	offsets []uint64 // of each part but the last, in units of 1/(what is left before the part)
}

// whole is the sum of the widths.
const whole = 1 << 32

// divide makes the shares of weights. Different seeds give the parts different places.
func divide(weights []float64, runSeed uint64) shares {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	s := shares{widths: make([]uint64, len(weights)), offsets: make([]uint64, len(weights))}
	end, before := 0.0, uint64(0)
	for i, w := range weights {
		end += w
		at := uint64(math.Round(end / sum * whole))
		if i == len(weights)-1 {
			at = whole
		}
		s.widths[i], before = at-before, at
	}
	left := uint64(whole)
	for i, w := range s.widths {
		if left > 0 {
			s.offsets[i] = seed.Derive("mix", runSeed, uint64(i)) % left
		}
		left -= w
	}
	return s
}

// at returns the part that a place belongs to, and how many earlier places belong to the same part.
func (s shares) at(place int) (part, index int) {
	k, left := uint64(place), uint64(whole)
	last := len(s.widths) - 1
	for i, w := range s.widths[:last] {
		before := s.count(i, k, left)
		if s.count(i, k+1, left) > before {
			return i, int(before)
		}
		k, left = k-before, left-w
	}
	return last, int(k)
}

// count returns how many of the first k places that are left for a part and those after it belong to the part.
func (s shares) count(part int, k, left uint64) uint64 {
	high, low := bits.Mul64(k, s.widths[part])
	low, carry := bits.Add64(low, s.offsets[part], 0)
	n, _ := bits.Div64(high+carry, low, left)
	return n
}

// draw returns the part of a random number.
func (s shares) draw(random uint64) int {
	random %= whole
	for i, w := range s.widths {
		if random < w {
			return i
		}
		random -= w
	}
	return len(s.widths) - 1
}
