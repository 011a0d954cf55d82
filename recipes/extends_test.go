package recipes

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
)

// extending parses a file that may extend the given files, as well as the recipes that come with the program.
func extending(files map[string]string, text string, set ...string) (*Recipe, error) {
	d := newDecoder("mine.yaml")
	d.source = func(name string) ([]byte, bool) {
		if text, ok := files[name]; ok {
			return []byte(text), true
		}
		return embedded(name)
	}
	var overrides []override
	for _, s := range set {
		overrides = append(overrides, override{origin: "--set " + s, text: s})
	}
	return d.parse([]byte(text), overrides)
}

// A user's file extends a preset: it inherits everything that the file does not set.
func TestExtendAPreset(t *testing.T) {
	ppo := resolved(t, "presets/ppo").Recipe
	r, err := Resolve("mine.yaml",
		"extends: presets/ppo\nname: mine\nsteps: 7\noptimizer: {lr: 0.5}\nloss:\n  value: {clip: 0.25}\n", nil, nil,
		nil)
	require.NoError(t, err)
	want := ppo
	want.Name, want.Description, want.Steps, want.Optimizer.LR = "mine", "", 7, 0.5
	value := *ppo.Loss.Value()
	value.Clip = 0.25
	want.Loss.Terms = maps.Clone(want.Loss.Terms)
	want.Loss.Terms["value"] = &value
	require.Equal(t, want, r.Recipe)
	require.NotContains(t, string(r.JSON), extendsField, "the record holds the whole recipe")

	again, err := Resolve("mine.yaml", string(r.JSON), nil, nil, nil)
	require.NoError(t, err)
	require.Equal(t, r, again)
}

// A list lays files over each other in order. A chain continues through files that extend other files.
func TestExtendSeveral(t *testing.T) {
	files := map[string]string{
		"a": "extends: quickstart\nseed: 5\nsteps: 10\nwarm_start: {levels: [2]}\n",
		"b": "seed: 6\nenvironment: {level_shares: {\"2\": 1}}\n",
	}
	r, err := extending(files, "extends: [a, b]\nname: mine\nsteps: 11\n")
	require.NoError(t, err)
	require.Equal(t, uint64(6), r.Seed)
	require.Equal(t, 11, r.Steps)
	require.Equal(t, []int{2}, r.WarmStart.Levels, "a list is replaced whole")
	require.Equal(t, map[string]float64{"2": 1}, r.Environment.LevelShares, "so is a mapping of numbers")
	require.Equal(t, 0.28, r.WarmStart.Teacher.WrongOrder, "the rest of a section is inherited")
	r, err = extending(files, "extends: [b, a]\nname: mine\n")
	require.NoError(t, err)
	require.Equal(t, uint64(5), r.Seed)
}

// null removes an inherited entry: a section that may be off is off, and a field has its default.
func TestNullTakesOut(t *testing.T) {
	r, err := extending(nil, "extends: quickstart\nname: mine\nresample: {roc: null}\nseed: null\nevaluation: null\n")
	require.NoError(t, err)
	require.Nil(t, r.Resample.RoC())
	require.NotNil(t, r.Resample.VSPO())
	require.Equal(t, uint64(1), r.Seed)
	require.True(t, r.Evaluation.Greedy)
	_, err = extending(nil, "extends: quickstart\nname: mine\noptimizer: {epochs: null}\n")
	require.EqualError(t, err, "mine.yaml:3: optimizer.epochs: must be a whole number, got nothing",
		"nothing is inherited there")
}

// Another choice removes inherited fields that no longer apply. A field that the file itself sets is still a fault.
func TestChoicesOfAnExtendingFile(t *testing.T) {
	r, err := extending(nil,
		"extends: presets/ppo\nname: mine\nadvantage: {name: grpo}\nloss: {name: sapo, kl: null, value: null}\n")
	require.NoError(t, err)
	require.NotContains(t, r.Advantage.Params, "lambda")
	require.NotContains(t, r.Loss.Params, "clip_low")
	require.Equal(t, 1.05, r.Loss.Params["tau_negative"])
	require.Equal(t, "recompute", r.Loss.OldLogProbs, "every loss reads it")

	r, err = extending(nil,
		"extends: quickstart\nname: mine\nenvironment: {name: openai}\nreward: {name: reference}\n")
	require.NoError(t, err)
	require.Zero(t, r.WarmStart, "it clones calc's teacher, like environment.level_shares")
	require.NotNil(t, r.Resample.RoC(), "what fits stays")

	_, err = extending(nil, "extends: presets/ppo\nname: mine\nloss:\n  name: sapo\n  clip_low: 0.1\n")
	require.ErrorContains(t, err, "mine.yaml:5: loss.clip_low: cannot be combined with loss sapo")
	files := map[string]string{"bad": "extends: quickstart\nloss:\n  name: sapo\n  clip_low: 0.1\n"}
	_, err = extending(files, "extends: bad\nname: mine\n")
	require.ErrorContains(t, err, "recipes/bad.yaml:4: loss.clip_low: cannot be combined with loss sapo")
}

