package cpu

import (
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// param is one tensor's place in the flat parameter vector.
type param struct {
	name   string
	lo, hi int
	decay  bool // whether weight decay applies: matrices yes, norms and biases no
	frozen bool // whether Step leaves it alone: a critic's output head, which no value depends on
}

// model is the weights of one role in one flat vector.
type model[T float] struct {
	shape  checkpoint.Shape
	params []param
	flat   []T
	w      weights[T]
	f      factors[T]
	rope   rope[T]
}

// weights are views into a flat vector shaped like the parameters: the weights or a gradient.
type weights[T float] struct {
	embed  []T // V×H
	layers []layerWeights[T]
	norm   []T // H
	head   []T // V×H, the same memory as embed when tied
	value  []T // H, then the bias; nil without a value head
}

type layerWeights[T float] struct {
	norm1 []T // H
	qkv   []T // (Q+2K)×H
	bias  []T // Q+2K, added to queries, keys and values; nil without biases
	normQ []T // D; nil if heads are not normed
	normK []T // D; nil if heads are not normed
	out   []T // H×Q
	norm2 []T // H
	gu    []T // 2F×H: gate, then up
	down  []T // H×F
}

// newModel reads the checkpoint's weights into its own memory.
func newModel[T float](c *checkpoint.Checkpoint) (*model[T], error) {
	m := &model[T]{shape: c.Shape}
	at := 0
	for _, t := range c.Weights {
		frozen := c.Shape.ValueHead && t.Name == checkpoint.NameHead
		m.params = append(
			m.params, param{name: t.Name, lo: at, hi: at + t.Size(), decay: len(t.Dims) > 1, frozen: frozen},
		)
		at += t.Size()
	}
	m.flat = allocated[T](at)
	for i, t := range c.Weights {
		if err := readInto(m.flat[m.params[i].lo:m.params[i].hi], t); err != nil {
			return nil, err
		}
	}
	m.w = view(c.Shape, m.flat)
	m.f = newFactors(&m.w, m.dims())
	m.rope = rope[T]{dim: c.Shape.HeadDim}
	m.rope.perPosition, m.rope.factor = c.Shape.RopeFrequencies()
	return m, nil
}

// readInto converts a tensor's numbers, a piece at a time.
func readInto[T float](dst []T, t checkpoint.Tensor) error {
	return t.Read(func(at int, numbers []float32) { copyFloats(dst[at:], numbers) })
}

// view cuts flat, laid out as Shape.Tensors says, into its matrices.
func view[T float](s checkpoint.Shape, flat []T) weights[T] {
	take := func(n int) []T {
		v := flat[:n:n]
		flat = flat[n:]
		return v
	}
	q, k := s.Heads*s.HeadDim, s.KVHeads*s.HeadDim
	w := weights[T]{embed: take(s.Vocab * s.Hidden)}
	for range s.Layers {
		l := layerWeights[T]{norm1: take(s.Hidden), qkv: take((q + 2*k) * s.Hidden)}
		if s.BiasesQKV() {
			l.bias = take(q + 2*k)
		}
		if s.NormsHeads() {
			l.normQ, l.normK = take(s.HeadDim), take(s.HeadDim)
		}
		l.out, l.norm2 = take(s.Hidden*q), take(s.Hidden)
		l.gu, l.down = take(2*s.FFN*s.Hidden), take(s.Hidden*s.FFN)
		w.layers = append(w.layers, l)
	}
	w.norm = take(s.Hidden)
	w.head = w.embed
	if s.Untied {
		w.head = take(s.Vocab * s.Hidden)
	}
	if s.ValueHead {
		w.value = take(s.Hidden + 1)
	}
	return w
}

func copyFloats[T, U float](dst []T, src []U) {
	for i, v := range src {
		dst[i] = T(v)
	}
}

// dims are the widths used throughout.
type dims struct{ H, Q, K, D, F, V int }

func (m *model[T]) dims() dims {
	s := m.shape
	return dims{H: s.Hidden, Q: s.Heads * s.HeadDim, K: s.KVHeads * s.HeadDim, D: s.HeadDim, F: s.FFN, V: s.Vocab}
}
