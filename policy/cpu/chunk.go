package cpu

// chunkTokens is the target size of a chunk. A longer sequence is its own chunk.
const chunkTokens = 512

// chunk is a run of whole sequences, packed. A *stem* is the beginning that several rows of a request share; it is a
// sequence of its own, before those rows' *leaves*, which continue it.
type chunk struct {
	tokens []int32
	start  []int // start[i] is where sequence i begins; one more entry ends the last
	row    []int // row[i] is the request's row of sequence i; −1 for a stem
	stem   []int // stem[i] is the sequence that sequence i continues; −1 for a whole sequence and for a stem
	// past[i] is the number of tokens of sequence i that precede the chunk and are in caches already; nil = none.
	// A chunk with a past has no stems.
	past []int
}

func (c *chunk) len() int { return len(c.tokens) }

// offset is the position of the first token of sequence i.
func (c *chunk) offset(i int) int {
	if c.past != nil {
		return c.past[i]
	}
	s := c.stem[i]
	if s < 0 {
		return 0
	}
	return c.start[s+1] - c.start[s]
}

// longest is the length of the longest sequence, leaves with their stems.
func (c *chunk) longest() int {
	n := 0
	for i := range c.row {
		n = max(n, c.offset(i)+c.start[i+1]-c.start[i])
	}
	return n
}

// add appends a sequence.
func (c *chunk) add(tokens []int32, row, stem int) {
	c.tokens = append(c.tokens, tokens...)
	c.start = append(c.start, len(c.tokens))
	c.row, c.stem = append(c.row, row), append(c.stem, stem)
}

// family is rows that share their first tokens, which are computed once, or a single row (shared is 0).
type family struct {
	rows   []int
	shared int
	cost   int // tokens, the shared ones counted once
}

// families groups the rows. shared[i] is the number of tokens at the beginning of row i whose outputs are not needed,
// or shared is nil. A family is at the place of its first row.
func families(seqs [][]int32, shared []int) []family {
	var out []family
	known := map[string]int{}
	var key []byte
	for i, s := range seqs {
		n := 0
		if shared != nil {
			n = shared[i] - 1 // the state of the last of them predicts the first token that is needed
		}
		if n > 0 {
			key = key[:0]
			for _, t := range s[:n] {
				key = append(key, byte(t), byte(t>>8), byte(t>>16), byte(t>>24))
			}
			if at, ok := known[string(key)]; ok {
				out[at].rows, out[at].cost = append(out[at].rows, i), out[at].cost+len(s)-n
				continue
			}
			known[string(key)] = len(out)
		}
		out = append(out, family{rows: []int{i}, shared: max(n, 0), cost: len(s)})
	}
	for i := range out {
		if len(out[i].rows) == 1 {
			out[i].shared = 0
		}
	}
	return out
}

// packChunks packs the families, in that order.
func packChunks(seqs [][]int32, all []family) []*chunk {
	var out []*chunk
	var c *chunk
	for _, f := range all {
		if c == nil || c.len()+f.cost > chunkTokens {
			c = &chunk{start: []int{0}}
			out = append(out, c)
		}
		stem := -1
		if f.shared > 0 {
			stem = len(c.row)
			c.add(seqs[f.rows[0]][:f.shared], -1, -1)
		}
		for _, r := range f.rows {
			c.add(seqs[r][f.shared:], r, stem)
		}
	}
	return out
}

// assignFamilies divides families among parts, in order, so that all parts cost nearly the same: a family goes to the
// part in whose share of the total cost the middle of its own cost falls.
func assignFamilies(all []family, parts int) [][]family {
	total := 0
	for _, f := range all {
		total += f.cost
	}
	out := make([][]family, parts)
	at := 0
	for _, f := range all {
		p := min(parts*(2*at+f.cost)/(2*max(total, 1)), parts-1)
		out[p] = append(out[p], f)
		at += f.cost
	}
	return out
}

// acts are the activations of one chunk.
type acts[T float] struct {
	layers []layerActs[T]
	out    []T // n×H, the residual stream after the last layer
}

type layerActs[T float] struct {
	x   []T // n×H, the layer's input
	qkv []T // n×(Q+2K), before norms and rotation
	att []T // n×Q, the attention's output
	lse []T // n×heads
	mid []T // n×H, the residual stream after attention
	gu  []T // n×2F
}

// actsSize is the length of the arena that newActs divides.
func (m *model[T]) actsSize(n int, keep bool) int {
	d := m.dims()
	layer := d.Q + 2*d.K + d.Q + m.shape.Heads + d.H + 2*d.F
	if !keep {
		return n * (2*d.H + layer)
	}
	return n * (m.shape.Layers*(layer+d.H) + d.H)
}

// newActs divides arena into the activations of n tokens. Without keep all layers share the same memory, and the
// residual stream alternates between two rows.
func (m *model[T]) newActs(arena []T, n int, keep bool) *acts[T] {
	d := m.dims()
	take := func(width int) []T {
		v := arena[: n*width : n*width]
		arena = arena[n*width:]
		return v
	}
	set := func() layerActs[T] {
		return layerActs[T]{
			qkv: take(d.Q + 2*d.K), att: take(d.Q), lse: take(m.shape.Heads), mid: take(d.H), gu: take(2 * d.F),
		}
	}
	a := &acts[T]{layers: make([]layerActs[T], m.shape.Layers), out: take(d.H)}
	var spare []T
	if !keep {
		a.layers[0], spare = set(), take(d.H)
	}
	for i := range a.layers {
		if keep {
			a.layers[i] = set()
			a.layers[i].x = take(d.H)
			continue
		}
		a.layers[i] = a.layers[0]
		a.layers[i].x, spare, a.out = a.out, a.out, spare
	}
	return a
}

// after is where layer i writes its output.
func (a *acts[T]) after(i int) []T {
	if i+1 < len(a.layers) {
		return a.layers[i+1].x
	}
	return a.out
}
