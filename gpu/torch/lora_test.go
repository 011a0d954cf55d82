package torch

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/wire"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/rl/optimizer"
)

func lora() *LoRA {
	return &LoRA{Rank: 3, Alpha: 6, Targets: []string{"down_proj", "q_proj", "v_proj"}, Seed: 11}
}

func TestLoRAOptions(t *testing.T) {
	o, err := Options{Python: "p", LoRA: lora()}.withDefaults()
	require.NoError(t, err)
	require.Subset(
		t, o.commandLine("main.py"),
		[]string{
			"--lora-rank", "3", "--lora-alpha", "6", "--lora-targets", "down_proj,q_proj,v_proj", "--lora-seed", "11",
		},
	)
	for want, change := range map[string]func(*LoRA){
		"rank is 0":                func(l *LoRA) { l.Rank = 0 },
		"alpha is -1":              func(l *LoRA) { l.Alpha = -1 },
		"no targets":               func(l *LoRA) { l.Targets = nil },
		"targets are q_proj, head": func(l *LoRA) { l.Targets = []string{"q_proj", "head"} },
		"k_proj, k_proj; there":    func(l *LoRA) { l.Targets = []string{"k_proj", "k_proj"} },
	} {
		l := lora()
		change(l)
		_, err := Open(t.Context(), Options{Python: "p", LoRA: l})
		require.ErrorIs(t, err, policy.ErrBadRequest)
		require.ErrorContains(t, err, want)
	}
}

// An engine that trains something else than it was asked to is not taken on, nor one without peft.
func TestLoRAIsWhatWasAskedFor(t *testing.T) {
	for mode, want := range map[string]string{
		"": "it trains all of a model, asked for is an adapter of rank 3, alpha 6, " +
			"for q_proj, v_proj, down_proj",
		"lora no peft": "it has no peft",
	} {
		o, _ := faked(t, mode)
		o.LoRA = lora()
		_, err := Open(t.Context(), o)
		require.ErrorContains(t, err, want)
	}
	o, _ := faked(t, "lora no peft")
	_, err := Open(t.Context(), o)
	require.ErrorContains(
		t, err, "it trains an adapter of rank 3, alpha 6, for q_proj, v_proj, down_proj, asked for is all of a model",
	)
	require.NoError(t, lora().judge(&wire.LoRA{Rank: 3, Alpha: 6, Targets: []string{"q_proj", "v_proj", "down_proj"}}))
}

// openLoRA opens engines of one and of two ranks that train the same adapter.
func openLoRA(t *testing.T) (one, two *Engine) {
	t.Helper()
	pythontest.Need(t, "TORCH", "peft")
	one, _ = openReal(t, func(o *Options) { o.LoRA = lora() })
	two, _ = openReal(t, func(o *Options) { o.LoRA, o.Ranks = lora(), 2 })
	return one, two
}

// trained is a folder whose adapter is no longer zero, made from a model's by two steps.
func trained(t *testing.T, e policy.Engine, role policy.Role, dir string) string {
	t.Helper()
	require.NoError(t, e.Load(t.Context(), role, dir, true))
	adapt(t, e, role, 40)
	adapt(t, e, role, 50)
	return save(t, e, role)
}

func save(t *testing.T, e policy.Engine, role policy.Role) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "saved")
	_, err := e.Save(t.Context(), role, to)
	require.NoError(t, err)
	return to
}

// adapt takes one step.
func adapt(t *testing.T, e policy.Engine, role policy.Role, seed uint64) {
	t.Helper()
	rows := randomRows(seed, tiny.Vocab, 20, 33)
	backward(t, e, role, forwardKept(t, e, role, rows).Kept, rows, seed)
	_, err := e.Step(
		t.Context(), role,
		policy.StepOptions{LR: 1e-2,
			Rule: optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, WeightDecay: 0.1}, ClipNorm: 1},
	)
	require.NoError(t, err)
}

func digest(t *testing.T, dir string) string {
	t.Helper()
	d, err := checkpoint.Digest(dir)
	require.NoError(t, err)
	return d
}

func contentOf(t *testing.T, dir, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	return b
}

func TestRealLoRA(t *testing.T) {
	pythontest.NeedLong(t)
	began := time.Now()
	one, two := openLoRA(t)
	t.Logf("engines started in %.1f s", time.Since(began).Seconds())
	ctx, policyDir := t.Context(), initialised(t, tiny, 9)
	folders := map[policy.Role]string{policy.RolePolicy: policyDir, policy.RoleCritic: criticFolder(t, tiny)}
	for role, dir := range folders {
		t.Run("ranks "+string(role), func(t *testing.T) {
			requireParity(t, one, two, role, dir)
			requireParity(t, one, two, role, trained(t, one, role, dir))
		})
		t.Run("resumed "+string(role), func(t *testing.T) { requireResumed(t, one, role, dir) })
	}
	t.Run("folder", func(t *testing.T) {
		dir := trained(t, one, policy.RolePolicy, policyDir)
		require.Equal(
			t, contentOf(t, policyDir, checkpoint.FileWeights), contentOf(t, dir, checkpoint.FileWeights),
			"the base's bytes stay",
		)
		s, err := one.State(ctx, policy.RolePolicy)
		require.NoError(t, err)
		require.Equal(t, digest(t, dir), s.Digest)
		require.EqualValues(t, 2, s.Step)
		require.EqualValues(t, tiny.Params()+2*3*((16+32)+(16+16)+(24+16)), s.Params)
		require.NoError(t, two.Load(ctx, policy.RolePolicy, dir, true))
		require.Equal(
			t, digest(t, dir), digest(t, save(t, two, policy.RolePolicy)), "two ranks write what one has written",
		)
	})
	t.Run("merged", func(t *testing.T) { requireMerged(t, one, trained(t, one, policy.RolePolicy, policyDir)) })
	t.Run("reference", func(t *testing.T) { requireFrozenReference(t, one, policyDir) })
	t.Run("refused", func(t *testing.T) {
		plain := fromPool(t, 1)
		defer plain.Close()
		dir := trained(t, one, policy.RolePolicy, policyDir)
		for _, role := range []policy.Role{policy.RolePolicy, policy.RoleReference, policy.RoleCritic} {
			err := plain.Load(ctx, role, dir, false)
			require.ErrorIs(t, err, policy.ErrBadRequest)
			require.ErrorContains(t, err, "adapter_config.json), and engine.lora is not set")
		}
	})
}

