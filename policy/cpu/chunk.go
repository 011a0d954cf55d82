package cpu

// chunkTokens is the target size of a chunk. A longer sequence is a chunk of its own.
const chunkTokens = 512

// chunk is a run of whole sequences, packed.
type chunk struct {
	tokens []int32
	start  []int // start[i] is where sequence i begins; one more entry ends the last
	row    []int // row[i] is the request's row of sequence i
}

func (c *chunk) len() int { return len(c.tokens) }

// longest is the length of the longest sequence.
func (c *chunk) longest() int {
	n := 0
	for i := range c.row {
		n = max(n, c.start[i+1]-c.start[i])
	}
	return n
}

// packChunks packs the sequences of the given rows, in that order.
func packChunks(seqs [][]int32, rows []int) []*chunk {
	var out []*chunk
	var c *chunk
	for _, r := range rows {
		if c == nil || c.len()+len(seqs[r]) > chunkTokens {
			c = &chunk{start: []int{0}}
			out = append(out, c)
		}
		c.tokens = append(c.tokens, seqs[r]...)
		c.start = append(c.start, len(c.tokens))
		c.row = append(c.row, r)
	}
	return out
}

// deal assigns n rows to parts, in order, so that all parts cost nearly the same: row i goes to the part in whose share
// of the total cost the middle of its own cost falls.
func deal(cost []int, parts int) [][]int {
	total := 0
	for _, c := range cost {
		total += c
	}
	out := make([][]int, parts)
	at := 0
	for i, c := range cost {
		p := min(parts*(2*at+c)/(2*max(total, 1)), parts-1)
		out[p] = append(out[p], i)
		at += c
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
