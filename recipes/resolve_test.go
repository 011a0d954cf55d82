package recipes

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/rl/resample"
)

func TestResolveBuiltin(t *testing.T) {
	require.Equal(t, []string{
		"cold-start",
		"household",
		"household-novice",
		"openai-offline",
		"quickstart",
		"qwen3-4b-aepo",
		"qwen3-4b-prs-vspo",
		"qwen3-4b-rstar2",
		"qwen3-4b-sampo",
		"qwen3-4b-spear",
		"reasoning",
		"searchqa",
		"searchqa-aepo",
		"searchqa-hops",
		"shop",
		"smollm2",
		"sokoban",
	}, Builtin())
	for _, name := range Builtin() {
		a, err := Resolve(name, "", nil, nil, nil)
		require.NoError(t, err)
		b, err := Resolve(name, "", nil, nil, nil)
		require.NoError(t, err)
		require.Equal(t, name, a.Recipe.Name)
		require.Equal(t, a, b)
		require.Len(t, a.Digest, 64)
	}
}

// The canonical form is a recipe that resolves to itself.
func TestCanonicalIsAFixedPoint(t *testing.T) {
	for _, name := range Builtin() {
		a, err := Resolve(name, "", nil, nil, nil)
		require.NoError(t, err)
		b, err := Resolve("again", string(a.JSON), nil, nil, nil)
		require.NoError(t, err)
		require.Equal(t, a, b)
	}
}

func TestResolveOverrides(t *testing.T) {
	seed, steps := uint64(18446744073709551615), 7
	r, err := Resolve("small.yaml", small, []string{
		"resample.roc.keep=4", "resample.vspo.alpha=3", "policy.layers=1", "warm_start.levels=[2]",
		"environment.level_shares.2=0.3", "environment.level_shares.4=0.7", "steps=9", "description='a: b'",
	}, &seed, &steps)
	require.NoError(t, err)
	require.Equal(t, 4, r.Recipe.Resample.RoC().Keep)
	require.Equal(t, resample.VSPO{Alpha: 3, Temperature: 0.1, MinVariance: 1e-6, Draws: "value", Weights: "smoothed"},
		*r.Recipe.Resample.VSPO())
	require.Equal(t, 1, r.Recipe.Policy.Layers)
	require.Equal(t, []int{2}, r.Recipe.WarmStart.Levels)
	require.Equal(t, map[string]float64{"2": 0.3, "4": 0.7}, r.Recipe.Environment.LevelShares)
	require.Equal(t, 7, r.Recipe.Steps)
	require.Equal(t, seed, r.Recipe.Seed)
	require.Equal(t, "a: b", r.Recipe.Description)

	r, err = Resolve("small.yaml", small, []string{"resample.roc=null", "resample.roc.keep=5"}, nil, nil)
	require.NoError(t, err)
	require.Equal(t, 5, r.Recipe.Resample.RoC().Keep)
	r, err = Resolve("small.yaml", small, []string{"resample.roc=null"}, nil, nil)
	require.NoError(t, err)
	require.Nil(t, r.Recipe.Resample.RoC())
}

