package plan

// ProcessorMemory estimates an update on the CPU engine with the given number of threads, whose passes hold the given
// number of tokens at once. The optimiser keeps the given states of each number. All numbers are float32.
//
// A thread has its own gradient. A worker that also generates has a second engine for it, with the weights, and
// their matrices once more in the layout of its kernels. A layer keeps, per token, its input and the residual stream
// (2·H), queries, keys and values and what attention gives (2·Q + 2·K and a number for each head), and gate and up
// (2·F); policy/cpu recomputes everything else. Each thread has scratch memory for a chunk of 512 tokens (3·H + 4·Q +
// 4·K + 4·F a token, and an eighth to grow into). Logits exist in blocks of 4 MiB for each thread, and of 8 rows at
// least.
func (m Model) ProcessorMemory(tokens, threads, states int, generates bool) Memory {
	t := int64(max(1, threads))
	out := Memory{Weights: 4 * m.Params, Gradients: 4 * t * m.Params, Optimizer: 4 * int64(states) * m.Params}
	if generates {
		out.Weights += 4 * (m.Params + m.matmulParams())
	}
	q, k := int64(m.Heads*m.HeadDim), int64(m.KVHeads*m.HeadDim)
	layer := 2*int64(m.Hidden) + 2*q + 2*k + int64(m.Heads) + 2*int64(m.FFN)
	out.Activations = 4 * int64(tokens) * (int64(m.Layers)*layer + int64(m.Hidden))
	chunk := chunkTokens * (3*int64(m.Hidden) + 4*q + 4*k + 4*int64(m.FFN))
	out.Activations += 4 * t * (chunk + chunk/8)
	block := min(max(logitBlock/int64(m.Vocab), 8), 512)
	out.Head = 4 * t * block * int64(m.Vocab)
	return out
}

// chunkTokens is the number of tokens that a thread computes together (policy/cpu).
const chunkTokens = 512

// logitBlock is the number of logits in a block (headBlockFloats in policy/cpu).
const logitBlock = 1 << 20
