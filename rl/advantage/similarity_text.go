package advantage

import "unicode/utf8"

// The form of a string that Ratcliff–Obershelp works on: numbered code points, and the places of each. The index
// implements autojunk: it leaves out code points that may not start a block.

// Autojunk's constants.
const (
	junkLength = 200 // least length of b for which autojunk applies
	junkShare  = 100
)

// text is a string as code points, numbered by a matcher's alphabet.
type text struct {
	codes  []int32
	counts *[countBuckets]int32 // for the bounds; made when first needed
	index  *index               // for matching as second string; made when first needed
}

// index holds the places of each code in a text: places[start[c]:start[c+1]] for code c, ascending.
// Codes that may not start a block have no places.
type index struct {
	start  []int32
	places []int32
}

// encode numbers the code points of s. Texts of one matcher may be compared.
func (m *matcher) encode(s string) *text {
	codes := make([]int32, 0, len(s))
	for _, c := range s {
		if c < utf8.RuneSelf && m.ascii[c] > 0 {
			codes = append(codes, m.ascii[c]-1)
			continue
		}
		code, ok := m.alphabet[c]
		if !ok {
			code = int32(len(m.alphabet))
			m.alphabet[c] = code
		}
		if c < utf8.RuneSelf {
			m.ascii[c] = code + 1
		}
		codes = append(codes, code)
	}
	return &text{codes: codes}
}

// build makes a text's index.
func (m *matcher) build(t *text) {
	n := len(m.alphabet)
	counts := make([]int32, n)
	for _, c := range t.codes {
		counts[c]++
	}
	if len(t.codes) >= junkLength && !m.settings.NoAutojunk {
		most := int32(len(t.codes)/junkShare + 1)
		for c := range counts {
			if counts[c] > most {
				counts[c] = 0
			}
		}
	}
	start, total := make([]int32, n+1), int32(0)
	for c, k := range counts {
		start[c] = total
		total += k
	}
	start[n] = total
	places, next := make([]int32, total), append([]int32(nil), start[:n]...)
	for j, c := range t.codes {
		if counts[c] > 0 {
			places[next[c]] = int32(j)
			next[c]++
		}
	}
	t.index = &index{start, places}
}

// positionsOf returns the places of a code. The code may have been numbered after the index was built.
func (x *index) positionsOf(code int32) []int32 {
	if int(code)+1 >= len(x.start) {
		return nil
	}
	return x.places[x.start[code]:x.start[code+1]]
}
