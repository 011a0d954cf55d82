package recipes

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/rl/method"
)

func resolved(t *testing.T, name string, set ...string) *Resolved {
	t.Helper()
	r, err := Resolve(name, "", set, nil, nil)
	require.NoError(t, err, name)
	return r
}

// Every preset is a recipe; its file, its canonical form and the schema agree.
func TestPresetsResolve(t *testing.T) {
	s := compiled(t)
	require.Len(t, Presets(), 75)
	for _, name := range Presets() {
		r := resolved(t, name)
		require.Equal(t, strings.TrimPrefix(name, "presets/"), r.Recipe.Name)
		text, ok := Source(name)
		require.True(t, ok)
		require.NoError(t, s.Validate(instance(t, text)), name)
		require.NoError(t, s.Validate(instance(t, r.JSON)), "resolved %s", name)
		again, err := Resolve("again", string(r.JSON), nil, nil, nil)
		require.NoError(t, err, name)
		require.Equal(t, r, again)
		require.NoError(t, r.Recipe.Method().Validate(), name)
		require.NotEmpty(t, Comment(name), name)
	}
}

// Settings that the papers' tables give.
func TestPresetsHoldTheTables(t *testing.T) {
	webshop := resolved(t, "presets/gspo-webshop").Recipe
	require.Equal(t, 0.03, webshop.Loss.ClipLow)
	require.Equal(t, 0.04, webshop.Loss.ClipHigh)
	require.Equal(t, 128, webshop.Optimizer.MinibatchRows)
	sampo := resolved(t, "presets/sampo-webshop").Recipe
	require.Equal(t, 0.003, sampo.Loss.ClipLow)
	require.Equal(t, 5, sampo.Resample.Dynamic.ColdStartSteps)
	require.Equal(t, 250, sampo.Steps)
	require.Equal(t, "k3", sampo.Loss.KL.Estimator)
	math := resolved(t, "presets/dapo-tir-math").Recipe
	require.Equal(t, 2, math.Resample.Dynamic.Tries)
	require.Equal(t, 0.28, math.Loss.ClipHigh)
	require.Nil(t, math.Loss.KL)
	require.Equal(t, "trajectory", math.Layout)
	spear := resolved(t, "presets/spear-dapo-math").Recipe
	require.Equal(t, 40.0, spear.Replay.CovHigh)
	require.Equal(t, Schedule{GammaHorizon: 300, MuHorizon: 200}, *spear.Schedule)
	require.Equal(t, 10.0, spear.Loss.DualClip)
	require.False(t, spear.Advantage.Std)
	drbot := resolved(t, "presets/drbot-alfworld").Recipe
	require.Nil(t, drbot.Replay)
	require.Zero(t, drbot.Reward.ToolStep)
	rstar := resolved(t, "presets/rstar2").Recipe
	require.Equal(t, []method.Stage{
		{FromStep: 301, MaxTokens: 14336, Problems: "same", Samples: 8},
		{FromStep: 386, Problems: "unsolved", Samples: 8, ResetOptimizer: true, RefreshReference: true},
	}, rstar.Schedule.Stages)
	require.Equal(t, 16, rstar.Resample.RoC.Keep)
	require.Equal(t, 1e-7, resolved(t, "presets/vspo").Recipe.Optimizer.LR)
}

