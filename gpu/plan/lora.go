package plan

// Adapter is a low-rank adapter of each target projection in each layer.
type Adapter struct {
	Rank    int
	Targets []string
}

// AdapterParams counts the adapter's numbers: rank times both sides of each target, in each layer.
func (m Model) AdapterParams(a Adapter) int64 {
	q, kv := int64(m.Heads*m.HeadDim), int64(m.KVHeads*m.HeadDim)
	sides := map[string]int64{
		"q_proj": q, "k_proj": kv, "v_proj": kv, "o_proj": q, "gate_proj": int64(m.FFN), "up_proj": int64(m.FFN),
		"down_proj": int64(m.FFN),
	}
	var sum int64
	for _, t := range a.Targets {
		sum += int64(m.Hidden) + sides[t]
	}
	return int64(m.Layers) * int64(a.Rank) * sum
}

// AdapterTrainFlops is TrainFlops if only the adapter trains. The base weights then have no gradient, which saves a
// third of their cost.
func (m Model) AdapterTrainFlops(a Adapter, lengths ...int) float64 {
	tokens := 0.0
	for _, n := range lengths {
		tokens += float64(n)
	}
	return m.TrainFlops(lengths...) + tokens*(6*float64(m.AdapterParams(a))-2*float64(m.matmulParams()))
}
