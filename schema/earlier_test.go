package schema

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// Earlier versions called the stage logprobs "forward". What they wrote is read under today's name, keeps its key and
// its bytes, and can be named together with what is written today.
func TestEarlierNamesOfStages(t *testing.T) {
	require.Equal(t, StageLogprobs, CanonicalStage("forward"))
	require.Equal(t, StageUpdate, CanonicalStage(StageUpdate))
	today := At("r", 2, StageLogprobs)
	require.Equal(t, today, At("r", 2, "forward"))
	require.Equal(t, "runs/run=r/manifests/step=2/logprobs/gen=0.json", today.ManifestKey())

	const key = "runs/run=r/manifests/step=2/forward/shard=1/gen=0.json"
	p, err := ParseManifestKey(key)
	require.NoError(t, err)
	require.Equal(t, StageLogprobs, p.Stage)
	require.Equal(t, key, p.ManifestKey())
	earlier, ok := today.WithShard(1).ByEarlierName()
	require.True(t, ok)
	require.Equal(t, p, earlier)
	_, ok = earlier.ByEarlierName()
	require.False(t, ok, "there is no earlier one")
	_, ok = At("r", 2, StageUpdate).ByEarlierName()
	require.False(t, ok, "the stage always had its name")

	digest := Digest([]byte("x"))
	m := NewManifest(earlier, digest, digest)
	data, err := EncodeManifest(m)
	require.NoError(t, err)
	require.Contains(t, string(data), `"stage": "forward"`)
	read, err := DecodeManifest(data)
	require.NoError(t, err)
	require.Equal(t, earlier, read.Place)
	again, err := EncodeManifest(read)
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, again))

	whole := NewManifest(today, digest, digest)
	whole.Parts = []Ref{{Key: today.WithShard(0).ManifestKey(), Digest: digest}, {Key: key, Digest: digest}}
	require.NoError(t, whole.Validate(), "a step that an earlier version began has parts of both names")
}

func TestEarlierNamesInHeads(t *testing.T) {
	digest := Digest([]byte("x"))
	ref := func(stage string) Ref {
		return Ref{Key: "runs/run=r/manifests/step=2/" + stage + "/gen=0.json", Digest: digest}
	}
	for _, name := range []string{"forward", "logprobs"} {
		h, err := NewHead("r", "2", ref("reward"), ref(name))
		require.NoError(t, err)
		require.Equal(t, []Ref{ref(name)}, h.Stages[StageLogprobs])
		require.Equal(t, map[string]int{"reward": 0, StageLogprobs: 0}, h.Generations)
		data, err := EncodeHead(h)
		require.NoError(t, err)
		require.Contains(t, string(data), `"`+name+`": 0`)
		read, err := DecodeHead(data)
		require.NoError(t, err)
		require.Equal(t, h, read)
	}
	twice := `{"generations": {"forward": 0, "logprobs": 0}, "run": "r", "stages": {}, "step": "2", "version": 1}`
	data, err := recode([]byte(twice))
	require.NoError(t, err)
	_, err = DecodeHead(data)
	require.Error(t, err)
}