// A twin is a recipe of calc on the CPU engine; its method is the preset's, and nothing that
// surrounds the method is planned.
func TestTwins(t *testing.T) {
	for _, name := range Presets() {
		of := resolved(t, name).Recipe
		twin := resolved(t, name, Twin(&of)...).Recipe
		require.Equal(t, 3, twin.Steps, name)
		require.Equal(t, Calc, twin.Environment.Name, name)
		require.Equal(t, 30, twin.Evaluation.Problems, name)
		for _, text := range twin.Planned() {
			require.Contains(t, text, "the pipeline does not build it yet", name) // not: no such environment
		}
		same := of.Method()
		got := twin.Method()
		require.Equal(t, of.Rollout.History > 0, twin.Rollout.History > 0, name)
		require.Equal(t, same.Layout, got.Layout, name)
		require.Equal(t, same.Advantage, got.Advantage, name)
		require.Equal(t, same.Loss, got.Loss, name)
		require.Equal(t, same.Filters, got.Filters, name)
		require.Equal(t, same.Replay != nil, got.Replay != nil, name)
		require.Equal(t, same.Resample.VSPO, got.Resample.VSPO, name)
		require.Equal(t, same.Resample.LowVariance, got.Resample.LowVariance, name)
		require.Equal(t, same.Resample.Dynamic != nil, got.Resample.Dynamic != nil, name)
		require.Equal(t, same.Resample.RoC != nil, got.Resample.RoC != nil, name)
		if same.Reward.Name != got.Reward.Name {
			require.Contains(t, strings.Join(TwinNotes(&of), "\n"), "scores by rstar2_outcome, for "+same.Reward.Name, name)
		}
	}
	aepo := resolved(t, "presets/aepo").Recipe
	require.Contains(t, TwinNotes(&aepo), "samples 4 flat rollouts for each prompt in the place of a tree (rollout.mode)")
	long := resolved(t, "presets/prs-long").Recipe
	require.Equal(t, []string{"judges by exact match (reward.judge)"}, TwinNotes(&long))
	require.Equal(t, "exact", resolved(t, "presets/prs-long", Twin(&long)...).Recipe.Reward.Judge)
	stages := resolved(t, "presets/rstar2").Recipe
	twin := resolved(t, "presets/rstar2", Twin(&stages)...).Recipe
	require.Equal(t, []method.Stage{
		{FromStep: 2, MaxTokens: 192, Problems: "same", Samples: 2},
		{FromStep: 3, Problems: "unsolved", Samples: 2, ResetOptimizer: true, RefreshReference: true},
	}, twin.Schedule.Stages)
}

// One preset of every method.
func TestMethods(t *testing.T) {
	byName := map[string][]string{}
	covered := 0
	for _, m := range Methods() {
		byName[m.Name] = m.Presets
		covered += len(m.Presets)
	}
	require.Equal(t, len(Presets()), covered)
	require.Equal(t, []string{"presets/sampo-alfworld", "presets/sampo-sokoban", "presets/sampo-webshop"}, byName["sampo"])
	require.Equal(t, []string{"presets/rstar2", "presets/rstar2-stage1", "presets/rstar2-stage2", "presets/rstar2-stage3"}, byName["rstar2"])
	require.Len(t, byName["grpo-sm"], 4)
	require.Len(t, Twins(), len(byName))
	require.Contains(t, Twins(), "presets/sampo-alfworld")
}

// What no run can do yet is listed, the environment first.
func TestPlanned(t *testing.T) {
	for _, name := range Builtin() {
		r := resolved(t, name).Recipe
		require.Empty(t, r.Planned(), name)
	}
	r := resolved(t, "presets/aepo").Recipe
	planned := r.Planned()
	require.Equal(t, "environment.name: deep_research: the environment is not built yet", planned[0])
	require.Contains(t, planned, "rollout.mode: tree: branching is not built yet")
	require.Contains(t, planned, "policy.checkpoint: runs start from models that are made here")
	long := resolved(t, "presets/prs-long").Recipe
	require.Contains(t, long.Planned(), "reward.judge: server: no client for a judge's server yet")
}

func TestResolveUnknownPreset(t *testing.T) {
	_, err := Resolve("presets/sampo-alfword", "", nil, nil, nil)
	require.EqualError(t, err, "recipe presets/sampo-alfword: no such built-in recipe; did you mean presets/sampo-alfworld?")
	_, err = Resolve("recipes/presets/aepoo.yaml", "", nil, nil, nil)
	require.EqualError(t, err, "recipe recipes/presets/aepoo.yaml: no such built-in recipe; did you mean presets/aepo?")
}

