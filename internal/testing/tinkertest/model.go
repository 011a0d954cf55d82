package tinkertest

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/rl/optimizer"
)

// pair is the adapter of one weight [out, in]: b [out, rank] times a [rank, in].
type pair struct {
	name    string // of the weight
	out, in int
	a, b    []float32
}

// state is an adapter with its optimiser's.
type state struct {
	rank    int
	tensors []pair
	first   [][]float32 // moments, two for each pair: of a and of b
	second  [][]float32
	steps   int
}

func (s state) clone() state {
	out := state{rank: s.rank, steps: s.steps}
	for _, p := range s.tensors {
		p.a, p.b = slices.Clone(p.a), slices.Clone(p.b)
		out.tensors = append(out.tensors, p)
	}
	for i := range s.first {
		out.first = append(out.first, slices.Clone(s.first[i]))
		out.second = append(out.second, slices.Clone(s.second[i]))
	}
	return out
}

// model is an adapter that trains. Loading weights leaves its gradients, as in SkyRL.
type model struct {
	state
	used      bool
	gradients [][]float64 // like the moments
	rows      int
}

// fresh is a new adapter: a random, b zero.
func (s *Server) fresh(rank int, seed uint64, attention, feedForward bool) state {
	rng := rand.New(rand.NewPCG(seed, 1))
	st := state{rank: rank}
	for _, w := range s.base.Weights {
		if len(w.Dims) != 2 || !(attention && strings.Contains(w.Name, ".self_attn.") ||
			feedForward && strings.Contains(w.Name, ".mlp.")) {
			continue
		}
		p := pair{name: w.Name, out: w.Dims[0], in: w.Dims[1], a: make([]float32, rank*w.Dims[1]),
			b: make([]float32, w.Dims[0]*rank)}
		for i := range p.a {
			p.a[i] = (2*rng.Float32() - 1) / float32(math.Sqrt(float64(p.in)))
		}
		st.tensors = append(st.tensors, p)
		for _, n := range []int{len(p.a), len(p.b)} {
			st.first, st.second = append(st.first, make([]float32, n)), append(st.second, make([]float32, n))
		}
	}
	return st
}

// merged loads base and adapter into the engine.
func (s *Server) merged(st state) *checkpoint.Checkpoint {
	c := *s.base
	c.Weights = slices.Clone(s.base.Weights)
	scale := float32(s.Alpha / float64(st.rank))
	for i, w := range c.Weights {
		at := slices.IndexFunc(st.tensors, func(p pair) bool { return p.name == w.Name })
		if at < 0 {
			continue
		}
		p, data := st.tensors[at], slices.Clone(w.Data)
		for o := range p.out {
			for k := range st.rank {
				for in := range p.in {
					data[o*p.in+in] += scale * p.b[o*st.rank+k] * p.a[k*p.in+in]
				}
			}
		}
		c.Weights[i].Data = data
	}
	dir := filepath.Join(s.t.TempDir(), "merged")
	_, err := checkpoint.Write(dir, &c)
	require.NoError(s.t, err)
	require.NoError(s.t, s.engine.Load(context.Background(), policy.RolePolicy, dir, false))
	return &c
}

// pass is a forward pass, and a backward pass if it is asked for.
func (s *Server) pass(m *model, in *input, backward bool) (any, *refusal) {
	ctx := context.Background()
	c := s.merged(m.state)
	rows, bad := in.rows(c.Shape.Vocab)
	if bad != nil {
		return nil, bad
	}
	out, err := s.engine.Forward(ctx, policy.ForwardRequest{Role: policy.RolePolicy, Sequences: rows, Temperature: 1,
		Outputs: policy.OutLogProb, Keep: backward})
	if err != nil {
		return nil, refuse(400, "%v", err)
	}
	var outputs []any
	for _, lps := range out.LogProbs {
		outputs = append(outputs, map[string]any{"logprobs": map[string]any{"data": lps[1:], "dtype": "float32",
			"shape": []int{len(lps) - 1}}})
	}
	result := map[string]any{"loss_fn_output_type": "scalar", "loss_fn_outputs": outputs, "metrics": map[string]any{}}
	if !backward {
		return result, nil
	}
	cotangents, bad := s.cotangents(in, rows, out.LogProbs)
	if bad != nil {
		return nil, bad
	}
	err = s.engine.Backward(ctx, policy.RolePolicy, out.Kept, policy.Cotangents{LogProbs: cotangents})
	if err != nil {
		return nil, refuse(400, "%v", err)
	}
	m.used = true
	m.rows += len(rows)
	s.accumulate(m, c)
	return result, nil
}

// rows are the sequences of the data: the inputs and the last target.
func (in *input) rows(vocab int) (rows [][]int32, bad *refusal) {
	for _, d := range in.Data {
		targets := d.Inputs["target_tokens"].Data
		var ids []int32
		for _, c := range d.Input.Chunks {
			ids = append(ids, c.Tokens...)
		}
		if len(targets) != len(ids) || len(ids) == 0 || d.Inputs["target_tokens"].Dtype != "int64" {
			return nil, refuse(400, "%d targets for %d tokens", len(targets), len(ids))
		}
		for i, id := range append(ids, int32(targets[len(targets)-1])) {
			if id < 0 || int(id) >= vocab || i > 0 && int32(targets[i-1]) != id {
				return nil, refuse(400, "token %d is %d", i, id)
			}
		}
		rows = append(rows, append(ids, int32(targets[len(targets)-1])))
	}
	return rows, nil
}

