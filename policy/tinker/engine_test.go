package tinker_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/policytest"
	"github.com/ropewalk/ropewalk/internal/testing/tinkertest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/policy/servers"
	"github.com/ropewalk/ropewalk/policy/tinker"
	"github.com/ropewalk/ropewalk/rl/optimizer"
)

var shape = checkpoint.Shape{Vocab: 40, Hidden: 32, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 32,
	Positions: 128, RopeTheta: 10000, NormEps: 1e-6, Pad: -1}

var lora = tinker.LoRA{Rank: 4, Alpha: tinker.Alpha, Seed: 7,
	Targets: []string{"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}}

// policyDir writes a policy.
func policyDir(t testing.TB, seed uint64) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "policy")
	require.NoError(t, checkpoint.Init(dir, shape, seed, map[string][]byte{"tokenizer.json": []byte("{}")}))
	return dir
}

// score is our own forward pass.
var score = servers.ScoreWith(func() (policy.Engine, error) { return cpu.Open(cpu.Options{Threads: 1}) })

// options are those of an engine that does not wait.
func options(t testing.TB, s *tinkertest.Server) tinker.Options {
	return tinker.Options{Server: tinker.Server{URL: s.URL, BaseModel: s.Name, Attempts: 3, Seconds: 20, Verify: true,
		Tolerance: 1e-4}, LoRA: lora, Scratch: t.TempDir(), Score: score,
		Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}
}

func open(t testing.TB, s *tinkertest.Server) *tinker.Engine {
	t.Helper()
	e, err := tinker.Open(t.Context(), options(t, s), shape)
	require.NoError(t, err)
	t.Cleanup(func() { e.Close() })
	return e
}

// Every convention is found out.
func TestConventions(t *testing.T) {
	for name, c := range map[string]struct {
		behaves tinkertest.Behaviour
		want    tinker.Convention
	}{
		"as documented": {tinkertest.Hosted, tinker.Convention{Loss: "cross_entropy", PerSequence: tinker.ByNothing,
			Clips: true}},
		"skyrl": {tinkertest.SkyRL, tinker.Convention{Loss: "importance_sampling", PerToken: true,
			PerSequence: tinker.ByStep}},
		"mean of a request": {tinkertest.Behaviour{ByRequest: true}, tinker.Convention{Loss: "cross_entropy",
			PerSequence: tinker.ByRequest}},
		"loads first": {tinkertest.Behaviour{ByWeights: true, LoadFirst: true, Waits: 1},
			tinker.Convention{Loss: "importance_sampling", PerToken: true, PerSequence: tinker.ByNothing}},
	} {
		t.Run(name, func(t *testing.T) {
			s := tinkertest.New(t, policyDir(t, 1), c.behaves)
			facts := open(t, s).Facts()
			got := facts.Convention
			require.InDelta(t, 1, got.Scale, 0.1)
			got.Scale = 0
			c.want.Norm = "skyrl.ai/grad_norm"
			require.Equal(t, c.want, got)
			require.Equal(t, c.behaves.LoadFirst, facts.LoadFirst)
			t.Log(facts)
		})
	}
	s := tinkertest.New(t, policyDir(t, 1), tinkertest.Behaviour{Scale: 7})
	_, err := tinker.Open(t.Context(), options(t, s), shape)
	require.ErrorContains(t, err, "a gradient of 1 is taken for one of 7")
}

// Under every convention the same cotangents give the same step: that of a server which sums.
func TestTheSameStepUnderEveryConvention(t *testing.T) {
	var want [][]float32
	for _, b := range []tinkertest.Behaviour{{}, tinkertest.SkyRL, {ByRequest: true},
		{ByWeights: true, ByRequest: true}} {
		s := tinkertest.New(t, policyDir(t, 1), b)
		e := open(t, s)
		require.NoError(t, e.Load(t.Context(), policy.RolePolicy, policyDir(t, 1), true))
		for range 3 {
			step(t, e, 11, 23, 5)
		}
		got := forward(t, e, [][]int32{row(30)}, false).LogProbs
		if want == nil {
			want = got
			continue
		}
		for i, v := range got[0] {
			require.InDelta(t, want[0][i], v, 2e-3, "%+v, token %d", b, i)
		}
	}
}

// row is a sequence of n tokens.
func row(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32((5*i + n) % shape.Vocab)
	}
	return out
}

func forward(t testing.TB, e policy.Trainer, rows [][]int32, keep bool) policy.TokenOutputs {
	t.Helper()
	out, err := e.Forward(t.Context(), policy.ForwardRequest{Role: policy.RolePolicy, Sequences: rows, Temperature: 1,
		Outputs: policy.OutLogProb, Keep: keep})
	require.NoError(t, err)
	return out
}

// step takes a step that raises and lowers log-probabilities, in a pass for each length and one for all.
func step(t testing.TB, e policy.Trainer, lengths ...int) policy.StepStats {
	t.Helper()
	var all [][]int32
	for _, n := range lengths {
		all = append(all, row(n))
		backward(t, e, [][]int32{row(n)})
	}
	backward(t, e, all)
	stats, err := e.Step(t.Context(), policy.RolePolicy, adam)
	require.NoError(t, err)
	return stats
}

