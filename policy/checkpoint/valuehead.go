package checkpoint

// A critic's folder is a policy's folder plus value_head.state. The model's own file stays loadable by transformers,
// including its lm_head. The head's moments are in optimizer.state with all other moments.

// valueHead lists the head's tensors. The value of a state is weight·x + bias, where x is the hidden state after the
// final norm.
func (s Shape) valueHead() []Tensor {
	return []Tensor{{Name: NameValueWeight, Dims: []int{1, s.Hidden}}, {Name: NameValueBias, Dims: []int{1}}}
}

// AddValueHead turns a policy into a critic. It does not change a checkpoint that already has a head. The head starts
// at 0, so that the first values are 0 and not the noise of a random head: advantages are then the returns themselves
// until the critic has learnt something. The head can learn, because its own gradient does not vanish at 0; the layers
// below learn from the second step on. AddValueHead drops the optimiser's state, which belongs to another loss.
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