// cotangents are those of the loss by the log-probabilities, after what the server divides by.
func (s *Server) cotangents(in *input, rows [][]int32, logProbs [][]float32) (out [][]float32, bad *refusal) {
	for i, d := range in.Data {
		n := len(rows[i]) - 1
		numbers := func(name string) []float64 { return d.Inputs[name].Data }
		weights := numbers("weights")
		if weights == nil {
			weights = slices.Repeat([]float64{1}, n)
		}
		c, sum := make([]float32, n+1), 0.0
		for t := range n {
			sum += weights[t]
			switch in.Loss {
			case "cross_entropy":
				c[t+1] = float32(-weights[t])
			case "importance_sampling":
				if len(numbers("advantages")) != n || len(numbers("logprobs")) != n {
					return nil, refuse(400, "advantages and logprobs of sequence %d", i)
				}
				ratio := math.Exp(float64(logProbs[i][t+1]) - numbers("logprobs")[t])
				c[t+1] = float32(-weights[t] * ratio * numbers("advantages")[t])
			default:
				return nil, refuse(422, "loss_fn %s", in.Loss)
			}
		}
		by := 1 / s.Scale
		if s.ByWeights {
			by *= math.Max(sum, 1e-9)
		}
		if s.ByRequest {
			by *= float64(len(rows))
		}
		for t := range c {
			c[t] = float32(float64(c[t]) / by)
		}
		out = append(out, c)
	}
	return out, nil
}

// far is an epsilon and a learning rate with which a step moves weights by their gradients.
const far = 1e7

// accumulate adds the adapter's gradients, given those of the whole weights.
func (s *Server) accumulate(m *model, before *checkpoint.Checkpoint) {
	ctx := context.Background()
	_, err := s.engine.Step(ctx, policy.RolePolicy, policy.StepOptions{LR: far,
		Rule: optimizer.AdamW{Beta1: 0.9, Beta2: 0.9, Epsilon: far}})
	require.NoError(s.t, err)
	dir := filepath.Join(s.t.TempDir(), "stepped")
	_, err = s.engine.Save(ctx, policy.RolePolicy, dir)
	require.NoError(s.t, err)
	after, err := checkpoint.Read(dir, false)
	require.NoError(s.t, err)
	if m.gradients == nil {
		for _, x := range m.first {
			m.gradients = append(m.gradients, make([]float64, len(x)))
		}
	}
	scale := s.Alpha / float64(m.rank)
	for i, p := range m.tensors {
		at := slices.IndexFunc(before.Weights, func(w checkpoint.Tensor) bool { return w.Name == p.name })
		da, db := m.gradients[2*i], m.gradients[2*i+1]
		for o := range p.out {
			for in := range p.in {
				dw := scale * float64(before.Weights[at].Data[o*p.in+in]-after.Weights[at].Data[o*p.in+in])
				for k := range m.rank {
					db[o*m.rank+k] += dw * float64(p.a[k*p.in+in])
					da[k*p.in+in] += dw * float64(p.b[o*m.rank+k])
				}
			}
		}
	}
}

// step takes a step of AdamW without weight decay and drops the gradients.
func (s *Server) step(m *model, o adam) any {
	by, norm := 1.0, 0.0
	if s.ByStep {
		by = float64(max(1, m.rows))
	}
	for _, g := range m.gradients {
		for i := range g {
			g[i] /= by
			norm += g[i] * g[i]
		}
	}
	norm = math.Sqrt(norm)
	scale := 1.0
	if s.Clips && o.Clip > 0 && norm > o.Clip {
		scale = o.Clip / norm
	}
	m.steps++
	for i := range m.first {
		data := m.tensors[i/2].a
		if i%2 == 1 {
			data = m.tensors[i/2].b
		}
		for j := range data {
			g := 0.0
			if m.gradients != nil {
				g = scale * m.gradients[i][j]
			}
			first := o.Beta1*float64(m.first[i][j]) + (1-o.Beta1)*g
			second := o.Beta2*float64(m.second[i][j]) + (1-o.Beta2)*g*g
			m.first[i][j], m.second[i][j] = float32(first), float32(second)
			first /= 1 - math.Pow(o.Beta1, float64(m.steps))
			second /= 1 - math.Pow(o.Beta2, float64(m.steps))
			data[j] -= float32(o.LR * first / (math.Sqrt(second) + o.Eps))
		}
	}
	m.gradients, m.rows = nil, 0
	metrics := map[string]any{}
	if !s.NoNorm {
		metrics["skyrl.ai/grad_norm"] = norm
	}
	return map[string]any{"metrics": metrics}
}

// sample generates one response.
func (s *Server) sample(st state, r request) (any, *refusal) {
	s.merged(st)
	var prefix []int32
	for _, c := range r.Prompt.Chunks {
		prefix = append(prefix, c.Tokens...)
	}
	g, err := s.engine.Generate(context.Background(), policy.GenerateRequest{Role: policy.RolePolicy,
		Prefixes: [][]int32{prefix}, Streams: []uint64{r.Params.Seed}, MaxTokens: []int{r.Params.Max},
		Temperature: r.Params.Temperature, Stop: r.Params.Stop})
	if err != nil {
		return nil, refuse(400, "%v", err)
	}
	return map[string]any{"type": "sample", "sequences": []any{map[string]any{"tokens": g.Tokens[0],
		"logprobs": g.LogProbs[0], "stop_reason": string(g.Finish[0])}}}, nil
}
