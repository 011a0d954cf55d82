package recipes_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/recipes"
)

// listed lists the fields of a recipe by their paths.
func listed(t *testing.T, document []byte) map[string]recipes.Listed {
	t.Helper()
	all, err := recipes.List(document)
	require.NoError(t, err)
	out := map[string]recipes.Listed{}
	for _, l := range all {
		require.NotContains(t, out, l.Path)
		out[l.Path] = l
	}
	return out
}

func TestListOfTheQuickstart(t *testing.T) {
	r, err := recipes.Resolve("quickstart", "", []string{"optimizer.lr=0.001", "evaluation.top_k=5"}, nil, nil)
	require.NoError(t, err)
	fields := listed(t, r.JSON)
	for path, want := range map[string][2]string{
		"seed":                       {"1", "1"},
		"steps":                      {"85", ""},
		"optimizer.lr":               {"0.001", ""},
		"optimizer.decay":            {`"linear"`, `"constant"`},
		"optimizer.epsilon":          {"1e-8", "1e-8"},
		"optimizer.minibatch_rows":   {"0", "0"}, // a quiet field, which the document leaves out
		"evaluation.top_k":           {"5", "0"},
		"resample.roc":               {"on", "off"},
		"replay":                     {"off", "off"},
		"rollout.samples_per_prompt": {"8", ""}, // recorded as oversample
		"policy.checkpoint":          {"off", "off"},
		"loss.clip_high":             {"0.28", "0.28"},
	} {
		require.Equal(t, want, [2]string{fields[path].Value, fields[path].Default}, path)
		require.NotEmpty(t, fields[path].Doc, path)
	}
	require.NotContains(t, fields, "environment.expert", "a field of another environment")
	require.True(t, fields["seed"].Standard())
	require.False(t, fields["optimizer.decay"].Standard())
}

// Every recipe that comes with the program has a value for each of its fields, and a default equals itself.
func TestListOfEveryRecipe(t *testing.T) {
	for _, name := range append(recipes.Builtin(), recipes.Presets()...) {
		r, err := recipes.Resolve(name, "", nil, nil, nil)
		require.NoError(t, err)
		for path, l := range listed(t, r.JSON) {
			require.NotEmpty(t, l.Value, "%s: %s", name, path)
			require.NotEmpty(t, l.Doc, "%s: %s is in no table of fields", name, path)
		}
	}
}

// A record of another version may have fields that the program does not know.
func TestListOfAnotherVersionsRecipe(t *testing.T) {
	fields := listed(t, []byte(`{"name": "x", "seed": 18446744073709551615, "novel": {"a": [1, 2]}}`))
	require.Equal(t, "18446744073709551615", fields["seed"].Value)
	require.Equal(t, recipes.Listed{Path: "novel", Value: `{"a":[1,2]}`}, fields["novel"])
	_, err := recipes.List([]byte(`{"engine": 3}`))
	require.ErrorContains(t, err, "read engine of the recipe")
	_, err = recipes.List([]byte(`[]`))
	require.ErrorContains(t, err, "read the recipe")
}

func TestValuesForPeople(t *testing.T) {
	for value, want := range map[string]string{`"cosine"`: "cosine", "1e-8": "1e-8", "off": "off",
		`["a","b"]`:    `["a","b"]`,
		`"say \"hi\""`: `say "hi"`} {
		require.Equal(t, want, recipes.Plain(value))
	}
}
