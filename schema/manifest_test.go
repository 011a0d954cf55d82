package schema

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// fullManifest is a stage manifest with every field in use.
func fullManifest() Manifest {
	digest := func(s string) string { return Digest([]byte(s)) }
	at := At("quick-1", 3, StageUpdate).WithTry(1).WithGen(2)
	m := NewManifest(at, digest("code"), digest("recipe"))
	m.Inputs = []Ref{{Key: At("quick-1", 3, StageAdvantage).ManifestKey(), Digest: digest("advantage")}}
	m.Shards = []ShardInfo{{Key: at.DataKey(Updates, digest("updates"), "parquet"), Table: Updates,
		Digest: digest("updates"), Bytes: 4711, Rows: 8}}
	m.Parts = []Ref{
		{Key: at.WithShard(0).ManifestKey(), Digest: digest("part 0")},
		{Key: at.WithShard(1).WithGen(0).ManifestKey(), Digest: digest("part 1")},
	}
	m.Checkpoint = &Checkpoint{Prefix: at.CheckpointPrefix(digest("policy")), Digest: digest("policy"),
		Files: []CheckpointFile{
			{Name: "config.json", Digest: digest("config"), Bytes: 700},
			{Name: "model.safetensors", Digest: digest("model"), Bytes: 1 << 30},
		}}
	m.Stats = map[string]float64{"loss": -0.25, "grad_norm": 1e-9, "tokens": 1 << 40}
	m.Note = map[string]string{"blas": "openblas <0.3.29> & 2 threads", "ünïcode": "∑"}
	return m
}

func TestManifestGolden(t *testing.T) {
	data, err := EncodeManifest(fullManifest())
	require.NoError(t, err)
	name := filepath.Join("testdata", "manifest.golden.json")
	if *update {
		require.NoError(t, os.WriteFile(name, data, 0o644))
	}
	want, err := os.ReadFile(name)
	require.NoError(t, err)
	if diff := cmp.Diff(string(want), string(data)); diff != "" {
		t.Errorf("the manifest changed (-want +got):\n%s", diff)
	}
	got, err := DecodeManifest(data)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(fullManifest(), got))
}

func TestEmptyManifestRoundTrips(t *testing.T) {
	place := AtInit("quick-1", StagePrepare)
	data, err := EncodeManifest(Manifest{Place: place, Code: Digest(nil), Config: Digest(nil)})
	require.NoError(t, err)
	again, err := EncodeManifest(NewManifest(place, Digest(nil), Digest(nil)))
	require.NoError(t, err)
	require.Equal(t, string(data), string(again), "nil and empty collections are the same manifest")
	got, err := DecodeManifest(data)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(NewManifest(place, Digest(nil), Digest(nil)), got))
}

func TestASharedFileHasAKeyOfItsOwn(t *testing.T) {
	m := fullManifest()
	base := AtWarmStart(Digest([]byte("inputs"))).CheckpointPrefix("000000-0123456789abcdef") + "model.safetensors"
	m.Checkpoint.Files[1].At = base
	require.True(t, Lasting(base))
	require.Equal(t, base, m.Checkpoint.Key(m.Checkpoint.Files[1]))
	require.Equal(t, m.Checkpoint.Prefix+"config.json", m.Checkpoint.Key(m.Checkpoint.Files[0]))
	data, err := EncodeManifest(m)
	require.NoError(t, err)
	got, err := DecodeManifest(data)
	require.NoError(t, err)
	require.Equal(t, m.Checkpoint, got.Checkpoint)
	require.True(t, Lasting(At("a", 0, StageUpdate).CheckpointPrefix("000000-ab")+"x"))
	require.False(t, Lasting(At("a", 7, StageUpdate).CheckpointPrefix("000007-ab")+"x"), "pruning may take it")
}