// A choice brings its own defaults, and no others.
func TestDefaultsByChoice(t *testing.T) {
	loss := func(name string) Loss {
		r, err := Parse("f", []byte(strings.Replace(small, "{name: ppo_clip}", "{name: "+name+"}", 1)))
		require.NoError(t, err, name)
		l := r.Loss
		require.Equal(t, "rollout", l.OldLogProbs)
		l.OldLogProbs = ""
		return l
	}
	const tokens, rows = "token-mean", "seq-mean-token-mean"
	for _, want := range []Loss{
		{Name: "ppo_clip", ClipLow: 0.2, ClipHigh: 0.28, Aggregation: tokens},
		{Name: "cispo", ClipLow: 1, ClipHigh: 0.2, Aggregation: tokens},
		{Name: "sapo", TauPositive: 1, TauNegative: 1.05, Aggregation: tokens},
		{Name: "gspo", ClipLow: 3e-3, ClipHigh: 4e-3, Aggregation: rows},
		{Name: "gspo_token", ClipLow: 3e-3, ClipHigh: 4e-3, Aggregation: rows},
		{Name: "gpg", Aggregation: tokens},
		{Name: "gppo", ClipLow: 0.2, ClipHigh: 0.2, Aggregation: tokens},
		{Name: "ce_gppo", ClipLow: 0.2, ClipHigh: 0.2, Beta1: 0.5, Beta2: 1, Aggregation: tokens},
		{Name: "aepo_clip", ClipLow: 0.2, ClipHigh: 0.2, Aggregation: tokens},
		{Name: "clip_cov", ClipLow: 0.2, ClipHigh: 0.28, CovLow: 1, CovHigh: 5, CovRatio: 2e-4, CovScope: "minibatch", Aggregation: tokens},
		{Name: "kl_cov", CovRatio: 2e-3, CovCoefficient: 1, Aggregation: tokens},
	} {
		require.Equal(t, want, loss(want.Name))
	}
	advantage := func(text string) Advantage {
		loss := "{name: ppo_clip}"
		if strings.Contains(text, "gae") {
			loss = "{name: ppo_clip, value: {}}"
		}
		r, err := Parse("f", []byte(strings.NewReplacer("{name: grpo}", text, "loss: {name: ppo_clip}", "layout: turns\nloss: "+loss).Replace(small)))
		require.NoError(t, err, text)
		return r.Advantage
	}
	for text, want := range map[string]Advantage{
		"{name: grpo}":                        {Name: "grpo", Std: true, SingleGroup: "raw", Stats: "turn_rows"},
		"{name: rloo}":                        {Name: "rloo", SingleGroup: "raw", Stats: "turn_rows"},
		"{name: opo}":                         {Name: "opo", SingleGroup: "raw"},
		"{name: gpg}":                         {Name: "gpg", SingleGroup: "raw", Idle: "equal"},
		"{name: reinforce_pp}":                {Name: "reinforce_pp", Gamma: 1, Returns: "carry"},
		"{name: reinforce_pp_baseline}":       {Name: "reinforce_pp_baseline"},
		"{name: gae}":                         {Name: "gae", Gamma: 1, Lambda: 0.95, Returns: "carry"},
		"{name: gigpo}":                       {Name: "gigpo", Std: true, SingleGroup: "raw", Stats: "turn_rows", Gamma: 0.95, Omega: 1, Anchors: "exact"},
		"{name: gigpo, anchors: similar}":     {Name: "gigpo", Std: true, SingleGroup: "raw", Stats: "turn_rows", Gamma: 0.95, Omega: 1, Anchors: "similar", Similarity: 0.95, Autojunk: true},
		"{name: empg}":                        {Name: "empg", Std: true, SingleGroup: "raw", Stats: "turn_rows", K: 1, KPrime: 1, Zeta: 0.05},
		"{name: grpo, entropy_aware: {}}":     {Name: "grpo", Std: true, SingleGroup: "raw", Stats: "turn_rows", EntropyAware: &method.EntropyAware{Weight: 0.2, Scope: "group", Form: "linear"}},
		"{name: rloo, invalid_penalty: 0.25}": {Name: "rloo", SingleGroup: "raw", Stats: "turn_rows", InvalidPenalty: 0.25},
	} {
		require.Equal(t, want, advantage(text), text)
	}
	r, err := Parse("f", []byte(strings.Replace(small, "{name: ppo_clip}", "{name: ppo_clip, kl: {coefficient: 0.1}}", 1)))
	require.NoError(t, err)
	require.Equal(t, method.KL{Coefficient: 0.1, In: "loss", Estimator: "k3", Controller: "fixed"}, *r.Loss.KL)
	text, err := r.Canonical()
	require.NoError(t, err)
	require.NotContains(t, string(text), "controller", "recipes of before it read the field keep their canonical form")
	r, err = Parse("f", []byte(strings.Replace(small, "{name: ppo_clip}", "{name: ppo_clip, kl: {coefficient: 0.1, controller: adaptive, target: 6}}", 1)))
	require.NoError(t, err)
	require.Equal(t, method.KL{Coefficient: 0.1, In: "loss", Estimator: "k3", Controller: "adaptive", Target: 6, Horizon: 10000}, *r.Loss.KL)
	r, err = Parse("f", []byte(strings.NewReplacer("{name: grpo}", "{name: reinforce_pp}", "{name: ppo_clip}", "{name: ppo_clip, kl: {coefficient: 0.1, in: reward, controller: adaptive, target: 6}}").Replace(small)))
	require.NoError(t, err)
	require.Equal(t, method.KL{Coefficient: 0.1, In: "reward", Estimator: "k1", Controller: "adaptive", Target: 6, Horizon: 10000}, *r.Loss.KL)
}

