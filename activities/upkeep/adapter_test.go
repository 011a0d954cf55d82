package upkeep

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/resolver"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

// saving is a trainer whose model is a set of files.
type saving struct {
	policy.Trainer
	files map[string]string
}

func (s *saving) Save(_ context.Context, _ policy.Role, dir string) (string, error) {
	for name, text := range s.files {
		if checkpoint.HoldsWeights(name) {
			var b bytes.Buffer
			tensor := checkpoint.Tensor{Name: "of " + text, Dims: []int{1}, Data: []float32{1}}
			if err := checkpoint.EncodeSafetensors(&b, []checkpoint.Tensor{tensor}, nil); err != nil {
				return "", err
			}
			text = b.String()
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	return checkpoint.Digest(dir)
}

// adapterFiles is what an engine saves after a step: a base that stays the same, and an adapter that changes.
func adapterFiles(base string, step int) map[string]string {
	return map[string]string{
		checkpoint.FileConfig: "{}", checkpoint.FileWeights: base, checkpoint.FileAdapterConfig: "{}",
		checkpoint.FileAdapter:   fmt.Sprint("adapter after ", step),
		checkpoint.FileOptimizer: fmt.Sprint("moments after ", step),
	}
}

func files(c schema.Checkpoint) map[string]schema.CheckpointFile {
	out := map[string]schema.CheckpointFile{}
	for _, f := range c.Files {
		out[f.Name] = f
	}
	return out
}

// TestABaseLiesOnce: the checkpoints of an adapter share the base of the warm start that they began with, and pruning
// leaves that base.
func TestABaseLiesOnce(t *testing.T) {
	ctx, objects := t.Context(), mem.New()
	writer, engine := commit.New(objects), &saving{}
	stored := record.Records{Store: objects, Record: writer}
	d := &stage.Worker{Records: stored, Recipes: resolver.New(stored, nil)}
	s, _ := enginepool.New(enginepool.Options{Record: writer, Trainer: engine, Scratch: t.TempDir()}).CPU()
	engine.files = map[string]string{checkpoint.FileConfig: "{}", checkpoint.FileWeights: "base"}
	before, err := s.Save(ctx, policy.RolePolicy, schema.AtWarmStart(strings.Repeat("a", 64)), 0, false, nil)
	require.NoError(t, err)
	base := before.Key(files(before)[checkpoint.FileWeights])
	require.True(t, schema.Lasting(base))

	var saved []schema.Checkpoint
	for step := 1; step <= 3; step++ {
		engine.files = adapterFiles("base", step)
		place := schema.At("run", step, schema.StageUpdate)
		c, err := s.Save(ctx, policy.RolePolicy, place, step, true, &before)
		require.NoError(t, err)
		require.Equal(t, base, files(c)[checkpoint.FileWeights].At, "the first one's, however many lie between")
		for _, name := range []string{checkpoint.FileConfig, checkpoint.FileAdapter, checkpoint.FileAdapterConfig,
			checkpoint.FileOptimizer} {
			require.Empty(t, files(c)[name].At, name)
		}
		m := schema.NewManifest(place, strings.Repeat("c", 64), strings.Repeat("d", 64))
		m.Checkpoint = &c
		_, ref, _, err := writer.Commit(ctx, m)
		require.NoError(t, err)
		head, err := schema.NewHead("run", fmt.Sprint(step), ref)
		require.NoError(t, err)
		_, _, _, err = writer.CommitHead(ctx, head)
		require.NoError(t, err)
		saved, before = append(saved, c), c
	}
	pruned, _, err := prune(ctx, d.Records, api.PruneInput{Scope: api.Scope{Run: "run", Step: 3}},
		&recipes.Recipe{Checkpoint: recipes.Checkpoint{KeepLast: 2}}, func(int, int) {})
	require.NoError(t, err)
	require.Equal(t, []int{1}, pruned)

	dir := t.TempDir()
	require.NoError(t, enginepool.Fetch(ctx, writer, saved[2], dir, true))
	digest, err := checkpoint.Digest(dir)
	require.NoError(t, err)
	require.Equal(t, saved[2].Digest, digest)
	listed, err := objects.List(ctx, "")
	require.NoError(t, err)
	weights := slices.DeleteFunc(listed,
		func(o store.Object) bool { return !strings.HasSuffix(o.Key, "/"+checkpoint.FileWeights) })
	require.Len(t, weights, 1)

	// A commit that shares a file which no longer exists is refused.
	require.NoError(t, objects.Delete(ctx, base))
	m := schema.NewManifest(schema.At("run", 4, schema.StageUpdate), strings.Repeat("c", 64), strings.Repeat("d", 64))
	m.Checkpoint = &saved[2]
	_, _, _, err = writer.Commit(ctx, m)
	require.ErrorIs(t, err, commit.ErrDamaged)
	require.ErrorContains(t, err, base)
}

// TestWhatIsNotShared: a base that pruning may delete, a different base, and checkpoints without an adapter are
// stored.
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
			s, _ := enginepool.New(enginepool.Options{Record: commit.New(mem.New()), Trainer: engine,
				Scratch: t.TempDir()}).CPU()
			before, err := s.Save(ctx, policy.RolePolicy, c.place, c.step, true, nil)
			require.NoError(t, err)
			engine.files = c.now
			got, err := s.Save(ctx, policy.RolePolicy, schema.At("run", 5, schema.StageUpdate), 5, true, &before)
			require.NoError(t, err)
			for _, f := range got.Files {
				require.Empty(t, f.At, f.Name)
			}
		})
	}
}
