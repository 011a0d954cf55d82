package activities

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

// saving is an engine whose model is files.
type saving struct {
	policy.Engine
	files map[string]string
}

func (s *saving) Save(_ context.Context, _ policy.Role, dir string) (string, error) {
	for name, text := range s.files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	return checkpoint.Digest(dir)
}

// adapterFiles is what an engine saves after a step: a base that stays, and an adapter that does not.
func adapterFiles(base string, step int) map[string]string {
	return map[string]string{
		checkpoint.FileConfig: "{}", checkpoint.FileWeights: base, checkpoint.FileAdapterConfig: "{}",
		checkpoint.FileAdapter: fmt.Sprint("adapter after ", step), checkpoint.FileOptimizer: fmt.Sprint("moments after ", step),
	}
}

func files(c schema.Checkpoint) map[string]schema.CheckpointFile {
	out := map[string]schema.CheckpointFile{}
	for _, f := range c.Files {
		out[f.Name] = f
	}
	return out
}

// TestABaseLiesOnce: the checkpoints of an adapter share the base of the warm start that they began with, which pruning leaves.
func TestABaseLiesOnce(t *testing.T) {
	ctx, objects := t.Context(), mem.New()
	record, engine := commit.New(objects), &saving{}
	d := &Deps{Store: objects, Record: record}
	s := newSlot(record, engine, t.TempDir())
	engine.files = map[string]string{checkpoint.FileConfig: "{}", checkpoint.FileWeights: "base"}
	before, err := s.save(ctx, schema.AtWarmStart(strings.Repeat("a", 64)), 0, false, nil)
	require.NoError(t, err)
	base := before.Key(files(before)[checkpoint.FileWeights])
	require.True(t, schema.Lasting(base))

	var saved []schema.Checkpoint
	for step := 1; step <= 3; step++ {
		engine.files = adapterFiles("base", step)
		place := schema.At("run", step, schema.StageUpdate)
		c, err := s.save(ctx, place, step, true, &before)
		require.NoError(t, err)
		require.Equal(t, base, files(c)[checkpoint.FileWeights].At, "the first one's, however many lie between")
		for _, name := range []string{checkpoint.FileConfig, checkpoint.FileAdapter, checkpoint.FileAdapterConfig, checkpoint.FileOptimizer} {
			require.Empty(t, files(c)[name].At, name)
		}
		m := schema.NewManifest(place, strings.Repeat("c", 64), strings.Repeat("d", 64))
		m.Checkpoint = &c
		_, ref, _, err := record.Commit(ctx, m)
		require.NoError(t, err)
		head, err := schema.NewHead("run", fmt.Sprint(step), ref)
		require.NoError(t, err)
		_, _, _, err = record.CommitHead(ctx, head)
		require.NoError(t, err)
		saved, before = append(saved, c), c
	}
	pruned, err := d.prune(ctx, wire.Scope{Run: "run", Step: 3}, &recipes.Recipe{Checkpoint: recipes.Checkpoint{KeepLast: 2}})
	require.NoError(t, err)
	require.Equal(t, []int{1}, pruned)

	dir := t.TempDir()
	require.NoError(t, fetchCheckpoint(ctx, record, saved[2], dir, true))
	digest, err := checkpoint.Digest(dir)
	require.NoError(t, err)
	require.Equal(t, saved[2].Digest, digest)
	listed, err := objects.List(ctx, "")
	require.NoError(t, err)
	weights := slices.DeleteFunc(listed, func(o store.Object) bool { return !strings.HasSuffix(o.Key, "/"+checkpoint.FileWeights) })
	require.Len(t, weights, 1)

	// A commit that shares what is not there any more is refused.
	require.NoError(t, objects.Delete(ctx, base))
	m := schema.NewManifest(schema.At("run", 4, schema.StageUpdate), strings.Repeat("c", 64), strings.Repeat("d", 64))
	m.Checkpoint = &saved[2]
	_, _, _, err = record.Commit(ctx, m)
	require.ErrorIs(t, err, commit.ErrDamaged)
	require.ErrorContains(t, err, base)
}

// TestWhatIsNotShared: a base that pruning may take or that is another, and whatever has no adapter, is put.
func TestWhatIsNotShared(t *testing.T) {
	ctx := t.Context()
	warm, middle := schema.AtWarmStart(strings.Repeat("a", 64)), schema.At("run", 4, schema.StageUpdate)
	whole := maps.Clone(adapterFiles("base", 5))
	delete(whole, checkpoint.FileAdapter)
	delete(whole, checkpoint.FileAdapterConfig)
	for name, c := range map[string]struct {
		place schema.Place
		step  int
		now   map[string]string
	}{
		"of a checkpoint that may be pruned": {middle, 4, adapterFiles("base", 5)},
		"another base":                       {warm, 0, adapterFiles("other", 5)},
		"all of a model":                     {warm, 0, whole},
	} {
		t.Run(name, func(t *testing.T) {
			engine := &saving{files: map[string]string{checkpoint.FileConfig: "{}", checkpoint.FileWeights: "base"}}
			s := newSlot(commit.New(mem.New()), engine, t.TempDir())
			before, err := s.save(ctx, c.place, c.step, true, nil)
			require.NoError(t, err)
			engine.files = c.now
			got, err := s.save(ctx, schema.At("run", 5, schema.StageUpdate), 5, true, &before)
			require.NoError(t, err)
			for _, f := range got.Files {
				require.Empty(t, f.At, f.Name)
			}
		})
	}
}

// TestAnEngineForEachAdapter: equal settings share an engine, and a new adapter's numbers depend on the run's seed; the warm
// start has an engine that trains all of the model.
func TestAnEngineForEachAdapter(t *testing.T) {
	m := &torchMaker{}
	e := poolOf(m)
	recipe := func(seed uint64, rank int) *recipes.Recipe {
		return &recipes.Recipe{Seed: seed, Engine: recipes.Engine{Kind: recipes.EngineTorch, LoRA: &recipes.LoRA{Rank: rank, Alpha: 2, Targets: []string{"q_proj"}}}}
	}
	for _, c := range []struct {
		recipe *recipes.Recipe
		opened int
	}{
		{recipe(1, 4), 1}, {recipe(1, 4), 1}, {recipe(2, 4), 2}, {recipe(2, 8), 3}, {recipe(2, 8).WithoutAdapter(), 4}, {recipe(3, 8).WithoutAdapter(), 4},
	} {
		_, leave := taken(t, e, "r", c.recipe)
		leave(false)
		require.Equal(t, c.opened, m.opened)
	}
	whole := &recipes.Recipe{}
	require.Same(t, whole, whole.WithoutAdapter())
	require.NoError(t, e.Close())
}
