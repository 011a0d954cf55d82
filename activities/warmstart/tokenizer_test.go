package warmstart

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/resolver"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// resolverOf is a worker's resolver that has seen no recipe.
func resolverOf(t *testing.T) *stage.Worker {
	t.Helper()
	engine, err := cpu.Open(cpu.Options{Threads: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	d, err := stage.New(stage.Options{Store: mem.New(), Trainer: engine, Rollout: engine, Sandbox: noSandbox{},
		Scratch: t.TempDir()})
	require.NoError(t, err)
	return d
}

func trainedRecipe(t *testing.T, name string, more ...string) *recipes.Recipe {
	t.Helper()
	resolved, err := recipes.Resolve(name, "", append([]string{"tokenizer.vocabulary=1024", "tokenizer.texts=20"},
		more...), nil, nil)
	require.NoError(t, err)
	return &resolved.Recipe
}

// TestATrainedTokenizer: workers that know nothing of each other make the same tokenizer for all seeds of a run, and
// it has few tokens for episodes that it was not trained on, compared with their bytes.
func TestATrainedTokenizer(t *testing.T) {
	for _, name := range []string{"household", "shop", "searchqa"} {
		t.Run(name, func(t *testing.T) {
			recipe := trainedRecipe(t, name)
			first, err := resolverOf(t).Recipes.Tokenizer(recipe)
			require.NoError(t, err)
			second, err := resolverOf(t).Recipes.Tokenizer(trainedRecipe(t, name, "seed=5"))
			require.NoError(t, err)
			require.Equal(t, first.Files(), second.Files())
			require.LessOrEqual(t, first.VocabSize(), 1024)
			require.Greater(t, first.VocabSize(), 300)

			d := resolverOf(t)
			loop, err := d.Recipes.Loop(recipe, resolver.RolloutSampling(recipe))
			require.NoError(t, err)
			world, err := d.Recipes.World(recipe)
			require.NoError(t, err)
			texts, err := loop.Texts(t.Context(), world, 5) // of another seed than the tokenizer's
			require.NoError(t, err)
			bytes, merged := 0, 0
			for _, text := range texts {
				ids := first.Encode(text)
				require.Equal(t, text, first.Decode(ids))
				bytes, merged = bytes+len(text), merged+len(ids)
			}
			t.Logf("%d bytes are %d tokens", bytes, merged)
			require.Greater(t, float64(bytes)/float64(merged), 3.0)
		})
	}
}

// TestAWarmStartWithATrainedTokenizer: the tokenizer is part of the warm start's key and of its checkpoint, and the
// model has a row for each of its tokens.
func TestAWarmStartWithATrainedTokenizer(t *testing.T) {
	recipe := trainedRecipe(t, "household", "warm_start.steps=2", "warm_start.optimizer.warmup_steps=0",
		"warm_start.batch=2", "policy.hidden=16", "policy.layers=1", "policy.heads=2", "policy.kv_heads=1",
		"policy.head_dim=8", "policy.ffn=24")
	machine := policy.Description{Device: "cpu"}
	in := warmInputsOf(recipe, machine)
	plain := *recipe
	plain.Tokenizer = nil
	require.NotEqual(t, in, warmInputsOf(&plain, machine))
	require.Equal(t, recipe.Tokenizer, in.recipe().Tokenizer)

	d := resolverOf(t)
	trainer, _ := d.Engines.Pool.CPU()
	m := schema.Manifest{}
	require.NoError(t, WarmStart{d}.make(t.Context(), &stage.Draft{Worker: d, Progress: &stage.Progress{}}, trainer,
		in.recipe(), teaching{}, schema.AtWarmStart(schema.Digest([]byte("trained"))), &m))
	want, err := d.Recipes.Tokenizer(recipe)
	require.NoError(t, err)
	for _, f := range m.Checkpoint.Files {
		if f.Name != "tokenizer.json" {
			continue
		}
		data, err := d.Record.Store().Get(t.Context(), m.Checkpoint.Key(f))
		require.NoError(t, err)
		got, err := tokenizer.Load(data)
		require.NoError(t, err)
		require.Equal(t, want.Files(), got.Files())
		return
	}
	t.Fatal("the checkpoint has no tokenizer.json")
}

// TestATokenizerWithoutRoom names the field.
func TestATokenizerWithoutRoom(t *testing.T) {
	_, err := resolverOf(t).Recipes.Tokenizer(trainedRecipe(t, "household", "tokenizer.vocabulary=512"))
	require.NoError(t, err)
	free := trainedRecipe(t, "household")
	free.Tokenizer.Vocabulary = 256
	_, err = resolverOf(t).Recipes.Tokenizer(free)
	require.ErrorContains(t, err, "tokenizer.vocabulary: train a tokenizer of 256 ids")
}
