package schema

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIDs(t *testing.T) {
	require.Equal(t, "00012/0034", GroupID(12, 34))
	require.Equal(t, "00012/0034/005", TrajectoryID(12, 34, 5))
	step, group, sample, err := ParseTrajectoryID("00012/0034/005")
	require.NoError(t, err)
	require.Equal(t, [3]int{12, 34, 5}, [3]int{step, group, sample})
	step, group, err = ParseGroupID("00012/0034")
	require.NoError(t, err)
	require.Equal(t, [2]int{12, 34}, [2]int{step, group})
	for _, id := range []string{"", "12/34/5", "00012/0034/005/1", "00012/0034", "-0012/0034/005", "00012/0034/005\n",
		TrajectoryID(1, 10_000, 0), TrajectoryID(100_000, 0, 0)} {
		_, _, _, err := ParseTrajectoryID(id)
		require.Error(t, err, "%q", id)
	}
	_, _, err = ParseGroupID("00012/0034/005")
	require.Error(t, err)
}

func TestKeys(t *testing.T) {
	digest := Digest([]byte("shard"))
	at := At("quick-1", 12, StageRollout)
	all := at.WithTry(1).WithTurn(2).WithShard(0).WithGen(4)
	const manifests = "runs/run=quick-1/manifests/step=12/rollout/"
	for key, want := range map[string]string{
		at.ManifestKey():                              manifests + "gen=0.json",
		at.WithShard(3).ManifestKey():                 manifests + "shard=3/gen=0.json",
		all.ManifestKey():                             manifests + "try=1/turn=2/shard=0/gen=4.json",
		at.WithTurn(0).ManifestKey():                  manifests + "turn=0/gen=0.json",
		AtInit("quick-1", StagePrepare).ManifestKey(): "runs/run=quick-1/manifests/step=init/prepare/gen=0.json",
		at.WithShard(3).DataKey(Turns, digest, "parquet"): "runs/run=quick-1/table=turns/step=12/gen=0/00003-" +
			digest[:16] + ".parquet",
		AtInit("quick-1", StageData).DataKey(Tasks, digest, "parquet"): "runs/run=quick-1/table=tasks/step=0/gen=0/" +
			"all-" + digest[:16] + ".parquet",
		at.DataKey(Batch, digest, Batch.Ext()): "runs/run=quick-1/table=batch/step=12/gen=0/all-" +
			digest[:16] + ".arrow",
		AtWarmStart(digest).ManifestKey(): "warmstarts/" + digest + "/manifest.json",
		AtWarmStart(digest).DataKey(Updates, digest, "parquet"): "warmstarts/" + digest + "/table=updates/all-" +
			digest[:16] + ".parquet",
		AtWarmStart(digest).CheckpointPrefix("v1"): "warmstarts/" + digest + "/checkpoints/v1/",
		at.CheckpointPrefix("v1"):                  "runs/run=quick-1/checkpoints/v1/",
		HeadKey("quick-1", "12"):                   "runs/run=quick-1/heads/step=12.json",
	} {
		require.Equal(t, want, key)
	}
	run, step, err := ParseHeadKey("runs/run=quick-1/heads/step=12.json")
	require.NoError(t, err)
	require.Equal(t, "quick-1 12", run+" "+step)
	_, _, err = ParseHeadKey("runs/run=quick-1/heads/step=012.json")
	require.Error(t, err)
}

// TestKeysParseBack checks that the parsers are the inverses of the builders, for any place.
func TestKeysParseBack(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	optional := func() int { return r.IntN(4) - 1 }
	for range 500 {
		p := Place{Run: pick(r, []string{"a", "quick-1", "0.x_y-z", strings.Repeat("r", 128)}),
			Step:  pick(r, []string{"1", "7", "123456", InitStep}),
			Stage: pick(r, []string{StageRollout, StageWarmStart}), Try: optional(), Turn: optional(),
			Shard: optional(), Gen: r.IntN(12)}
		if r.IntN(5) == 0 {
			p = AtWarmStart(digestFor(r))
		}
		require.NoError(t, p.Validate())
		got, err := ParseManifestKey(p.ManifestKey())
		require.NoError(t, err)
		require.Equal(t, p, got)
		table, digest := pick(r, append(Tables(), Batch, ReplayBatch, Documents)), digestFor(r)
		parts, err := ParseDataKey(p.DataKey(table, digest, table.Ext()))
		require.NoError(t, err)
		require.Equal(t, DataKeyParts{Run: p.Run, Warm: p.Warm, Table: table, Step: p.Step, Shard: p.Shard, Gen: p.Gen,
			Digest16: digest[:16], Ext: table.Ext()}, parts)
		if n, ok := p.StepNumber(); ok {
			require.Equal(t, p.Step, At("x", n, "y").Step)
		}
	}
}

