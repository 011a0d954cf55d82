package cpu

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/testing/longform"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

type parityJob struct {
	Create    string    `json:"create,omitempty"`
	Tied      bool      `json:"tied"`
	Type      string    `json:"type,omitempty"`
	Rope      any       `json:"rope,omitempty"`
	Dir       string    `json:"dir,omitempty"`
	Sequences [][]int32 `json:"sequences"`
	Prompt    []int32   `json:"prompt"`
	New       int       `json:"new"`

	Cotangents [][]float32 `json:"cotangents,omitempty"` // of a critic's values
}

type parityAnswer struct {
	Logits [][][]float64 `json:"logits"`
	Greedy []int32       `json:"greedy"`

	Values    [][]float64          `json:"values"`
	Gradients map[string][]float64 `json:"gradients"`
}

// transformers is one Python process that answers jobs line by line: to load it takes longer than the jobs.
type transformers struct{ *bench.Peer }

func startTransformers(t *testing.T) *transformers {
	t.Helper()
	interpreter := pythontest.Need(t, "TORCH", "torch", "transformers")
	return &transformers{pythontest.Start(t, interpreter, "testdata/parity.py")}
}

func (p *transformers) ask(t *testing.T, job parityJob) (a parityAnswer) {
	t.Helper()
	require.NoError(t, p.Ask(t.Context(), job, &a))
	return a
}

// TestTransformers compares with Hugging Face's model.
func TestTransformers(t *testing.T) {
	longform.Need(t, "ROPEWALK_TEST_MODELS", "test-models")
	peer := startTransformers(t)
	t.Run("loads ours", func(t *testing.T) { transformersLoadsOurs(t, peer) })
	t.Run("is loaded", func(t *testing.T) { weLoadTransformers(t, peer) })
	t.Run("architectures", func(t *testing.T) { otherArchitectures(t, peer) })
	t.Run("gives our values", func(t *testing.T) { transformersGivesOurValues(t, peer) })
}

// logitsOf are all logits of one sequence.
func logitsOf(r *resident[float32], seq []int32) []float32 {
	w, m := r.workers[0], r.model
	m.rope.grow(len(seq))
	c := packChunks([][]int32{seq}, families([][]int32{seq}, nil))[0]
	a := m.newActs(make([]float32, m.actsSize(len(seq), false)), len(seq), false)
	w.forward(c, a)
	xn, z := make([]float32, len(a.out)), make([]float32, len(seq)*m.shape.Vocab)
	rmsNorm(xn, a.out, m.w.norm, m.shape.NormEps)
	w.linear(z, xn, len(seq), m.f.head, false)
	return z
}

func compareWithTransformers(t *testing.T, dir string, job parityJob, want parityAnswer) {
	t.Helper()
	e, err := open[float32](Options{Threads: 2})
	require.NoError(t, err)
	ctx := context.Background()
	require.NoError(t, e.Load(ctx, policy.RolePolicy, dir, false))
	for i, s := range job.Sequences {
		got := logitsOf(e.roles[policy.RolePolicy], s)
		v := len(want.Logits[i][0])
		for j, z := range got {
			require.LessOrEqualf(
				t, math.Abs(float64(z)-want.Logits[i][j/v][j%v]), 1e-4, "sequence %d token %d logit %d", i, j/v, j%v,
			)
		}
	}
	g, err := e.Generate(
		ctx,
		policy.GenerateRequest{
			Role: policy.RolePolicy, Prefixes: [][]int32{job.Prompt}, Streams: []uint64{1}, MaxTokens: []int{job.New},
		},
	)
	require.NoError(t, err)
	require.Equal(t, want.Greedy, g.Tokens[0])
}

// transformersLoadsOurs: Qwen3ForCausalLM gives our logits and greedy continuation from our folder.
func transformersLoadsOurs(t *testing.T, peer *transformers) {
	for name, untied := range map[string]bool{"tied": false, "untied": true} {
		t.Run(name, func(t *testing.T) {
			s := tiny
			s.Untied, s.Positions, s.EOS, s.Pad = untied, 512, []int32{1}, 0
			c := loaded[float32](t, s, blasGonum, 1).checkpoint()
			dir := filepath.Join(t.TempDir(), "c")
			_, err := checkpoint.Write(dir, c)
			require.NoError(t, err)
			job := parityJob{
				Dir: dir, Sequences: randomSequences(1, s.Vocab, 3, 40, 130), Prompt: randomSequences(2, s.Vocab, 9)[0],
				New: 24,
			}
			compareWithTransformers(t, dir, job, peer.ask(t, job))
		})
	}
}

