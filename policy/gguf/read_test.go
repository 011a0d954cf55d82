package gguf

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/longform"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

var everyArchitecture = []checkpoint.Architecture{
	checkpoint.Qwen3, checkpoint.Qwen2, checkpoint.Llama, checkpoint.Mistral,
}

// of is sample with another architecture.
func of(t *testing.T, a checkpoint.Architecture) Model {
	t.Helper()
	m := sample(t, true)
	shape := m.Checkpoint.Shape
	if a != checkpoint.Qwen3 {
		shape.Architecture = a
	}
	if a == checkpoint.Qwen2 {
		shape.HeadDim = shape.Hidden / shape.Heads
	}
	c, err := checkpoint.Fresh(shape, 3)
	require.NoError(t, err)
	for _, w := range c.Weights {
		for i := range w.Data {
			w.Data[i] = w.Data[i]*12 + float32(i%7)/50
		}
	}
	c.Extra, m.Checkpoint = m.Checkpoint.Extra, c
	return m
}

func written(t *testing.T, m Model) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Write(&b, m))
	path := filepath.Join(t.TempDir(), "model.gguf")
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	return path
}

// TestRoundTrip reads what was written, in every architecture. Mistral's models are llama's there.
func TestRoundTrip(t *testing.T) {
	for _, a := range everyArchitecture {
		m := of(t, a)
		f, err := Open(written(t, m))
		require.NoError(t, err)
		c, err := f.Checkpoint()
		require.NoError(t, err)
		want := m.Checkpoint.Shape
		if a == checkpoint.Mistral {
			want.Architecture = checkpoint.Llama
		}
		require.Equal(t, want, c.Shape)
		for i, w := range m.Checkpoint.Weights {
			got := make([]float32, w.Size())
			require.NoError(t, c.Weights[i].Read(func(at int, numbers []float32) { copy(got[at:], numbers) }))
			require.Equal(t, w.Data, got, "%s: %s", a, w.Name)
		}
		require.NoError(t, f.Close())
	}
}

// TestOtherArchitecturesInLlama: llama.cpp continues texts as transformers does.
func TestOtherArchitecturesInLlama(t *testing.T) {
	longform.Need(t, "ROPEWALK_TEST_MODELS", "test-models")
	models := []Model{of(t, checkpoint.Qwen2), of(t, checkpoint.Llama), of(t, checkpoint.Mistral)}
	for k, got := range read(t, prompts, models...) {
		for i, want := range got.Transformers {
			for n, likely := range want.Likeliest {
				require.InDelta(t, likely[1], got.Llama[i].Likeliest[n][1], 1e-3, "model %d after %q", k, prompts[i])
			}
		}
	}
}

// blocksOf writes a file with one tensor of random blocks in each format.
func blocksOf(t *testing.T) string {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	scales := map[uint32][]int{1: {0}, 2: {0}, 3: {0, 2}, 8: {0}, 12: {0, 2}, 14: {208}}
	entries := order.AppendUint64(order.AppendUint64(order.AppendUint32([]byte(magic), version), 8), 1)
	entries = (entry{"general.architecture", "llama"}).append(entries)
	var data []byte
	for _, kind := range []uint32{0, 1, 2, 3, 8, 12, 14, 30} {
		f := formats[kind]
		rows, width := 3, 512
		entries = appendString(entries, f.name)
		entries = order.AppendUint32(entries, 2)
		entries = order.AppendUint64(order.AppendUint64(entries, uint64(width)), uint64(rows))
		entries = order.AppendUint64(order.AppendUint32(entries, kind), uint64(len(data)))
		for range rows * width / f.values {
			block := make([]byte, f.bytes)
			for i := range block {
				block[i] = byte(r.Uint32())
			}
			for _, at := range scales[kind] { // any half number that is finite, subnormal ones among them
				binary.LittleEndian.PutUint16(block[at:], uint16(r.IntN(0x7c00)|r.IntN(2)<<15))
			}
			if kind == 0 || kind == 30 {
				block[f.bytes-1] &= 0x3f
			}
			data = append(data, block...)
		}
		data = append(data, make([]byte, padding(int64(len(data))))...)
	}
	entries = append(entries, make([]byte, padding(int64(len(entries))))...)
	path := filepath.Join(t.TempDir(), "blocks.gguf")
	require.NoError(t, os.WriteFile(path, append(entries, data...), 0o644))
	return path
}

// TestQuantisedNumbers are those of the package gguf, bit by bit.
func TestQuantisedNumbers(t *testing.T) {
	exe := pythontest.Need(t, "LLAMA", "gguf")
	path := blocksOf(t)
	var want map[string]string
	pythontest.Ask(t, exe, filepath.Join("testdata", "dequantise.py"), path, &want)
	require.Len(t, want, 8)
	f, err := Open(path)
	require.NoError(t, err)
	defer f.Close()
	for name, digest := range want {
		require.Equal(t, digest, digestOf(t, f.tensors[name]), name)
	}
}