// Recipes that were run before there were other methods keep their names in the record.
func TestDigestsOfEarlierRecipes(t *testing.T) {
	for name, digest := range map[string]string{
		"gsm8k-offline":  "c4ced68691a0f2a1e7743e232876c3d1a227d2f540e794f306b6d0d5c033c5c4",
		"openai-offline": "ffdaf68a856ad917b3aac7939de8e49c9a71e1f44d95cf16f7505ea247f49b3a",
		"quickstart":     "f67a33c4ae53fcca40c1648cea0d90263fccb247f8fb7b17301c58719e5e6eab",
	} {
		text, ok := Source(name)
		require.True(t, ok)
		r, err := Resolve(name, strings.Replace(string(text), "\n  min_tier: landlock", "", 1), nil, nil, nil) // they named none
		require.NoError(t, err)
		require.Equal(t, digest, r.Digest, name)
	}
}

// Records of before recipes had a section engine hold it as policy.engine.
func TestEngineOfEarlierRecipes(t *testing.T) {
	text := strings.Replace(small, "\npolicy:", "\npolicy:\n  engine: cpu", 1)
	if text == small {
		text = small + "\npolicy: {engine: cpu, layers: 3}\n"
	}
	r, err := Parse("f", []byte(text))
	require.NoError(t, err)
	require.Equal(t, EngineCPU, r.Engine.Kind)
	_, err = Parse("f", []byte(strings.Replace(text, "engine: cpu", "engine: gpu", 1)))
	require.ErrorContains(t, err, "policy.engine: no such field")
	r, err = Parse("f", []byte(small))
	require.NoError(t, err)
	require.Equal(t, Engine{Kind: EngineAuto, Devices: 1, Hosts: 1, Dtype: "auto", Deterministic: true, Checkpointing: "auto"}, r.Engine)
	_, err = Parse("f", []byte(small+"\nengine: {kind: cpu, dtype: bfloat16}\n"))
	require.ErrorContains(t, err, "engine.dtype: has no place beside engine.kind cpu")
}