func TestKeysThatAreNoneAreRefused(t *testing.T) {
	for _, key := range []string{
		"", "runs/run=a/manifests/step=1/rollout", "runs/run=A/manifests/step=1/rollout/gen=0.json",
		"runs/run=a/manifests/step=01/rollout/gen=0.json",
		"runs/run=a/manifests/step=1/rollout/gen=00.json",
		"runs/run=a/manifests/step=1/rollout/turn=1/try=1/gen=0.json",
		"runs/run=a/manifests/step=1/rollout/shard=99999999999999999999/gen=0.json",
		"runs/run=a/manifests/step=1/Rollout/gen=0.json",
		"runs/run=../manifests/step=1/rollout/gen=0.json",
		"runs/run=a/table=turns/step=1/gen=0/00000-0123456789abcdef.parquet", "warmstarts/abc/manifest.json",
		"runs/run=a/manifests/step=1/rollout/gen=0.json\n",
	} {
		_, err := ParseManifestKey(key)
		require.Error(t, err, "%q", key)
	}
	for _, key := range []string{
		"", "runs/run=a/table=turns/step=1/gen=0/0-0123456789abcdef.parquet",
		"runs/run=a/table=turns/step=1/gen=0/00000-0123.parquet",
		"runs/run=a/table=turns/step=x/gen=0/00000-0123456789abcdef.parquet",
		"runs/run=a/manifests/step=1/rollout/gen=0.json",
		"warmstarts/" + Digest(nil) + "/table=turns/00000-0123456789abcdef.parquet",
	} {
		_, err := ParseDataKey(key)
		require.Error(t, err, "%q", key)
	}
}

func TestRunIDs(t *testing.T) {
	for _, id := range []string{"a", "0", "quickstart-2026.11_x", strings.Repeat("a", 128)} {
		require.NoError(t, CheckRunID(id))
	}
	for _, id := range []string{"", "A", "-a", ".a", "a b", "a/b", "a=b", "ä", strings.Repeat("a", 129), "a\n"} {
		require.ErrorContains(t, CheckRunID(id), "want 1 to 128 of", "%q", id)
	}
}

func TestPlacesAreValidated(t *testing.T) {
	for text, p := range map[string]Place{
		"run id":                 At("", 1, StageRollout),
		"step":                   At("a", -1, StageRollout),
		"stage":                  At("a", 1, "Roll/out"),
		"shard of stage rollout": At("a", 1, StageRollout).WithShard(-2),
		"generation":             At("a", 1, StageRollout).WithGen(-1),
		"want the digest":        AtWarmStart("abc"),
		"has no run, step":       AtWarmStart(Digest(nil)).WithShard(1),
		`stage ""`:               {},
	} {
		require.ErrorContains(t, p.Validate(), text)
	}
}

// Only evaluations of warm starts have notes, which are no manifests.
func TestEvaluationKeys(t *testing.T) {
	inputs := Digest([]byte("inputs"))
	m := Manifest{}
	_, ok := m.EvaluationKey(inputs)
	require.False(t, ok)
	m.Checkpoint = &Checkpoint{Prefix: At("quick-1", 1, StageUpdate).CheckpointPrefix("v1")}
	_, ok = m.EvaluationKey(inputs)
	require.False(t, ok)
	warm := AtWarmStart(Digest([]byte("warm")))
	m.Checkpoint.Prefix = warm.CheckpointPrefix("v1")
	key, ok := m.EvaluationKey(inputs)
	require.True(t, ok)
	require.Equal(t, "warmstarts/"+warm.Warm+"/evaluations/"+inputs+".json", key)
	require.True(t, IsNote(key))
	require.False(t, IsNote(warm.ManifestKey()))
	require.False(t, IsNote(m.Checkpoint.Prefix+"model.safetensors"))
	_, err := ParseManifestKey(key)
	require.Error(t, err)
}