func digestOf(t *testing.T, s stored) string {
	t.Helper()
	sum := sha256.New()
	err := checkpoint.TensorFrom("x", s.dims, s).Read(func(_ int, numbers []float32) {
		for _, x := range numbers {
			sum.Write(order.AppendUint32(nil, math.Float32bits(x)))
		}
	})
	require.NoError(t, err)
	return hex.EncodeToString(sum.Sum(nil))
}

// TestFilesThatCannotBeRead: each error names what is wrong.
func TestFilesThatCannotBeRead(t *testing.T) {
	whole, err := os.ReadFile(written(t, of(t, checkpoint.Llama)))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		change func(b []byte) []byte
		want   string
	}{
		"empty": {func([]byte) []byte { return nil }, "the header ends early"},
		"another kind": {func(b []byte) []byte { return append([]byte("PK\x03\x04"), b[4:]...) },
			"does not begin with GGUF"},
		"version":    {func(b []byte) []byte { b[4] = 9; return b }, "version 9"},
		"counts":     {func(b []byte) []byte { b[12] = 255; return b }, "tensors"},
		"cut header": {func(b []byte) []byte { return b[:300] }, "the header ends early"},
		"cut data":   {func(b []byte) []byte { return b[:len(b)-100] }, "ends after the file"},
		"architecture": {func(b []byte) []byte { return bytes.Replace(b, []byte("llama"), []byte("gemma"), 1) },
			`general.architecture is "gemma"`},
		"tensor": {func(b []byte) []byte { return bytes.Replace(b, []byte("blk.1.attn_q"), []byte("blk.1.attn_x"), 1) },
			`tensor "blk.1.attn_q.weight" is missing`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "m.gguf")
			require.NoError(t, os.WriteFile(path, c.change(bytes.Clone(whole)), 0o644))
			f, err := Open(path)
			if err == nil {
				defer f.Close()
				_, err = f.Checkpoint()
			}
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err = Open(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// FuzzOpen reads any bytes without a panic and without memory that the bytes do not justify.
func FuzzOpen(f *testing.F) {
	var b bytes.Buffer
	c, err := checkpoint.Fresh(checkpoint.Shape{Vocab: 3, Hidden: 2, Layers: 1, Heads: 1, KVHeads: 1, HeadDim: 2,
		FFN: 2, Positions: 4, RopeTheta: 10, Pad: -1}, 1)
	if err != nil {
		f.Fatal(err)
	}
	if err := Write(&b, Model{Name: "m", Checkpoint: c, Dtype: checkpoint.F32}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(magic + "\x03\x00\x00\x00"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "m.gguf")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		file, err := Open(path)
		if err != nil {
			return
		}
		defer file.Close()
		if c, err := file.Checkpoint(); err == nil {
			for _, w := range c.Weights {
				if err := w.Read(func(int, []float32) {}); err != nil {
					t.Fatalf("the header promised tensor %s: %v", w.Name, err)
				}
			}
		}
	})
}

// TestHeadersAreBounded reads headers that are small in the file and large in memory.
func TestHeadersAreBounded(t *testing.T) {
	number := binary.LittleEndian.AppendUint64
	text := func(b []byte, s string) []byte { return append(number(b, uint64(len(s))), s...) }
	head := func(entries int) []byte {
		b := append([]byte(magic), 3, 0, 0, 0)
		return number(number(b, 0), uint64(entries))
	}
	array := func(b []byte, key string, kind uint32, n int, value []byte) []byte {
		b = binary.LittleEndian.AppendUint32(text(b, key), typeArray)
		b = number(binary.LittleEndian.AppendUint32(b, kind), uint64(n))
		return append(b, bytes.Repeat(value, n)...)
	}
	open := func(data []byte) error {
		path := filepath.Join(t.TempDir(), "model.gguf")
		require.NoError(t, os.WriteFile(path, data, 0o644))
		f, err := Open(path)
		if err == nil {
			require.NoError(t, f.Close())
		}
		return err
	}
	require.ErrorContains(t, open(array(array(head(2), "a", 1, 1<<22, []byte{1}), "b", 1, 1<<22, []byte{1})),
		"in memory")
	require.ErrorContains(t, open(array(head(1), "a", typeString, 1<<22, number(nil, 0))), "in memory")
	require.ErrorContains(t, open(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(
		binary.LittleEndian.AppendUint32(text(head(1), "a"), typeArray), 1), 1<<20)), "ends early")
	usual := array(head(2), "a", typeString, 300_000, text(nil, "token"))
	require.NoError(t, open(array(usual, "b", typeFloat32, 300_000, make([]byte, 4))))
}