func TestBadOverrides(t *testing.T) {
	zero := 0
	for _, c := range []struct {
		set   []string
		steps *int
		want  string
	}{
		{set: []string{"resample.roc.kep=3"},
			want: `--set resample.roc.kep=3: no such field; did you mean resample.roc.keep?`},
		{set: []string{"resmple.roc.keep=3"},
			want: `--set resmple.roc.keep=3: no such field; did you mean resample.roc.keep?`},
		{set: []string{"steps"}, want: `--set steps: must be path=value`},
		{set: []string{"=4"}, want: `--set =4: must be path=value`},
		{set: []string{"steps.x=4"}, want: `--set steps.x=4: no such field; steps is a whole number`},
		{set: []string{"steps=[4"},
			want: `--set steps=[4: the value is not YAML: line 1: did not find expected ',' or ']'`},
		{set: []string{"steps="}, want: `--set steps=: must be a whole number, got nothing`},
		{set: []string{"rollout.prompts=x"}, want: `--set rollout.prompts=x: must be a whole number, got "x"`},
		{set: []string{"resample.roc.keep=32"},
			want: `--set resample.roc.keep=32: must be ≤ rollout.samples_per_prompt (16), got 32`},
		{set: []string{"rollout.oversample=4"},
			want: "--set rollout.oversample=4: resample.roc.keep: must be ≤ rollout.samples_per_prompt (4), got 8 " +
				"(small.yaml:12)"},
		{set: []string{"resample.roc={kep: 3}"}, want: `--set resample.roc={kep: 3}: resample.roc.keep: is required
--set resample.roc={kep: 3}: resample.roc.kep: no such field; did you mean resample.roc.keep?`},
		{set: []string{"environment.level_shares.5=1"},
			want: `--set environment.level_shares.5=1: no such key; there are 2, 3, 4`},
		{set: []string{"warm_start.levels.0=2"},
			want: `--set warm_start.levels.0=2: no such field; warm_start.levels is a list of whole numbers`},
		{set: []string{"schedule.stages.0.lr=1"},
			want: `--set schedule.stages.0.lr=1: no such field; schedule.stages is a list of mappings`},
		{set: []string{"loss.clip_low=0.1", "loss.name=sapo"},
			want: `--set loss.clip_low=0.1: cannot be combined with loss sapo; it belongs to ppo_clip, cispo, ` +
				`gspo, gspo_token, gppo, ce_gppo, aepo_clip, clip_cov`},
		{set: []string{"resample.vspo=&a [*a]"}, want: `--set resample.vspo=&a [*a]: must be a mapping, got a list`},
		{steps: &zero, want: `--steps=0: must be ≥ 1, got 0`},
	} {
		r, err := Resolve("small.yaml", small, c.set, nil, c.steps)
		require.Nil(t, r)
		require.Error(t, err, c.want)
		require.Equal(t, c.want, err.Error())
	}
}

func TestResolveUnknown(t *testing.T) {
	_, err := Resolve("quikstart", "", nil, nil, nil)
	require.EqualError(t, err, "recipe quikstart: no such built-in recipe; did you mean quickstart?")
	_, err = Resolve("recipes/quickstart.yaml", "", nil, nil, nil)
	require.EqualError(t, err, "recipe recipes/quickstart.yaml: no such built-in recipe; did you mean quickstart?")
	_, err = Resolve("other", "", nil, nil, nil)
	require.EqualError(t, err,
		"recipe other: no such built-in recipe; there are cold-start, household, household-novice, "+
			"openai-offline, quickstart, qwen3-4b-aepo, qwen3-4b-prs-vspo, qwen3-4b-rstar2, qwen3-4b-sampo, "+
			"qwen3-4b-spear, reasoning, searchqa, searchqa-aepo, searchqa-hops, shop, smollm2, sokoban and "+
			"presets/NAME (another recipe is given as a file or inline)")
	_, err = Resolve("", "steps: 1", nil, nil, nil)
	require.ErrorContains(t, err, "inline recipe:1: advantage: is required")
}

func FuzzParse(f *testing.F) {
	for _, name := range Builtin() {
		text, _ := Source(name)
		f.Add(string(text), "resample.roc.keep=3")
	}
	for _, c := range append(append([]bad{}, badFields...), badDocuments...) {
		f.Add(c.recipe(), "a.b=c")
	}
	f.Fuzz(func(t *testing.T, text, set string) {
		r, err := ParseWith("f", []byte(text), []string{set})
		if (r == nil) == (err == nil) {
			t.Fatalf("a recipe and an error, or neither: %v, %v", r, err)
		}
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Fatal("an error without text")
			}
			return
		}
		again, err := r.Canonical()
		require.NoError(t, err)
		_, err = Parse("again", again)
		require.NoError(t, err)
	})
}
