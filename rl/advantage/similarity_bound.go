package advantage

import "math/bits"

// Upper bounds on the number M of matching code points of Ratcliff–Obershelp, cheapest first. M never exceeds
// any of them, so a pair whose bound is below the threshold can be skipped without changing a result:
//
//	M ≤ min(|a|, |b|)                     the lengths
//	M ≤ Σ_c min(count_a(c), count_b(c))   the multisets, codes folded into buckets
//	M ≤ LCS(a, b)                         the blocks, in order, are a common subsequence
//
// The longest common subsequence is computed 64 code points at a time (Hyyrö 2004), much faster than M
// itself. It is close to M where texts are alike, and only there is the decision close.

// countBuckets is the number of counts that a text has. Codes that share a bucket only raise the bound; the
// alphabets of most observations fit without sharing.
const countBuckets = 128

// ratioAtLeast reports whether ratio(a, b) ≥ threshold.
func (m *matcher) ratioAtLeast(a, b *text, threshold float64) bool {
	for _, bound := range [...]func(a, b *text) int{lengthBound, countBound, m.lcs} {
		if diceRatio(bound(a, b), a, b) < threshold {
			return false
		}
	}
	return m.ratio(a, b) >= threshold
}

func lengthBound(a, b *text) int { return min(len(a.codes), len(b.codes)) }

// countBound compares the multisets of codes.
func countBound(a, b *text) int {
	x, y, sum := a.count(), b.count(), int32(0)
	for i := range x {
		sum += min(x[i], y[i])
	}
	return int(sum)
}

// count returns how often each bucket of codes occurs.
func (t *text) count() *[countBuckets]int32 {
	if t.counts == nil {
		t.counts = new([countBuckets]int32)
		for _, c := range t.codes {
			t.counts[c%countBuckets]++
		}
	}
	return t.counts
}

// lcs returns the length of the longest common subsequence. Bit i of the row turns 0 where a's prefix
// of i+1 codes has a longer one than its prefix of i; b's codes are taken one by one.
func (m *matcher) lcs(a, b *text) int {
	m.mark(a)
	words := (len(a.codes) + 63) / 64
	row := m.row[:words]
	for w := range row {
		row[w] = ^uint64(0)
	}
	for _, c := range b.codes {
		at := int(c) * words
		if at+words > len(m.masks) {
			continue // a code that does not occur in a
		}
		mask, carry := m.masks[at:at+words], uint64(0)
		for w, v := range row {
			var sum uint64
			sum, carry = bits.Add64(v, v&mask[w], carry)
			row[w] = sum | v&^mask[w]
		}
	}
	length := words * 64 // the bits past a's end stay 1, for no code occurs there
	for _, v := range row {
		length -= bits.OnesCount64(v)
	}
	return length
}

// mark sets, for each code, the bits of its places in a. One text is compared with many others, so the
// masks are kept until another text is marked.
func (m *matcher) mark(a *text) {
	if m.marked == a {
		return
	}
	if m.marked != nil {
		words := (len(m.marked.codes) + 63) / 64
		for _, c := range m.marked.codes {
			clear(m.masks[int(c)*words:][:words])
		}
	}
	words := (len(a.codes) + 63) / 64
	if need := len(m.alphabet) * words; len(m.masks) < need {
		m.masks = make([]uint64, need)
	}
	if len(m.row) < words {
		m.row = make([]uint64, words)
	}
	for i, c := range a.codes {
		m.masks[int(c)*words+i/64] |= 1 << (i % 64)
	}
	m.marked = a
}
