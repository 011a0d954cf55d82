package activities

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/warmstart"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// A worker may end after the shared warm start is committed and before the run's own manifest is. The attempt after it
// finds a warm start that is there, and commits the same manifest.
func TestAWarmStartThatIsThereChangesNoManifest(t *testing.T) {
	tok, err := rollout.NewTokenizer()
	require.NoError(t, err)
	b := stepWith(t, cpuEngine(t, tok.VocabSize()), nil, "warm_start.steps=0", "warm_start.optimizer.warmup_steps=0",
		"policy={layers: 1, hidden: 16, heads: 2, kv_heads: 1, head_dim: 8, ffn: 24, max_positions: 512}")
	b.scope.Step = api.InitStep
	key := schema.AtInit("r", schema.StageWarmStart).ManifestKey()
	var manifests [2]string
	for i := range manifests {
		_, err := do(b, warmstart.WarmStart{Worker: b.deps}.Execute, b.scope)
		require.NoError(t, err)
		data, err := b.deps.Store.Get(t.Context(), key)
		require.NoError(t, err)
		manifests[i] = string(data)
		require.NoError(t, b.deps.Store.Delete(t.Context(), key))
		b.deps.Record.Forget("r")
	}
	require.Equal(t, manifests[0], manifests[1])
}