// Every fault names the file and line where the user wrote it.
func TestFaultsOfExtendingFiles(t *testing.T) {
	files := map[string]string{
		"bad":    "extends: quickstart\nsteps: 0\nrollout:\n  promts: 3\n",
		"text":   "steps: [\n",
		"ring/a": "extends: ring/b\n",
		"ring/b": "steps: 1\nextends: [quickstart, ring/a]\n",
		"twice":  "seed: 1\nseed: 2\n",
	}
	for _, c := range []struct{ text, want string }{
		{"extends: quikstart\nname: mine\n",
			"mine.yaml:1: extends: no recipe quikstart comes with the program; did you mean quickstart?"},
		{"name: mine\nextends: [quickstart, other.yaml]\n",
			"mine.yaml:2: extends: no recipe other.yaml comes with the program, and no other can be extended; " +
				"`ropewalk methods` lists the presets"},
		{"extends: presets/sapo\nname: mine\n",
			"mine.yaml:1: extends: no recipe presets/sapo comes with the program; did you mean presets/bases/sapo?"},
		{"extends: {a: b}\n", "mine.yaml:1: extends: must be a name or a list of names, got a mapping"},
		{"extends: []\n", "mine.yaml:1: extends: must be a name or a list of names, got a list"},
		{"extends: [quickstart, 3]\n", "mine.yaml:1: extends: must be a name or a list of names, got 3"},
		{"extends: quickstart\nextends: quickstart\n", "mine.yaml:2: extends: is there twice"},
		{"extends: quickstart\n", "mine.yaml:1: name: is required"},
		{"extends: ring/a\nname: mine\n",
			"recipes/ring/b.yaml:2: extends: ring/a extends itself: ring/a → ring/b → ring/a"},
		{"extends: text\nname: mine\n", "recipes/text.yaml:1: is not YAML: did not find expected " +
			"node content: a value is missing, or a bracket is not closed"},
		{"extends: bad\nname: mine\nseed: -1\n", "mine.yaml:3: seed: must be ≥ 0, got -1\n" +
			"recipes/bad.yaml:2: steps: must be ≥ 1, got 0\nrecipes/bad.yaml:4: rollout.promts: no such field; did " +
			"you mean rollout.prompts?"},
		{"extends: [quickstart, twice]\nname: mine\n", "recipes/twice.yaml:2: seed: is there twice; first on line 1"},
		{"extends: quickstart\nname: mine\nrollout:\n  samples_per_prompt: 4\n  oversample: 4\n",
			"mine.yaml:5: rollout.samples_per_prompt: is there twice; first on line 4"},
		{"extends: quickstart\nname: mine\nresample:\n  roc: {keep: 32}\n",
			"mine.yaml:4: resample.roc.keep: must be ≤ rollout.samples_per_prompt (8), got 32"},
		{"extends: quickstart\nname: mine\nrollout: {samples_per_prompt: 3}\n",
			"recipes/quickstart.yaml:72: resample.roc.keep: must be ≤ rollout.samples_per_prompt (3), got 4"},
	} {
		r, err := extending(files, c.text)
		require.Nil(t, r, c.text)
		require.EqualError(t, err, c.want, c.text)
	}
	_, err := extending(nil, "extends: quickstart\nname: mine\n", "extends=presets/ppo")
	require.EqualError(t, err,
		"--set extends=presets/ppo: belongs in a recipe's file: it is read before any other field")
}

// Files and overrides may use the recorded name of a field.
func TestRecordedNames(t *testing.T) {
	for _, text := range []string{"rollout: {oversample: 6}", "rollout: {samples_per_prompt: 6}"} {
		r, err := extending(nil, "extends: quickstart\nname: mine\n"+text+"\n")
		require.NoError(t, err)
		require.Equal(t, 6, r.Rollout.SamplesPerPrompt)
	}
	for _, set := range []string{"rollout.oversample=6", "rollout.samples_per_prompt=6",
		"rollout={prompts: 8, oversample: 6}"} {
		r, err := Resolve("quickstart", "", []string{set}, nil, nil)
		require.NoError(t, err, set)
		require.Equal(t, 6, r.Recipe.Rollout.SamplesPerPrompt, set)
		require.Contains(t, string(r.JSON), `"oversample": 6`)
	}
}

// The schema distinguishes a complete recipe from one that extends others.
func TestSchemaOfExtendingFiles(t *testing.T) {
	s := compiled(t)
	for _, text := range []string{
		"extends: presets/ppo\nname: mine\nloss: {clip_low: 0.1}\n",
		"extends: [quickstart, presets/bases/gigpo]\nname: mine\nresample: null\n",
	} {
		require.NoError(t, s.Validate(instance(t, []byte(text))), text)
	}
	for _, text := range []string{
		"extends: presets/ppo\n",
		"extends: mine.yaml\nname: mine\n",
		"extends: []\nname: mine\n",
		"extends: presets/ppo\nname: mine\nloss: {clip: 0.1}\n",
		"extends: presets/ppo\nname: mine\nloss: {name: sapo, clip_low: 0.1}\n",
		"extends: presets/ppo\nname: mine\nsteps: 0\n",
		"name: mine\nsteps: 4\n",
	} {
		require.Error(t, s.Validate(instance(t, []byte(text))), text)
	}
}
