package tokenizer

import (
	"strings"
	"sync"
)

// pair is two tokens that follow each other.
type pair struct{ left, right int32 }

// merge is what a pair becomes. The merge with the lowest rank is applied first.
type merge struct{ rank, id int32 }

// merges are the merges of a byte-level BPE, in order.
type merges struct {
	pairs []pair
	rank  map[pair]merge
	// start is the token of each byte, or −1 for a byte that the vocabulary lacks; encoding leaves such a byte out.
	start [byteTokens]int32
	// whole holds words that are one token whatever the merges make of them; most vocabularies have none.
	whole map[string]int32
	// length is the length of a text's first word.
	length func(text string) int
	// digits says that every digit is a word, and that the text between digits is split on its own.
	digits bool

	mu    sync.RWMutex
	words map[string][]int32 // ids of words that were split before
}

// wordsKept bounds the words whose ids are remembered. longestKept bounds their length in bytes.
const (
	wordsKept   = 1 << 16
	longestKept = 64
)

// newMerges returns the merges of a vocabulary of the byte tokens and one token for each merge, in order.
func newMerges(pairs []pair) *merges {
	m := &merges{pairs: pairs, rank: make(map[pair]merge, len(pairs)), words: map[string][]int32{}, length: wordLength}
	for i, p := range pairs {
		m.rank[p] = merge{int32(i), byteTokens + int32(i)}
	}
	for b := range m.start {
		m.start[b] = int32(b)
	}
	return m
}

// encode appends the ids of a text without added tokens.
func (m *merges) encode(ids []int32, text string) []int32 {
	for len(text) > 0 {
		part := len(text)
		if m.digits {
			part = untilDigit(text)
		}
		for rest := text[:part]; len(rest) > 0; {
			n := m.length(rest)
			ids = append(ids, m.word(rest[:n])...)
			rest = rest[n:]
		}
		text = text[part:]
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
	text = strings.Clone(text) // a key must not keep the whole text in memory
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
	if id, ok := m.whole[text]; ok {
		return []int32{id}
	}
	if len(text) > longestKept {
		return m.splitLong(text)
	}
	ids := m.bytes(text)
	for len(ids) > 1 {
		best, at := merge{rank: int32(len(m.pairs))}, -1
		for i := range len(ids) - 1 {
			if r, ok := m.rank[pair{ids[i], ids[i+1]}]; ok && r.rank < best.rank {
				best, at = r, i
			}
		}
		if at < 0 {
			break
		}
		ids[at] = best.id
		ids = append(ids[:at+1], ids[at+2:]...)
	}
	return ids
}

// bytes returns the tokens of a text's bytes.
func (m *merges) bytes(text string) []int32 {
	ids := make([]int32, 0, len(text))
	for i := range len(text) {
		if id := m.start[text[i]]; id >= 0 {
			ids = append(ids, id)
		}
	}
	return ids
}
