package inspect_test

import (
	"bytes"
	"context"
	"encoding/json"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/inspect"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// record is every object of a small run.
func record(t *testing.T) map[string][]byte {
	t.Helper()
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 1, Seed: 1})
	listed, err := objects.List(context.Background(), "")
	require.NoError(t, err)
	out := map[string][]byte{}
	for _, o := range listed {
		data, err := objects.Get(context.Background(), o.Key)
		require.NoError(t, err)
		out[o.Key] = data
	}
	return out
}

func text(t *testing.T, f inspect.File) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, f.WriteText(&out))
	return out.String()
}

// Every file that a run commits can be inspected, under its key, under another name, and as JSON.
func TestEveryFileOfARun(t *testing.T) {
	kinds := map[string]int{}
	for key, data := range record(t) {
		if strings.HasSuffix(key, ".safetensors") || strings.HasSuffix(key, ".state") {
			continue // the fixture's are not
		}
		f, err := inspect.Inspect(key, data, 2)
		require.NoError(t, err, key)
		kinds[f.Kind]++
		require.Equal(t, schema.Digest(data), f.Digest)
		require.Contains(t, text(t, f), f.Digest)
		again, err := inspect.Inspect("copied", data, 2)
		require.NoError(t, err, key)
		require.Equal(t, f.Kind, again.Kind, key)
		var out bytes.Buffer
		require.NoError(t, f.WriteJSON(&out))
		require.True(t, json.Valid(out.Bytes()))
	}
	require.Equal(t, 1, kinds[inspect.KindHead])
	for _, kind := range []string{inspect.KindShard, inspect.KindManifest, inspect.KindDocument} {
		require.Greater(t, kinds[kind], 3, kind)
	}
}

func find(t *testing.T, files map[string][]byte, part string) (string, []byte) {
	t.Helper()
	for key, data := range files {
		if strings.Contains(key, part) {
			return key, data
		}
	}
	t.Fatalf("no file of %s", part)
	return "", nil
}

func column(t *testing.T, d schema.Description, name string) schema.Column {
	t.Helper()
	for _, c := range d.Columns {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no column %s", name)
	return schema.Column{}
}

func TestShard(t *testing.T) {
	key, data := find(t, record(t), "table=selection/step=1")
	f, err := inspect.Inspect(key, data, 2)
	require.NoError(t, err)
	d := *f.Shard
	require.Equal(t, "parquet", d.Format)
	require.Equal(t, schema.Selection, d.Table)
	require.EqualValues(t, 4, d.SchemaVersion, "the version that last changed the table")
	require.EqualValues(t, 12, d.Rows)
	require.Len(t, d.Groups, 1)
	require.Len(t, d.First, 2)
	require.Equal(t, schema.Field{Name: "trajectory_id", Value: "00001/0000/000"}, d.First[0][1])
	id := column(t, d, "trajectory_id")
	require.Equal(t, "00001/0000/000", *id.Min)
	require.Equal(t, "00001/0002/003", *id.Max)
	require.True(t, id.Bloom)
	weight := column(t, d, "weight")
	require.Contains(t, weight.Encodings, "BYTE_STREAM_SPLIT")
	require.Equal(t, "ZSTD", weight.Compression)
	require.Equal(t, "1.5", *weight.Max)
	require.EqualValues(t, 12, weight.Values)
	require.Positive(t, weight.Compressed)
	require.Contains(t, text(t, f), "BYTE_STREAM_SPLIT")

	none, err := inspect.Inspect(key, data, 0)
	require.NoError(t, err)
	require.Empty(t, none.Shard.First)
}

func TestNullsAreCounted(t *testing.T) {
	key, data := find(t, record(t), "table=updates/step=1")
	f, err := inspect.Inspect(key, data, 1)
	require.NoError(t, err)
	c := column(t, *f.Shard, "clip_fraction_positive")
	require.True(t, c.Nullable)
	require.EqualValues(t, 2, c.Nulls)
	require.Nil(t, c.Min)
}

func TestBatch(t *testing.T) {
	key, data := find(t, record(t), "table=batch")
	f, err := inspect.Inspect(key, data, 1)
	require.NoError(t, err)
	require.Equal(t, "arrow", f.Shard.Format)
	require.EqualValues(t, 6, f.Shard.Rows)
	a := column(t, *f.Shard, "advantages")
	require.Equal(t, "-1.5", *a.Min)
	require.Equal(t, "1.5", *a.Max)
	require.EqualValues(t, 30, a.Values)
	require.Equal(t, "token_ids", f.Shard.First[0][4].Name)
	require.Equal(t, []int32{1, 2, 3, 4, 5}, f.Shard.First[0][4].Value)
}

func TestTensors(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, checkpoint.EncodeSafetensors(&b,
		[]checkpoint.Tensor{{Name: "w", Dims: []int{2, 3}, Data: []float32{1, -2, 3, 4, 5, 6}}},
		map[string]string{"step": "7"}))
	f, err := inspect.Inspect("model.safetensors", b.Bytes(), 0)
	require.NoError(t, err)
	low, high := float32(-2), float32(6)
	require.Equal(t, &inspect.Tensors{Metadata: map[string]string{"step": "7"}, Numbers: 6,
		Tensors: []inspect.Tensor{{Name: "w", Dtype: "F32", Shape: []int{2, 3}, Bytes: 24, Min: &low, Max: &high}}},
		f.Tensors)
	require.Contains(t, text(t, f), "[2 × 3]")
	_, err = inspect.Inspect("model.safetensors", b.Bytes()[:b.Len()-1], 0)
	require.ErrorIs(t, err, inspect.ErrDamaged)
}

