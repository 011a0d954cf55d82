package learner

import (
	"context"
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rl/optimizer"
)

// bigram is a trainer over a table of logits: token t follows token s with softmax(table[s])[t].
// Its gradients are analytic and its arithmetic float64, so a test can check them.
type bigram struct {
	vocab    int
	table    []float64 // [vocab][vocab]
	gradient []float64
	m, v     []float64
	steps    int64
	kept     map[policy.Kept]policy.ForwardRequest
	next     policy.Kept
	forwards int
	largest  int // tokens of the largest forward pass
	discards int
	applied  [][]float64 // the gradient that each step applied
	failAt   int         // forward pass that fails; 0 = none
	room     int         // tokens of a forward pass that the memory has room for; 0 = any
	fullStep bool        // the next step finds the memory full
	failStep bool
}

func newBigram(vocab int) *bigram {
	n := vocab * vocab
	b := &bigram{vocab: vocab, kept: map[policy.Kept]policy.ForwardRequest{}}
	b.table, b.gradient, b.m, b.v = make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range b.table {
		b.table[i] = math.Sin(float64(7*i + 1)) // any fixed start
	}
	return b
}

// logSoftmax returns the log-probabilities after token s.
func (b *bigram) logSoftmax(s int32, temperature float64) []float64 {
	row := b.table[int(s)*b.vocab : (int(s)+1)*b.vocab]
	out, sum := make([]float64, b.vocab), 0.0
	for t, z := range row {
		out[t] = z / temperature
		sum += math.Exp(out[t])
	}
	for t := range out {
		out[t] -= math.Log(sum)
	}
	return out
}

func (b *bigram) Forward(ctx context.Context, req policy.ForwardRequest) (policy.TokenOutputs, error) {
	if err := ctx.Err(); err != nil {
		return policy.TokenOutputs{}, err
	}
	if b.forwards++; b.forwards == b.failAt {
		return policy.TokenOutputs{}, policy.ErrLost
	}
	out, tokens := policy.TokenOutputs{}, 0
	for _, seq := range req.Sequences {
		tokens += len(seq)
		logp, entropy := make([]float32, len(seq)), make([]float32, len(seq))
		for t := 1; t < len(seq); t++ {
			l := b.logSoftmax(seq[t-1], req.Temperature)
			logp[t] = float32(l[seq[t]])
			for _, v := range l {
				entropy[t] -= float32(math.Exp(v) * v)
			}
		}
		out.LogProbs = append(out.LogProbs, logp)
		if req.Outputs.Has(policy.OutEntropy) {
			out.Entropies = append(out.Entropies, entropy)
		}
	}
	if b.room > 0 && tokens > b.room {
		return policy.TokenOutputs{}, fmt.Errorf("%w: 141 GiB are asked for, 80 GiB there", policy.ErrOutOfMemory)
	}
	b.largest = max(b.largest, tokens)
	if req.Keep {
		b.next++
		out.Kept = b.next
		b.kept[b.next] = req
	}
	return out, nil
}

func (b *bigram) Backward(_ context.Context, _ policy.Role, kept policy.Kept, c policy.Cotangents) error {
	req, ok := b.kept[kept]
	if !ok {
		return policy.ErrNotKept
	}
	delete(b.kept, kept)
	for i, seq := range req.Sequences {
		for t := 1; t < len(seq); t++ {
			w, h, entropy := float64(c.LogProbs[i][t])/req.Temperature, 0.0, 0.0
			next := b.logSoftmax(seq[t-1], req.Temperature)
			if c.Entropies != nil {
				h = float64(c.Entropies[i][t]) / req.Temperature
			}
			for _, l := range next {
				entropy -= math.Exp(l) * l
			}
			for k, l := range next {
				b.gradient[int(seq[t-1])*b.vocab+k] -= math.Exp(l) * (w + h*(l+entropy))
			}
			b.gradient[int(seq[t-1])*b.vocab+int(seq[t])] += w
		}
	}
	return nil
}

func (b *bigram) Step(_ context.Context, _ policy.Role, o policy.StepOptions) (policy.StepStats, error) {
	if b.failStep {
		return policy.StepStats{}, &policy.NonFiniteError{Name: "table"}
	}
	if b.fullStep {
		b.fullStep = false
		return policy.StepStats{}, policy.ErrOutOfMemory
	}
	norm := 0.0
	for _, g := range b.gradient {
		norm += g * g
	}
	norm = math.Sqrt(norm)
	clipped := o.ClipNorm > 0 && norm > o.ClipNorm
	b.steps++
	b.applied = append(b.applied, append([]float64(nil), b.gradient...))
	a := o.Rule.(optimizer.AdamW)
	for i, g := range b.gradient {
		if clipped {
			g *= o.ClipNorm / norm
		}
		b.m[i] = a.Beta1*b.m[i] + (1-a.Beta1)*g
		b.v[i] = a.Beta2*b.v[i] + (1-a.Beta2)*g*g
		mean := b.m[i] / (1 - math.Pow(a.Beta1, float64(b.steps)))
		square := b.v[i] / (1 - math.Pow(a.Beta2, float64(b.steps)))
		b.table[i] -= o.LR * (mean/(math.Sqrt(square)+a.Epsilon) + a.WeightDecay*b.table[i])
		b.gradient[i] = 0
	}
	return policy.StepStats{GradNorm: norm, Clipped: clipped, Step: b.steps}, nil
}

func (b *bigram) Discard(context.Context, policy.Role) error {
	b.discards++
	clear(b.kept)
	clear(b.gradient)
	return nil
}

func (b *bigram) Load(context.Context, policy.Role, string, bool) error { return policy.ErrBadRequest }

func (b *bigram) Save(context.Context, policy.Role, string) (string, error) {
	return "", policy.ErrBadRequest
}

func (b *bigram) State(context.Context, policy.Role) (policy.State, error) {
	return policy.State{Step: b.steps, Params: int64(len(b.table))}, nil
}

func (b *bigram) Describe() policy.Description { return policy.Description{Device: "table"} }

func (b *bigram) Close() error { return nil }

// logProbs gives the log-probabilities of a sequence under the current table.
func (b *bigram) logProbs(seq []int32, temperature float64) []float32 {
	out := make([]float32, len(seq))
	for t := 1; t < len(seq); t++ {
		out[t] = float32(b.logSoftmax(seq[t-1], temperature)[seq[t]])
	}
	return out
}

// idle fails unless nothing is kept and no gradient is left.
func (b *bigram) idle() error {
	if len(b.kept) > 0 {
		return fmt.Errorf("%d forward passes are still kept", len(b.kept))
	}
	for _, g := range b.gradient {
		if g != 0 {
			return fmt.Errorf("a gradient is left")
		}
	}
	return nil
}
