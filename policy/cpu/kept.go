package cpu

import (
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/policy/cpu/sgemm"
)

// keptPrefix is a sequence whose keys and values are in the caches although no row needs them.
type keptPrefix struct {
	tokens []int32
	at     region
	used   int64 // the batch's clock when it was last of use
}

// common is the number of tokens with which both sequences begin.
func common(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// exact is the length up to which generation computes the same keys and values as the reading of a prefix, to the bit.
// Beyond it the attention of a generated token adds its products in another order. What is kept of a row must not
// change the tokens of later rows, so it ends there or with the row's prefix.
func (g *decoding[T]) exact() int {
	if g.caches[0].panels {
		return sgemm.BlockK
	}
	return math.MaxInt
}

// sequence returns the tokens of a row whose keys and values later rows may use.
func (b *batch[T]) sequence(r *batchRow[T]) []int32 {
	all := slices.Concat(r.prefix, r.tokens)
	return all[:min(r.cached, max(len(r.prefix), b.exact()))]
}

// shared is the number of tokens that a prefix has in common with what later rows may use of a row.
func (b *batch[T]) shared(r *batchRow[T], prefix []int32) int {
	n := common(r.prefix, prefix)
	if n == len(r.prefix) {
		n += common(r.tokens, prefix[n:])
	}
	return min(n, r.cached, max(len(r.prefix), b.exact()))
}

// longest finds the kept prefix or the row whose sequence has the most tokens in common with a prefix.
func (b *batch[T]) longest(prefix []int32) (n int, at region, kept *keptPrefix) {
	for _, k := range b.kept {
		if c := common(k.tokens, prefix); c > n {
			n, at, kept = c, k.at, k
		}
	}
	for _, rows := range [][]*batchRow[T]{b.waiting, b.joined} {
		for _, r := range rows {
			if r.cached <= n {
				continue
			}
			if c := b.shared(r, prefix); c > n {
				n, at, kept = c, r.at, nil
			}
		}
	}
	return n, at, kept
}

// touch notes that the kept prefix with the most tokens in common is of use.
func (b *batch[T]) touch(prefix []int32) {
	if _, _, kept := b.longest(prefix); kept != nil {
		b.clock++
		kept.used = b.clock
	}
}

// reuse copies to a new row's region what is there of its prefix. The last token is always computed, since its state
// is not kept.
func (b *batch[T]) reuse(r *batchRow[T]) error {
	n, from, kept := b.longest(r.prefix[:len(r.prefix)-1])
	if n < cacheBlock {
		return nil
	}
	if kept != nil {
		b.clock++
		kept.used = b.clock
	}
	d := b.r.model.dims()
	err := b.team.run(func(part int) error {
		for i := part; i < len(b.caches); i += b.team.parts {
			b.caches[i].copyRegion(r.at, from, n, d)
		}
		return nil
	})
	r.cached, r.reused = n, n
	return err
}

// room returns a region for the given number of tokens. If necessary it forgets kept prefixes, those first that have
// been of no use for the longest time.
func (b *batch[T]) room(tokens int) (region, bool) {
	for {
		if at, ok := b.pool.allocate(tokens); ok || len(b.kept) == 0 {
			return at, ok
		}
		oldest := 0
		for i, k := range b.kept {
			if k.used < b.kept[oldest].used {
				oldest = i
			}
		}
		b.forget(oldest)
	}
}

func (b *batch[T]) forget(i int) {
	b.pool.release(b.kept[i].at)
	b.kept = slices.Delete(b.kept, i, i+1)
}

// retire keeps the sequence of a row that leaves, unless another one includes it, and gives back the rest of its room.
func (b *batch[T]) retire(r *batchRow[T]) {
	tokens := b.sequence(r)
	for i := len(b.kept) - 1; i >= 0; i-- {
		switch c := common(b.kept[i].tokens, tokens); {
		case c == len(tokens):
			b.clock++
			b.kept[i].used = b.clock
			tokens = nil
		case c == len(b.kept[i].tokens):
			b.forget(i)
		}
		if tokens == nil {
			break
		}
	}
	if len(tokens) < cacheBlock || r.err != nil {
		b.pool.release(r.at)
		return
	}
	b.clock++
	k := &keptPrefix{tokens: tokens, at: r.at, used: b.clock}
	if roundUp(len(tokens)) < r.at.room {
		// A region's layout follows from its room, so that it cannot be cut.
		if at, ok := b.pool.allocate(len(tokens)); ok {
			for i := range b.caches {
				b.caches[i].copyRegion(at, r.at, len(tokens), b.r.model.dims())
			}
			b.pool.release(r.at)
			k.at = at
		}
	}
	b.kept = append(b.kept, k)
}