// requireResumed: to save, to load and to go on gives the bytes that going on undisturbed gives.
func requireResumed(t *testing.T, e *Engine, role policy.Role, dir string) {
	t.Helper()
	halfway := trained(t, e, role, dir)
	adapt(t, e, role, 60)
	want := digest(t, save(t, e, role))
	require.NoError(t, e.Load(t.Context(), role, dir, true)) // another model in its place
	require.NoError(t, e.Load(t.Context(), role, halfway, true))
	adapt(t, e, role, 60)
	require.Equal(t, want, digest(t, save(t, e, role)))
	require.Equal(t, digest(t, halfway), digest(t, trained(t, e, role, dir)), "two starts draw the same adapter")
}

// requireMerged: W + alpha/rank · B·A instead of W gives the same outputs, in PyTorch and in the CPU engine, which
// reads the folder itself too and refuses to train it.
func requireMerged(t *testing.T, e *Engine, dir string) {
	t.Helper()
	ctx, rows := t.Context(), randomRows(4, tiny.Vocab, 30, 64)
	want := forwardKept(t, e, policy.RolePolicy, rows)
	c, err := checkpoint.Read(dir, false)
	require.NoError(t, err)
	merged := filepath.Join(t.TempDir(), "merged")
	_, err = checkpoint.Write(merged, c)
	require.NoError(t, err)
	plain := fromPool(t, 1)
	defer plain.Close()
	ours, err := cpu.Open(cpu.Options{Threads: 1})
	require.NoError(t, err)
	defer ours.Close()
	for _, c := range []struct {
		e   policy.Engine
		dir string
	}{{plain, merged}, {ours, merged}, {ours, dir}} {
		require.NoError(t, c.e.Load(ctx, policy.RolePolicy, c.dir, false))
		got := forwardKept(t, c.e, policy.RolePolicy, rows)
		for i := range rows {
			require.InDeltaSlice(t, want.LogProbs[i], got.LogProbs[i], outputBound)
			require.InDeltaSlice(t, want.Entropies[i], got.Entropies[i], outputBound)
		}
	}
	_, err = ours.Step(ctx, policy.RolePolicy, policy.StepOptions{Rule: optimizer.AdamW{Epsilon: 1}})
	require.ErrorIs(t, err, policy.ErrBadRequest)
	require.ErrorContains(t, err, "engine.kind: torch")
	require.ErrorIs(t, ours.Load(ctx, policy.RolePolicy, dir, true), checkpoint.ErrUnsupported)
}

// requireFrozenReference: a reference has the adapter of its folder, or none, and does not train. Training of another
// role does not change it.
func requireFrozenReference(t *testing.T, e *Engine, dir string) {
	t.Helper()
	ctx, rows := t.Context(), randomRows(4, tiny.Vocab, 30, 64)
	logprobs := func(role policy.Role) [][]float32 {
		out, err := e.Forward(
			ctx, policy.ForwardRequest{Role: role, Sequences: rows, Temperature: 1, Outputs: policy.OutLogProb},
		)
		require.NoError(t, err)
		return out.LogProbs
	}
	require.NoError(t, e.Load(ctx, policy.RolePolicy, dir, true))
	require.NoError(t, e.Load(ctx, policy.RoleReference, dir, false))
	require.Equal(t, logprobs(policy.RoleReference), logprobs(policy.RolePolicy), "a new adapter changes nothing")
	before := logprobs(policy.RoleReference)
	adapt(t, e, policy.RolePolicy, 40)
	require.Equal(t, before, logprobs(policy.RoleReference))
	require.NotEqual(t, before, logprobs(policy.RolePolicy))
	require.NoError(t, e.Load(ctx, policy.RoleReference, save(t, e, policy.RolePolicy), false))
	require.Equal(t, logprobs(policy.RolePolicy), logprobs(policy.RoleReference))

	_, err := e.Forward(
		ctx,
		policy.ForwardRequest{
			Role: policy.RoleReference, Sequences: rows, Temperature: 1, Outputs: policy.OutLogProb, Keep: true,
		},
	)
	require.ErrorIs(t, err, policy.ErrBadRequest)
	_, err = e.Step(ctx, policy.RoleReference, policy.StepOptions{Rule: optimizer.AdamW{Epsilon: 1}})
	require.ErrorContains(t, err, "a step of the reference, which is frozen where engine.lora is set")
	require.NoError(t, e.Load(ctx, policy.RoleReference, dir, false))
	require.Equal(
		t, digest(t, dir), digest(t, save(t, e, policy.RoleReference)),
		"one without an adapter is saved as it was loaded",
	)
}