// weLoadTransformers: a random model that transformers saved gives the same logits here.
func weLoadTransformers(t *testing.T, peer *transformers) {
	for name, tied := range map[string]bool{"tied": true, "untied": false} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "c")
			job := parityJob{
				Create: dir, Tied: tied, Sequences: randomSequences(3, 37, 2, 77), Prompt: randomSequences(4, 37, 5)[0],
				New: 24,
			}
			compareWithTransformers(t, dir, job, peer.ask(t, job))
		})
	}
}

// otherArchitectures: models that transformers saved, and what we save of them, give the same logits in both.
func otherArchitectures(t *testing.T, peer *transformers) {
	llama3 := map[string]any{"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
		"original_max_position_embeddings": 64}
	for name, c := range map[string]struct {
		kind string
		rope any
	}{
		"llama":   {"llama", nil},
		"llama 3": {"llama", llama3},
		"qwen2":   {"qwen2", nil},
		"qwen2 yarn": {"qwen2", map[string]any{"rope_type": "yarn", "factor": 4,
			"original_max_position_embeddings": 64}},
		"qwen3 linear":  {"qwen3", map[string]any{"rope_type": "linear", "factor": 2}},
		"mistral":       {"mistral", nil},
		"mistral scale": {"mistral", map[string]any{"rope_type": "yarn", "factor": 8, "attention_factor": 1.5}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "theirs")
			job := parityJob{
				Create: dir, Tied: true, Type: c.kind, Rope: c.rope, Sequences: randomSequences(3, 37, 2, 77, 200),
				Prompt: randomSequences(4, 37, 5)[0], New: 24,
			}
			want := peer.ask(t, job)
			compareWithTransformers(t, dir, job, want)
			read, err := checkpoint.Read(dir, false)
			require.NoError(t, err)
			read.Config = nil // so that it is made from the shape
			job.Create, job.Dir = "", filepath.Join(t.TempDir(), "ours")
			_, err = checkpoint.Write(job.Dir, read)
			require.NoError(t, err)
			again := peer.ask(t, job)
			require.Equal(t, want.Greedy, again.Greedy)
			for i := range want.Logits {
				for j := range want.Logits[i] {
					require.InDeltaSlice(t, want.Logits[i][j], again.Logits[i][j], 1e-5)
				}
			}
		})
	}
}

// transformersGivesOurValues: Qwen3ForCausalLM loads a critic's folder; its last hidden state with the
// head from the same folder gives our values and our gradient.
func transformersGivesOurValues(t *testing.T, peer *transformers) {
	for name, untied := range map[string]bool{"tied": false, "untied": true} {
		t.Run(name, func(t *testing.T) {
			s := tiny
			s.ValueHead, s.Untied = true, untied // and no padding token, whose embedding transformers does not train
			dir := filepath.Join(t.TempDir(), "c")
			_, err := checkpoint.Write(dir, loaded[float32](t, s, blasGonum, 1).checkpoint())
			require.NoError(t, err)
			seqs := randomSequences(6, s.Vocab, 3, 1, 40, 130)
			co := policy.Cotangents{Values: randomLike(7, seqs)}
			want := peer.ask(t, parityJob{Dir: dir, Sequences: seqs, Prompt: seqs[0], New: 1, Cotangents: co.Values})

			e, err := open[float32](Options{Threads: 2})
			require.NoError(t, err)
			ctx := t.Context()
			require.NoError(t, e.Load(ctx, policy.RoleCritic, dir, false))
			out, err := e.Forward(
				ctx,
				policy.ForwardRequest{
					Role: policy.RoleCritic, Sequences: seqs, Temperature: 1, Outputs: policy.OutValue, Keep: true,
				},
			)
			require.NoError(t, err)
			for i, row := range out.Values {
				require.InDeltaSlice(t, want.Values[i], row, 1e-4, "values of sequence %d", i)
			}
			require.NoError(t, e.Backward(ctx, policy.RoleCritic, out.Kept, co))
			r := e.roles[policy.RoleCritic]
			g := gradients(t, r)
			for _, p := range r.model.params {
				requireLike(t, p.name, want.Gradients[p.name], g[p.lo:p.hi])
			}
		})
	}
}

// requireLike compares a gradient with PyTorch's, which has none for what no value depends on.
func requireLike(t *testing.T, name string, want []float64, got []float32) {
	t.Helper()
	if name == checkpoint.NameHead {
		require.Empty(t, want)
		require.Zero(t, dot(got, got))
		return
	}
	require.Len(t, got, len(want), name)
	var diff, norm float64
	for i, w := range want {
		d := float64(got[i]) - w
		diff, norm = diff+d*d, norm+w*w
	}
	require.LessOrEqual(t, math.Sqrt(diff/norm), 1e-3, "relative L2 error of %s", name)
}