var adam = policy.StepOptions{LR: 3e-3, Rule: optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-6}}

func backward(t testing.TB, e policy.Trainer, rows [][]int32) {
	t.Helper()
	out := forward(t, e, rows, true)
	c := policy.Cotangents{}
	for _, ids := range rows {
		values := make([]float32, len(ids))
		for i := range values {
			values[i] = float32(math.Sin(float64(3*i+len(ids)))) / 10
		}
		c.LogProbs = append(c.LogProbs, values)
	}
	require.NoError(t, e.Backward(t.Context(), policy.RolePolicy, out.Kept, c))
}

// An engine on a server that behaves in either way conforms, as far as the API goes.
func TestConforms(t *testing.T) {
	for name, b := range map[string]tinkertest.Behaviour{"skyrl": tinkertest.SkyRL, "hosted": tinkertest.Hosted} {
		t.Run(name, func(t *testing.T) {
			dir := policyDir(t, 1)
			s := tinkertest.New(t, dir, b)
			policytest.Run(t, policytest.Fixture{
				Open: func(t testing.TB) policy.Engine {
					e, err := tinker.Open(context.Background(), options(t, s), shape)
					require.NoError(t, err)
					return e
				},
				Dir: dir, Vocab: shape.Vocab, Positions: shape.Positions, Digest: checkpoint.Digest,
				Only: []string{"capabilities", "responses", "temperature zero", "stop and budget", "close"},
			})
		})
	}
}

// What was loaded is saved as it was; a step gives another folder, which holds the adapter and loads again; the
// reference does not move with the policy, and samples come from the newest weights.
func TestModelsOfAnEngine(t *testing.T) {
	dir := policyDir(t, 1)
	s := tinkertest.New(t, dir, tinkertest.SkyRL)
	e := open(t, s)
	require.NoError(t, e.Load(t.Context(), policy.RolePolicy, dir, true))
	require.NoError(t, e.Load(t.Context(), policy.RoleReference, dir, false))
	save := func() (string, string) {
		to := filepath.Join(t.TempDir(), "saved")
		digest, err := e.Save(t.Context(), policy.RolePolicy, to)
		require.NoError(t, err)
		return to, digest
	}
	_, same := save()
	want, err := checkpoint.Digest(dir)
	require.NoError(t, err)
	require.Equal(t, want, same)
	first := forward(t, e, [][]int32{row(9)}, false)
	probes := len(s.Sent)

	backward(t, e, [][]int32{row(12)})
	require.NoError(t, e.Discard(t.Context(), policy.RolePolicy))
	require.Empty(t, s.Sent[probes:], "a gradient reaches the server with its step")
	step(t, e, 12)
	state, err := e.State(t.Context(), policy.RolePolicy)
	require.NoError(t, err)
	require.EqualValues(t, 1, state.Step)
	require.Empty(t, state.Digest)
	require.Greater(t, state.Params, shape.Params())
	to, digest := save()
	require.NotEqual(t, same, digest)
	moved := forward(t, e, [][]int32{row(9)}, false)
	require.NotEqual(t, first.LogProbs, moved.LogProbs)
	own, err := score(t.Context(), to, row(9))
	require.NoError(t, err)
	for i, v := range own {
		require.InDelta(t, v, moved.LogProbs[0][i+1], 1e-5)
	}
	ref, err := e.Forward(t.Context(), policy.ForwardRequest{Role: policy.RoleReference, Sequences: [][]int32{row(9)},
		Temperature: 1, Outputs: policy.OutLogProb})
	require.NoError(t, err)
	require.Equal(t, first.LogProbs, ref.LogProbs)

	g, err := e.Generate(t.Context(), request())
	require.NoError(t, err)
	for i, ids := range g.Tokens {
		whole := append(append([]int32(nil), request().Prefixes[i]...), ids...)
		lps := forward(t, e, [][]int32{whole}, false).LogProbs[0]
		for k, v := range g.LogProbs[i] {
			require.InDelta(t, lps[len(whole)-len(ids)+k], v, 1e-5)
		}
	}
	require.NoError(t, e.Load(t.Context(), policy.RolePolicy, dir, true))
	require.Equal(t, first.LogProbs, forward(t, e, [][]int32{row(9)}, false).LogProbs)
	require.NoError(t, e.Load(t.Context(), policy.RolePolicy, to, true))
	require.Equal(t, moved.LogProbs, forward(t, e, [][]int32{row(9)}, false).LogProbs)

	bare := filepath.Join(t.TempDir(), "bare")
	require.NoError(t, os.CopyFS(bare, os.DirFS(to)))
	for _, name := range []string{checkpoint.FileAdapter, checkpoint.FileAdapterConfig} {
		require.NoError(t, os.Remove(filepath.Join(bare, name)))
	}
	require.NoError(t, e.Load(t.Context(), policy.RolePolicy, bare, true), "the path is enough for the server")
	_, err = checkpoint.Open(bare, false)
	require.ErrorContains(t, err, "the adapter is at a Tinker server, which offers no download")
}
