package servers

// mostPlaces bounds the sequences that are remembered, in each of two halves.
const mostPlaces = 1 << 16

// places remembers which server has generated the end of which sequence, so that a turn that continues the sequence is
// asked of the server that has it in its cache. A hash stands for a sequence: two that share one cost time and nothing
// else. The older half is forgotten when the newer one is full.
type places struct{ now, before map[uint64]int }

// hashed extends the hash of a sequence by one token.
func hashed(h uint64, id int32) uint64 {
	h = (h ^ uint64(uint32(id))) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// find returns the server that has the longest beginning of a prefix and how many tokens of it it has, and the prefix's
// hash. Of no beginning it returns 0 tokens.
func (p *places) find(prefix []int32) (server, tokens int, hash uint64) {
	for i, id := range prefix {
		hash = hashed(hash, id)
		at, there := p.now[hash]
		if !there {
			at, there = p.before[hash]
		}
		if there {
			server, tokens = at, i+1
		}
	}
	return server, tokens, hash
}

// put remembers the server of a sequence: a prefix, by its hash, and the tokens after it.
func (p *places) put(server int, hash uint64, tokens []int32) {
	for _, id := range tokens {
		hash = hashed(hash, id)
	}
	if len(p.now) >= mostPlaces {
		p.before, p.now = p.now, nil
	}
	if p.now == nil {
		p.now = map[uint64]int{}
	}
	p.now[hash] = server
}