// What is damaged is named, and never taken for something else.
func TestDamage(t *testing.T) {
	files := record(t)
	shard, data := find(t, files, "table=rewards")
	flipped := bytes.Clone(data)
	flipped[len(flipped)/2] ^= 1
	batch, batchData := find(t, files, "table=batch")
	manifest, manifestData := find(t, files, "/manifests/step=1/resample")
	head, headData := find(t, files, "/heads/")
	for _, c := range []struct {
		name, file, want string
		data             []byte
	}{
		{"a flipped bit under its key", shard, "its name says", flipped},
		{"a flipped bit", path.Base("x.parquet"), "checksum", flipped},
		{"a cut shard", "x.parquet", "checksum", data[:len(data)/2]},
		{"an empty shard", "x.parquet", "", nil},
		{"a cut batch", "x.arrow", "checksum", batchData[:len(batchData)-9]},
		{"a batch under another name", batch, "its name says", data},
		{"a cut manifest", manifest, "JSON", manifestData[:len(manifestData)-4]},
		{"a manifest spelt otherwise", manifest, "canonical", append(bytes.Clone(manifestData), '\n')},
		{"a head that is none", head, "", []byte(`{"version": 1}`)},
		{"a cut head", head, "JSON", headData[:9]},
		{"text", "x.json", "neither a JSON object nor a list", []byte("hello")},
		{"a list in the place of a head", head, "neither a JSON object nor a list", []byte("[]")},
		{"a cut list", "x.json", "is not a JSON list", []byte("[1, 2")},
		{"a bad line", "x.jsonl", "line 3: is not JSON", []byte("{}\n{}\n{oops}\n")},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := inspect.Inspect(c.file, c.data, 1)
			require.ErrorIs(t, err, inspect.ErrDamaged)
			require.ErrorContains(t, err, c.file)
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := inspect.Inspect("notes.txt", []byte("hello"), 1)
	require.ErrorIs(t, err, inspect.ErrUnknown)
	for _, name := range []string{"notes.gz", "rows.parquet", "rows.json"} {
		_, err = inspect.Inspect(name, []byte("\x1f\x8b\x08 and so on"), 1)
		require.ErrorIs(t, err, inspect.ErrUnknown)
		require.ErrorContains(t, err, name+": not a file of the record: it is compressed with gzip; unpack it first")
	}
}
