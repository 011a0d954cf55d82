package advantage

import "unicode/utf8"

// Ratcliff–Obershelp similarity (Ratcliff & Metzener 1988) as Python's difflib computes it, over code
// points:
//
//	ratio(a, b) = 2M/(|a| + |b|)
//
// M counts the code points in matching blocks: the longest common substring (among equally long ones the
// first in a, then in b), then, recursively, those to the left and to the right of it. Two empty strings
// have ratio 1. ratio(a, b) and ratio(b, a) may differ. Departures: none from difflib. That includes
// "autojunk": if |b| ≥ 200, a code point that occurs more than ⌊|b|/100⌋ + 1 times in b starts no block,
// though it may lengthen one. So long texts that differ little may score lower than expected. NoAutojunk
// turns this off. Bytes that are not UTF-8 count as U+FFFD.

// RatcliffObershelp is the similarity; the zero value is difflib's.
type RatcliffObershelp struct {
	NoAutojunk bool
}

// Ratio returns the similarity of a and b, in [0, 1].
func (r RatcliffObershelp) Ratio(a, b string) float64 {
	m := newMatcher(r)
	return m.ratio(m.encode(a), m.encode(b))
}

// matcher compares texts. It holds scratch space, so only one goroutine may use it at a time.
type matcher struct {
	settings RatcliffObershelp
	alphabet map[rune]int32
	ascii    [utf8.RuneSelf]int32 // the alphabet's small codes + 1

	cells []cell
	stamp int32 // of the row of cells last written
	stack []region

	marked *text    // whose places masks holds, for lcs
	masks  []uint64 // code c's bits are the words from c·⌈|marked|/64⌉ on
	row    []uint64
}

// cell holds the length of the common substring that ends at a place of b and the row of a, as
// stamped; a cell with another stamp is 0.
type cell struct{ stamp, length int32 }

// region is a part of both texts that has yet to be matched.
type region struct{ aFrom, aTo, bFrom, bTo int }

func newMatcher(r RatcliffObershelp) *matcher {
	return &matcher{settings: r, alphabet: map[rune]int32{}}
}

// ratio is Ratio of two texts.
func (m *matcher) ratio(a, b *text) float64 {
	return diceRatio(m.matches(a, b), a, b)
}

// diceRatio returns 2M/(|a|+|b|). It grows with M in floating point too, so a bound on M is a bound on the ratio.
func diceRatio(matches int, a, b *text) float64 {
	total := len(a.codes) + len(b.codes)
	if total == 0 {
		return 1
	}
	return 2 * float64(matches) / float64(total)
}

// matches returns M.
func (m *matcher) matches(a, b *text) int {
	if b.index == nil {
		m.build(b)
	}
	if need := len(b.codes) + 1; len(m.cells) < need {
		m.cells, m.stamp = make([]cell, need), 0
	}
	total := 0
	m.stack = append(m.stack[:0], region{0, len(a.codes), 0, len(b.codes)})
	for len(m.stack) > 0 {
		r := m.stack[len(m.stack)-1]
		m.stack = m.stack[:len(m.stack)-1]
		i, j, k := m.longest(a.codes, b, r)
		if k == 0 {
			continue
		}
		total += k
		if r.aFrom < i && r.bFrom < j {
			m.stack = append(m.stack, region{r.aFrom, i, r.bFrom, j})
		}
		if i+k < r.aTo && j+k < r.bTo {
			m.stack = append(m.stack, region{i + k, r.aTo, j + k, r.bTo})
		}
	}
	return total
}

// longest returns the first longest block of a region, a[i:i+k] = b[j:j+k].
func (m *matcher) longest(a []int32, b *text, r region) (i, j, k int) {
	i, j, k = m.seed(a, b.index, r)
	if k == 0 { // difflib lengthens an empty block too, from the region's start
		i, j = r.aFrom, r.bFrom
	}
	for i > r.aFrom && j > r.bFrom && a[i-1] == b.codes[j-1] {
		i, j, k = i-1, j-1, k+1
	}
	for i+k < r.aTo && j+k < r.bTo && a[i+k] == b.codes[j+k] {
		k++
	}
	return i, j, k
}

// seed returns the first longest block of codes that may start one: by the row of a in which it
// ends, then by its place in b.
func (m *matcher) seed(a []int32, b *index, r region) (i, j, k int) {
	if m.stamp > 1<<30 {
		clear(m.cells)
		m.stamp = 0
	}
	m.stamp++ // a gap: the first row must not continue another region's last
	for row := r.aFrom; row < r.aTo; row++ {
		m.stamp++
		best := k
		places := b.positionsOf(a[row])
		// Downwards, so that a place still sees its left neighbour as the row before left it.
		for p := len(places) - 1; p >= 0; p-- {
			at := int(places[p])
			if at >= r.bTo {
				continue
			}
			if at < r.bFrom {
				break
			}
			length := int32(1)
			if left := m.cells[at]; left.stamp == m.stamp-1 {
				length += left.length
			}
			m.cells[at+1] = cell{m.stamp, length}
			// The least place of the row wins among equals, the first row among rows.
			if n := int(length); n > best && n >= k {
				i, j, k = row-n+1, at-n+1, n
			}
		}
	}
	return i, j, k
}
