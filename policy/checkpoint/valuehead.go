package checkpoint

// A critic's folder is a policy's folder and value_head.safetensors beside it: the model's own file stays what
// transformers loads, its lm_head included. The head's moments are in optimizer.safetensors like all others.

// valueHead lists the head's tensors: the value of a state is weight·x + bias, x the finally normed hidden state.
func (s Shape) valueHead() []Tensor {
	return []Tensor{{Name: NameValueWeight, Dims: []int{1, s.Hidden}}, {Name: NameValueBias, Dims: []int{1}}}
}

// AddValueHead makes a critic of a policy, and leaves what has a head as it is. The head begins at 0, so that
// the first values are 0 and not the noise of a random head: before the critic has learnt anything, advantages
// are the returns themselves. Nothing is stuck there: the head's own gradient does not vanish at 0, and the
// layers below learn from the second step on. The optimiser's state is dropped, being that of another loss.
func (c *Checkpoint) AddValueHead() {
	if c.Shape.ValueHead {
		return
	}
	c.Shape.ValueHead = true
	for _, t := range c.Shape.valueHead() {
		t.Data = make([]float32, t.Size())
		c.Weights = append(c.Weights, t)
	}
	c.Optimizer = nil
}
