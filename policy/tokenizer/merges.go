package tokenizer

import "sync"

// pair is two tokens that follow each other.
type pair struct{ left, right int32 }

// merges are the merges of a byte-level BPE, in order: the merge with rank r makes the token byteTokens+r.
type merges struct {
	pairs []pair
	rank  map[pair]int32

	mu    sync.RWMutex
	words map[string][]int32 // ids of words that were split before
}

// wordsKept bounds the words whose ids are remembered. longestKept bounds their length in bytes.
const (
	wordsKept   = 1 << 16
	longestKept = 64
)

func newMerges(pairs []pair) *merges {
	m := &merges{pairs: pairs, rank: make(map[pair]int32, len(pairs)), words: map[string][]int32{}}
	for i, p := range pairs {
		m.rank[p] = int32(i)
	}
	return m
}

// encode appends the ids of a text without added tokens.
func (m *merges) encode(ids []int32, text string) []int32 {
	for len(text) > 0 {
		n := wordLength(text)
		ids = append(ids, m.word(text[:n])...)
		text = text[n:]
	}
	return ids
}

func (m *merges) word(text string) []int32 {
	if len(text) > longestKept {
		return m.split(text)
	}
	m.mu.RLock()
	ids, ok := m.words[text]
	m.mu.RUnlock()
	if ok {
		return ids
	}
	ids = m.split(text)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.words) >= wordsKept {
		clear(m.words)
	}
	m.words[text] = ids
	return ids
}

// split applies the merges to one word: always the earliest merge that fits, leftmost first.
func (m *merges) split(text string) []int32 {
	if len(text) > longestKept {
		return m.splitLong(text)
	}
	ids := make([]int32, len(text))
	for i := range len(text) {
		ids[i] = int32(text[i])
	}
	for len(ids) > 1 {
		best, at := int32(len(m.pairs)), -1
		for i := range len(ids) - 1 {
			if r, ok := m.rank[pair{ids[i], ids[i+1]}]; ok && r < best {
				best, at = r, i
			}
		}
		if at < 0 {
			break
		}
		ids[at] = byteTokens + best
		ids = append(ids[:at+1], ids[at+2:]...)
	}
	return ids
}
