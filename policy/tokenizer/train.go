package tokenizer

import (
	"bytes"
	"cmp"
	"container/heap"
	"fmt"
	"maps"
	"slices"
)

// Train makes a byte-level BPE tokenizer (Sennrich et al. 2016, over bytes as in Radford et al. 2019) of at most so
// many ids: the bytes, merged tokens, then the added tokens. It merges the pair of tokens that is most frequent within
// the words of the texts, again and again; of equally frequent pairs the one with the smaller bytes. Added tokens
// separate words. It stops early if no pair occurs twice. Equal arguments give equal tokenizers, and the order of the
// texts does not matter.
func Train(added, texts []string, vocabulary int) (*Tokenizer, error) {
	plain, err := New(added)
	if err != nil {
		return nil, err
	}
	most := vocabulary - plain.VocabSize()
	if most < 0 {
		return nil, fmt.Errorf("train a tokenizer of %d ids: bytes and fixed strings alone are %d", vocabulary,
			plain.VocabSize())
	}
	t := newTrainer(plain.count(texts))
	for _, s := range added {
		t.made[s] = true
	}
	for len(t.pairs) < most && t.merge() {
	}
	return newTokenizer(added, t.pairs)
}

// count counts the words of texts, without added tokens.
func (t *Tokenizer) count(texts []string) map[string]int {
	counts := map[string]int{}
	for _, text := range texts {
		t.segments(text, func(plain string, _ int32) {
			for _, w := range wordsOf(plain) {
				counts[w]++
			}
		})
	}
	return counts
}

// trainer is the state of training.
type trainer struct {
	words  [][]int32
	counts []int
	pairs  []pair               // merges so far
	pieces [][]byte             // of each id
	of     map[pair]int         // how often each pair occurs
	in     map[pair]map[int]int // the words that it occurs in; a word may have lost it
	made   map[string]bool      // the tokens so far, as bytes
	queue  queue[frequency]
}

func newTrainer(counts map[string]int) *trainer {
	t := &trainer{of: map[pair]int{}, in: map[pair]map[int]int{}, made: map[string]bool{}}
	for b := range byteTokens {
		t.pieces = append(t.pieces, []byte{byte(b)})
	}
	for i, w := range slices.Sorted(maps.Keys(counts)) {
		ids := make([]int32, len(w))
		for k := range len(w) {
			ids[k] = int32(w[k])
		}
		t.words, t.counts = append(t.words, ids), append(t.counts, counts[w])
		t.add(i, 1)
	}
	for p, n := range t.of {
		t.queue = append(t.queue, t.entry(p, n))
	}
	heap.Init(&t.queue)
	return t
}

// add adds a word's pairs to the counts, or takes them away if sign is −1. It returns the pairs.
func (t *trainer) add(word, sign int) []pair {
	ids := t.words[word]
	var changed []pair
	for i := range len(ids) - 1 {
		p := pair{ids[i], ids[i+1]}
		t.of[p] += sign * t.counts[word]
		if t.in[p] == nil {
			t.in[p] = map[int]int{}
		}
		t.in[p][word] += sign
		changed = append(changed, p)
	}
	return changed
}

// merge makes the next merge and reports whether there was one. It passes over a merge that would make a token a second
// time: tokenizer.json names tokens by their bytes.
func (t *trainer) merge() bool {
	for t.queue.Len() > 0 {
		top := heap.Pop(&t.queue).(frequency)
		if t.of[top.pair] != top.n {
			continue // it is there again with its new count
		}
		if top.n < 2 {
			return false
		}
		if t.made[string(top.left)+string(top.right)] {
			continue
		}
		t.apply(top.pair)
		return true
	}
	return false
}

func (t *trainer) apply(p pair) {
	id := int32(byteTokens + len(t.pairs))
	t.pairs = append(t.pairs, p)
	piece := slices.Concat(t.pieces[p.left], t.pieces[p.right])
	t.pieces, t.made[string(piece)] = append(t.pieces, piece), true
	changed := map[pair]bool{}
	for word, times := range t.in[p] {
		if times == 0 {
			continue
		}
		for _, q := range t.add(word, -1) {
			changed[q] = true
		}
		t.words[word] = replace(t.words[word], p, id)
		for _, q := range t.add(word, 1) {
			changed[q] = true
		}
	}
	delete(t.in, p)
	delete(t.of, p)
	for q := range changed {
		if n := t.of[q]; n > 0 && q != p {
			heap.Push(&t.queue, t.entry(q, n))
		}
	}
}

// replace puts id in the place of each pair, from the left.
func replace(ids []int32, p pair, id int32) []int32 {
	out := ids[:0]
	for i := 0; i < len(ids); i++ {
		if i+1 < len(ids) && ids[i] == p.left && ids[i+1] == p.right {
			out = append(out, id)
			i++
			continue
		}
		out = append(out, ids[i])
	}
	return out
}

func (t *trainer) entry(p pair, n int) frequency {
	return frequency{pair: p, n: n, left: t.pieces[p.left], right: t.pieces[p.right]}
}

// frequency is how often a pair occurred when it was put into the heap.
type frequency struct {
	pair
	n     int
	left  []byte
	right []byte
}

// before puts the most frequent pair first, then the one with the smaller bytes.
//
//lint:ignore U1000 queue calls it
func (f frequency) before(g frequency) bool {
	return cmp.Or(cmp.Compare(g.n, f.n), bytes.Compare(f.left, g.left), bytes.Compare(f.right, g.right)) < 0
}
