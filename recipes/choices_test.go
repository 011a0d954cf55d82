package recipes

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/rl/choice"
	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/rl/method"
)

func resolved(t *testing.T, name string, set ...string) *Resolved {
	t.Helper()
	r, err := Resolve(name, "", set, nil, nil)
	require.NoError(t, err, name)
	return r
}

// Every preset is a valid recipe. Its file, its canonical form and the schema agree.
func TestPresetsResolve(t *testing.T) {
	s := compiled(t)
	require.Len(t, Presets(), 126)
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

// The presets cover every method.
func TestMethods(t *testing.T) {
	byName := map[string][]string{}
	covered := 0
	for _, m := range Methods() {
		byName[m.Name] = m.Presets
		covered += len(m.Presets)
	}
	require.Equal(t, len(Presets()), covered)
	require.Equal(t, []string{"presets/sampo-alfworld", "presets/sampo-sokoban", "presets/sampo-webshop"},
		byName["sampo"])
	require.Equal(t, []string{"presets/rstar2", "presets/rstar2-sft", "presets/rstar2-stage1",
		"presets/rstar2-stage2", "presets/rstar2-stage3", "presets/rstar2-with-uniform-positives",
		"presets/rstar2-without-roc"}, byName["rstar2"])
	require.Len(t, byName["grpo-sm"], 4)
}

// Planned lists the settings that a recipe leaves open.
func TestPlanned(t *testing.T) {
	for _, name := range Builtin() {
		r := resolved(t, name).Recipe
		require.ElementsMatch(t, plannedLike(t, name), r.Planned(), name)
	}
	for _, name := range []string{"presets/aepo", "presets/arpo"} {
		r := resolved(t, name).Recipe
		require.Empty(t, r.Planned(), name)
	}
	require.Equal(t, "environment.settings.train: names no file of questions; set it to a path, s3://BUCKET/KEY or "+
		"https://…",
		resolved(t, "presets/rstar2").Recipe.Planned()[0])
	long := resolved(t, "presets/prs-long").Recipe
	require.NotContains(t, strings.Join(long.Planned(), "\n"), "judge")
}

func TestResolveUnknownPreset(t *testing.T) {
	_, err := Resolve("presets/sampo-alfword", "", nil, nil, nil)
	require.EqualError(t, err,
		"recipe presets/sampo-alfword: no such built-in recipe; did you mean presets/sampo-alfworld?")
	_, err = Resolve("recipes/presets/aepoo.yaml", "", nil, nil, nil)
	require.EqualError(t, err, "recipe recipes/presets/aepoo.yaml: no such built-in recipe; did you mean presets/aepo?")
}

// A choice brings its own defaults and no others.
func TestDefaultsByChoice(t *testing.T) {
	parsed := func(name string) Loss {
		r, err := Parse("f", []byte(strings.Replace(small, "{name: ppo_clip}", "{name: "+name+"}", 1)))
		require.NoError(t, err, name)
		l := r.Loss
		require.Equal(t, "rollout", l.OldLogProbs)
		require.Equal(t, choice.Params{"entropy": 0.0}, l.Terms)
		l.OldLogProbs, l.Terms = "", nil
		return l
	}
	const tokens, rows = "token-mean", "seq-mean-token-mean"
	for _, want := range []Loss{
		{Name: "ppo_clip", Params: choice.Params{"clip_low": 0.2, "clip_high": 0.28, "dual_clip": 0.0},
			Aggregation: tokens},
		{Name: "cispo", Params: choice.Params{"clip_low": 1.0, "clip_high": 0.2, "mask": false}, Aggregation: tokens},
		{Name: "sapo", Params: choice.Params{"tau_positive": 1.0, "tau_negative": 1.05}, Aggregation: tokens},
		{Name: "gspo", Params: choice.Params{"clip_low": 3e-3, "clip_high": 4e-3}, Aggregation: rows},
		{Name: "gspo_token", Params: choice.Params{"clip_low": 3e-3, "clip_high": 4e-3}, Aggregation: rows},
		{Name: "gpg", Aggregation: tokens},
		{Name: "gppo", Params: choice.Params{"clip_low": 0.2, "clip_high": 0.2}, Aggregation: tokens},
		{Name: "ce_gppo", Params: choice.Params{"clip_low": 0.2, "clip_high": 0.2, "beta1": 0.5, "beta2": 1.0},
			Aggregation: tokens},
		{Name: "aepo_clip", Params: choice.Params{"clip_low": 0.2, "clip_high": 0.2, "dual_clip": 0.0},
			Aggregation: tokens},
		{Name: "clip_cov", Params: choice.Params{"clip_low": 0.2, "clip_high": 0.28, "cov_low": 1.0, "cov_high": 5.0,
			"cov_ratio": 2e-4, "cov_scope": "minibatch"}, Aggregation: tokens},
		{Name: "kl_cov", Params: choice.Params{"cov_ratio": 2e-3, "cov_coefficient": 1.0}, Aggregation: tokens},
	} {
		require.Equal(t, want, parsed(want.Name))
	}
	advantage := func(text string) Advantage {
		with := "{name: ppo_clip}"
		if strings.Contains(text, "gae") {
			with = "{name: ppo_clip, value: {}}"
		}
		r, err := Parse("f",
			[]byte(strings.NewReplacer("{name: grpo}", text, "loss: {name: ppo_clip}", "layout: turns\nloss: "+
				with).Replace(small)))
		require.NoError(t, err, text)
		return r.Advantage
	}
	type params = choice.Params
	for text, want := range map[string]Advantage{
		"{name: grpo}": {Name: "grpo", Params: params{"std": true, "single_group": "raw",
			"stats": "turn_rows", "invalid_penalty": 0.0}},
		"{name: rloo}": {Name: "rloo",
			Params: params{"single_group": "raw", "stats": "turn_rows", "invalid_penalty": 0.0}},
		"{name: opo}": {Name: "opo",
			Params: params{"single_group": "raw", "invalid_penalty": 0.0}},
		"{name: gpg}": {Name: "gpg", Params: params{"single_group": "raw", "idle": "equal",
			"invalid_penalty": 0.0}},
		"{name: reinforce_pp}":          {Name: "reinforce_pp", Params: params{"gamma": 1.0, "returns": "carry"}},
		"{name: reinforce_pp_baseline}": {Name: "reinforce_pp_baseline"},
		"{name: gae}": {Name: "gae", Params: params{"gamma": 1.0, "lambda": 0.95,
			"returns": "carry"}},
		"{name: gigpo}": {Name: "gigpo", Params: params{"std": true, "single_group": "raw",
			"stats": "turn_rows", "gamma": 0.95, "omega": 1.0, "anchors": "exact", "anchor": "observation",
			"invalid_penalty": 0.0}},
		"{name: gigpo, anchors: similar}": {Name: "gigpo", Params: params{"std": true, "single_group": "raw",
			"stats": "turn_rows", "gamma": 0.95, "omega": 1.0, "anchors": "similar", "anchor": "observation",
			"similarity": 0.95, "autojunk": true, "invalid_penalty": 0.0}},
		"{name: empg}": {Name: "empg", Params: params{"std": true, "single_group": "raw",
			"stats": "turn_rows", "k": 1.0, "k_prime": 1.0, "zeta": 0.05, "invalid_penalty": 0.0}},
		"{name: grpo, entropy_aware: {}}": {Name: "grpo", Params: params{"std": true, "single_group": "raw",
			"stats": "turn_rows", "invalid_penalty": 0.0}, EntropyAware: &method.EntropyAware{Weight: 0.2,
			Scope: "group", Form: "linear"}},
		"{name: rloo, invalid_penalty: 0.25}": {Name: "rloo",
			Params: params{"single_group": "raw", "stats": "turn_rows", "invalid_penalty": 0.25}},
	} {
		want.Prefixes = method.PrefixesPerLeaf
		require.Equal(t, want, advantage(text), text)
	}
	r, err := Parse("f", []byte(strings.Replace(small, "{name: ppo_clip}", "{name: ppo_clip, kl: {coefficient: 0.1}}",
		1)))
	require.NoError(t, err)
	require.Equal(t, loss.KLSettings{Coefficient: 0.1, In: "loss", Estimator: "k3", Controller: "fixed"}, *r.Loss.KL())
	text, err := r.Canonical()
	require.NoError(t, err)
	require.NotContains(t, string(text), "controller", "recipes of before it read the field keep their canonical form")
	r, err = Parse("f",
		[]byte(strings.Replace(small, "{name: ppo_clip}",
			"{name: ppo_clip, kl: {coefficient: 0.1, controller: adaptive, target: 6}}", 1)))
	require.NoError(t, err)
	require.Equal(t, loss.KLSettings{Coefficient: 0.1, In: "loss", Estimator: "k3", Controller: "adaptive", Target: 6,
		Horizon: 10000}, *r.Loss.KL())
	r, err = Parse("f",
		[]byte(strings.NewReplacer("{name: grpo}", "{name: reinforce_pp}", "{name: ppo_clip}",
			"{name: ppo_clip, kl: {coefficient: 0.1, in: reward, controller: adaptive, target: 6}}").Replace(small)))
	require.NoError(t, err)
	require.Equal(t, loss.KLSettings{Coefficient: 0.1, In: "reward", Estimator: "k1", Controller: "adaptive", Target: 6,
		Horizon: 10000}, *r.Loss.KL())
}

// Recipes that ran before other methods existed keep their digests.
func TestDigestsOfEarlierRecipes(t *testing.T) {
	for name, digest := range map[string]string{
		"openai-offline": "ffdaf68a856ad917b3aac7939de8e49c9a71e1f44d95cf16f7505ea247f49b3a",
		"quickstart":     "f67a33c4ae53fcca40c1648cea0d90263fccb247f8fb7b17301c58719e5e6eab",
	} {
		text, ok := Source(name)
		require.True(t, ok)
		var was []string
		if name == "quickstart" {
			was = []string{"rollout.mode=staged", "warm_start.levels=[2, 3]", "optimizer.lr=0.0002"}
		}
		// those recipes did not set min_tier
		r, err := Resolve(name, strings.Replace(string(text), "\n  min_tier: landlock", "", 1), was, nil, nil)
		require.NoError(t, err)
		require.Equal(t, digest, r.Digest, name)
	}
}

func TestEngineOfARecipe(t *testing.T) {
	r, err := Parse("f", []byte(small))
	require.NoError(t, err)
	require.Equal(t, Engine{Kind: "auto", Devices: 1, Hosts: 1, Dtype: "auto", Deterministic: true,
		Checkpointing: "auto"}, r.Engine)
	_, err = Parse("f", []byte(small+"\nengine: {kind: cpu, dtype: bfloat16}\n"))
	require.ErrorContains(t, err, "engine.dtype: cannot be combined with engine.kind cpu")
}

// plannedLike returns what a built-in recipe plans: what the preset that it extends does.
func plannedLike(t *testing.T, name string) []string {
	t.Helper()
	for _, base := range extendedBy(name) {
		if strings.HasPrefix(base, "presets/") && !strings.HasPrefix(base, "presets/bases/") {
			r := resolved(t, base).Recipe
			return r.Planned()
		}
	}
	return nil
}
