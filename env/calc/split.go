package calc

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"sync"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/seed"
)

// heldOutOf is the number of problems of which one is held out.
const heldOutOf = 8

// IsHeldOut reports whether the problem with this id is held out from training.
func IsHeldOut(id string) bool {
	v, err := strconv.ParseUint(id, 16, 64)
	return err == nil && v%heldOutOf == 0
}

// heldout keeps the problems that were drawn, since readers of a run ask for them again and again.
var heldout struct {
	sync.Mutex
	problems []env.Task
	seen     map[string]bool // by name
}

// Heldout returns n distinct held-out problems, one third of each level, with alternating levels. They do not depend on
// a run's seed. A smaller n gives the beginning of the list of a larger n.
func Heldout(n int) ([]env.Task, error) {
	levels := MaxLevel - MinLevel + 1
	if n <= 0 || n%levels != 0 {
		return nil, fmt.Errorf("draw %d held-out problems: want a positive multiple of %d", n, levels)
	}
	heldout.Lock()
	defer heldout.Unlock()
	if heldout.seen == nil {
		heldout.seen = map[string]bool{}
	}
	for i := len(heldout.problems); i < n; i++ {
		level := MinLevel + i%levels
		rng := seed.Rand("calc held out", uint64(level), uint64(i/levels))
		p := Generate(rng, level)
		for !IsHeldOut(p.ID) || heldout.seen[p.ID] {
			p = Generate(rng, level)
		}
		heldout.seen[p.ID] = true
		heldout.problems = append(heldout.problems, p)
	}
	return slices.Clone(heldout.problems[:n]), nil
}

// Shares is the relative frequency of each level among problems. The shares need not sum to one.
type Shares map[int]float64

// ParseShares reads shares keyed by the level's number, as recipes write them.
func ParseShares(byName map[string]float64) (Shares, error) {
	shares := make(Shares, len(byName))
	for name, share := range byName {
		level, err := strconv.Atoi(name)
		if err != nil {
			return nil, fmt.Errorf("read level shares: level %q is not a number", name)
		}
		shares[level] = share
	}
	return shares, shares.Validate()
}

// EqualShares gives each of the levels the same share.
func EqualShares(levels ...int) Shares {
	shares := make(Shares, len(levels))
	for _, level := range levels {
		shares[level] = 1
	}
	return shares
}

// Validate checks levels and shares.
func (s Shares) Validate() error {
	total := 0.0
	for _, level := range s.levels() {
		if level < MinLevel || level > MaxLevel {
			return fmt.Errorf("read level shares: level %d is not in %d…%d", level, MinLevel, MaxLevel)
		}
		if !(s[level] >= 0) || s[level] > 1e9 {
			return fmt.Errorf("read level shares: share %g of level %d is not a chance", s[level], level)
		}
		total += s[level]
	}
	if total <= 0 {
		return fmt.Errorf("read level shares: no level has a positive share")
	}
	return nil
}

func (s Shares) levels() []int {
	levels := make([]int, 0, len(s))
	for level := range s {
		levels = append(levels, level)
	}
	sort.Ints(levels)
	return levels
}

func (s Shares) draw(rng *rand.Rand) int {
	levels, total := s.levels(), 0.0
	for _, level := range levels {
		total += s[level]
	}
	u := rng.Float64() * total
	chosen := 0
	for _, level := range levels {
		if s[level] <= 0 {
			continue
		}
		chosen = level
		if u -= s[level]; u < 0 {
			break
		}
	}
	return chosen
}

// Sample draws one problem that is not held out. The shares must be valid.
func Sample(rng *rand.Rand, shares Shares) env.Task {
	level := shares.draw(rng)
	for {
		if p := Generate(rng, level); !IsHeldOut(p.ID) {
			return p
		}
	}
}

// Training returns the prompt with the given index of a step, in the run with the given seed.
func Training(runSeed uint64, step, index int, shares Shares) env.Task {
	return Sample(seed.Rand("calc training", runSeed, uint64(step), uint64(index)), shares)
}