func TestManifestsAreValidated(t *testing.T) {
	for _, c := range []struct {
		text   string
		change func(*Manifest)
	}{
		{"run id", func(m *Manifest) { m.Run = "" }},
		{"code: want a digest", func(m *Manifest) { m.Code = "v1" }},
		{"config: want a digest", func(m *Manifest) { m.Config = strings.ToUpper(m.Config) }},
		{"inputs 0", func(m *Manifest) { m.Inputs[0].Digest = "" }},
		{"parts: only a stage manifest", func(m *Manifest) { m.Shard = 0 }},
		{"parts 1: shard 1 comes after shard 1", func(m *Manifest) { m.Parts[0] = m.Parts[1] }},
		{"is not a shard of",
			func(m *Manifest) { m.Parts[0].Key = strings.Replace(m.Parts[0].Key, "step=3", "step=4", 1) }},
		{"is not a shard of", func(m *Manifest) { m.Parts[0].Key = m.ManifestKey() }},
		{`table "nothing"`, func(m *Manifest) { m.Shards[0].Table = "nothing" }},
		{"the key of a shard with that digest", func(m *Manifest) { m.Shards[0].Digest = Digest(nil) }},
		{"bytes must be > 0", func(m *Manifest) { m.Shards[0].Bytes = 0 }},
		{"rows must be ≥ 0", func(m *Manifest) { m.Shards[0].Rows = -1 }},
		{"is listed twice", func(m *Manifest) { m.Shards = append(m.Shards, m.Shards[0]) }},
		{"a slash at its end", func(m *Manifest) { m.Checkpoint.Prefix = "runs/run=a/checkpoints/b" }},
		{"a slash at its end", func(m *Manifest) { m.Checkpoint.Prefix = "runs/run=a/../b/" }},
		{"want the prefix of a checkpoint", func(m *Manifest) { m.Checkpoint.Prefix = "../a/" }},
		{"has no files", func(m *Manifest) { m.Checkpoint.Files = nil }},
		{"is not the name of a plain file", func(m *Manifest) { m.Checkpoint.Files[0].Name = "../x" }},
		{"want the key of this file",
			func(m *Manifest) { m.Checkpoint.Files[1].At = "runs/run=a/checkpoints/000001-ab/model.safetensors" }},
		{"want the key of this file",
			func(m *Manifest) { m.Checkpoint.Files[1].At = "runs/run=a/checkpoints/000000-ab/config.json" }},
		{"want the key of this file", func(m *Manifest) { m.Checkpoint.Files[1].At = "../model.safetensors" }},
		{"want the files sorted by name", func(m *Manifest) { m.Checkpoint.Files[1].Name = "a.json" }},
		{"stats loss: must be finite", func(m *Manifest) { m.Stats["loss"] = math.NaN() }},
	} {
		m := fullManifest()
		c.change(&m)
		_, err := EncodeManifest(m)
		require.ErrorContains(t, err, c.text)
		require.ErrorContains(t, err, "manifest of run ")
	}
}

func TestOnlyCanonicalManifestsAreRead(t *testing.T) {
	data, err := EncodeManifest(fullManifest())
	require.NoError(t, err)
	text := string(data)
	for name, changed := range map[string]string{
		"empty":          "",
		"cut":            text[:len(text)/2],
		"no newline":     strings.TrimSpace(text),
		"text after":     text + "{}\n",
		"unknown field":  strings.Replace(text, `"gen"`, `"generation"`, 1),
		"missing field":  strings.Replace(text, "  \"try\": 1,\n", "", 1),
		"repeated field": strings.Replace(text, "  \"try\": 1,\n", "  \"try\": 1,\n  \"try\": 1,\n", 1),
		"other case":     strings.Replace(text, `"gen"`, `"Gen"`, 1),
		"other spacing":  strings.Replace(text, `"gen": 2`, `"gen":  2`, 1),
		"other number":   strings.Replace(text, `"gen": 2`, `"gen": 2.0`, 1),
		"other order": strings.Replace(strings.Replace(text, "  \"gen\": 2,\n", "", 1), "{\n", "{\n  \"gen\": 2,\n",
			1),
		"array":           "[]\n",
		"null":            "null\n",
		"later version":   strings.Replace(text, `"version": 1`, `"version": 2`, 1),
		"damaged content": strings.Replace(text, `"rows": 8`, `"rows": -8`, 1),
	} {
		require.NotEqual(t, text, changed, name)
		_, err := DecodeManifest([]byte(changed))
		require.Error(t, err, name)
	}
	_, err = DecodeManifest([]byte(strings.Replace(text, `"version": 1`, `"version": 2`, 1)))
	require.ErrorContains(t, err, fmt.Sprintf("format version 2.%d is not supported by this program", Version))
}

// laterDocument returns a document as a later minor version might write it: with a field of its own.
func laterDocument(t *testing.T, data []byte) []byte {
	t.Helper()
	text := strings.Replace(string(data), fmt.Sprintf(`"schema_version": %d`, Version), `"schema_version": 99`, 1)
	text = strings.Replace(text, "{\n", "{\n  \"mood\": {\"inner\": [1]},\n", 1)
	require.NotEqual(t, string(data), text)
	out, err := recode([]byte(text))
	require.NoError(t, err)
	return out
}

