package curation

import (
	"crypto/sha256"
	"iter"
	"strings"

	"github.com/ropewalk/ropewalk/internal/refusal"
)

// gramSet are the n-grams of evaluation sets.
//
// Source: rStar2-Agent section 5.1 drops training problems that share an 8-gram with a problem of an evaluation set.
// Departure: a problem of fewer than n words has one gram, the whole problem, so that a short problem is found too. A
// gram is known by the first sixteen bytes of its SHA-256.
type gramSet struct {
	n     int
	most  int
	sets  []string
	grams map[[16]byte]int32 // place in sets of the first set that has it
}

// newGrams returns a set of n-grams that holds at most most of them.
func newGrams(n, most int) *gramSet { return &gramSet{n: n, most: most, grams: map[[16]byte]int32{}} }

// Add adds the n-grams of one problem of an evaluation set.
func (g *gramSet) Add(set, text string) error {
	if len(g.sets) == 0 || g.sets[len(g.sets)-1] != set {
		g.sets = append(g.sets, set)
	}
	at := int32(len(g.sets) - 1)
	for gram := range g.of(wordsOf(text)) {
		key := keyOf(gram)
		if _, there := g.grams[key]; !there {
			g.grams[key] = at
		}
	}
	if len(g.grams) > g.most {
		return refusal.Unusablef("data.decontaminate: the evaluation sets hold more than %d different %d-grams", g.most,
			g.n)
	}
	return nil
}

// Shared returns the first n-gram of the words that an evaluation set has, and the set's name. A nil set shares none.
func (g *gramSet) Shared(words []string) (gram, set string, found bool) {
	if g == nil {
		return "", "", false
	}
	for one := range g.of(words) {
		if at, there := g.grams[keyOf(one)]; there {
			return one, g.sets[at], true
		}
	}
	return "", "", false
}

// of yields each n-gram.
func (g *gramSet) of(words []string) iter.Seq[string] {
	n := min(g.n, len(words))
	return func(yield func(string) bool) {
		for i := 0; n > 0 && i+n <= len(words); i++ {
			if !yield(strings.Join(words[i:i+n], " ")) {
				return
			}
		}
	}
}

func keyOf(gram string) [16]byte {
	sum := sha256.Sum256([]byte(gram))
	return [16]byte(sum[:])
}