func TestDocumentsOfALaterMinorVersionAreReadWithoutWhatIsUnknown(t *testing.T) {
	want := fullManifest()
	data, err := EncodeManifest(want)
	require.NoError(t, err)
	want, err = DecodeManifest(data)
	require.NoError(t, err)
	later := laterDocument(t, data)
	got, err := DecodeManifest(later)
	require.NoError(t, err)
	require.Equal(t, 99, got.SchemaVersion)
	got.SchemaVersion = want.SchemaVersion
	require.Equal(t, want, got)

	digest := Digest([]byte("x"))
	m := NewManifest(At("r", 2, "reward"), digest, digest)
	m.Shards = []ShardInfo{{Key: m.DataKey("dreams", digest, "parquet"), Table: "dreams", Digest: digest, Bytes: 1}}
	_, err = EncodeManifest(m)
	require.ErrorContains(t, err, `table "dreams": is not one of the record's tables`)
	m.SchemaVersion = 99
	text, err := Canonical(m)
	require.NoError(t, err)
	got, err = DecodeManifest(text)
	require.NoError(t, err, "a later version may have further tables")
	require.Equal(t, m.Shards, got.Shards)

	for name, broken := range map[string]string{
		"missing field": strings.Replace(string(later), "  \"try\": 1,\n", "", 1),
		"other case":    strings.Replace(string(later), `"gen"`, `"Gen"`, 1),
		"other spacing": strings.Replace(string(later), `"gen": 2`, `"gen":  2`, 1),
	} {
		require.NotEqual(t, string(later), broken, name)
		_, err := DecodeManifest([]byte(broken))
		require.Error(t, err, name)
	}

	head, err := NewHead("r", "2", Ref{Key: At("r", 2, "reward").ManifestKey(), Digest: digest})
	require.NoError(t, err)
	data, err = EncodeHead(head)
	require.NoError(t, err)
	read, err := DecodeHead(laterDocument(t, data))
	require.NoError(t, err)
	require.Equal(t, head.Stages, read.Stages)
}

func FuzzDecodeManifest(f *testing.F) {
	data, err := EncodeManifest(fullManifest())
	require.NoError(f, err)
	f.Add(data)
	f.Add([]byte(`{"version":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeManifest(data)
		if err != nil {
			return
		}
		again, err := EncodeManifest(m)
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, again), "one manifest has two texts")
	})
}

func TestHeads(t *testing.T) {
	ref := func(p Place) Ref { return Ref{Key: p.ManifestKey(), Digest: Digest([]byte(p.ManifestKey()))} }
	rollout, reward := At("quick-1", 3, StageRollout), At("quick-1", 3, StageReward).WithGen(2)
	h, err := NewHead("quick-1", "3", ref(rollout.WithTurn(0)), ref(rollout.WithTurn(1)), ref(reward))
	require.NoError(t, err)
	require.Equal(t, map[string]int{"rollout": 0, "reward": 2}, h.Generations)
	require.Len(t, h.Stages["rollout"], 2)
	data, err := EncodeHead(h)
	require.NoError(t, err)
	got, err := DecodeHead(data)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(h, got))
	_, err = DecodeHead(bytes.TrimSpace(data))
	require.Error(t, err)

	fork := h.SharedBy("fork").SharedBy("other")
	data, err = EncodeHead(fork)
	require.NoError(t, err)
	got, err = DecodeHead(data)
	require.NoError(t, err)
	require.Equal(t, "runs/run=other/heads/step=3.json", got.Key())
	require.Equal(t, "quick-1", got.Owner())
	fork.From = "fork"
	_, err = EncodeHead(fork)
	require.ErrorContains(t, err, "is not a stage manifest of this step")

	for text, refs := range map[string][]Ref{
		"generations 0 and 1":          {ref(rollout.WithTurn(0)), ref(rollout.WithTurn(1).WithGen(1))},
		"is not the key of a manifest": {{Key: "runs/run=quick-1/x", Digest: Digest(nil)}},
		"is not a stage manifest":      {ref(rollout.WithShard(0))},
		"of this step":                 {ref(At("quick-1", 4, StageRollout))},
		"want a digest":                {{Key: rollout.ManifestKey()}},
	} {
		_, err := NewHead("quick-1", "3", refs...)
		require.ErrorContains(t, err, text)
	}
}

func TestCanonical(t *testing.T) {
	data, err := Canonical(map[string]any{"b": []any{1, 2.5, nil}, "a": "<&>",
		"c": map[string]any{"z": 1e300, "y": uint64(math.MaxUint64)}})
	require.NoError(t, err)
	require.Equal(t,
		"{\n  \"a\": \"<&>\",\n  \"b\": [\n    1,\n    2.5,\n    null\n  ],\n  \"c\": {\n    \"y\": "+
			"18446744073709551615,\n    \"z\": 1e+300\n  }\n}\n", string(data))
	require.NoError(t, AuditShard(Documents, data, 1))
	require.Error(t, AuditShard(Documents, []byte("{}"), 1))
	require.Error(t, AuditShard("nothing", data, 1))
	_, err = Canonical(math.NaN())
	require.Error(t, err)
}
