package verify_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/verify"
	"github.com/ropewalk/ropewalk/internal/signing"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/internal/testing/tamper"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

// signer is a new key, with the keys that trust it alone.
func signer(t *testing.T) (*signing.Signer, signing.Keys) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	write := func(kind string, data []byte, err error) string {
		t.Helper()
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "key.pem")
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600))
		return path
	}
	data, err := x509.MarshalPKCS8PrivateKey(private)
	s, err := signing.Load(write("PRIVATE KEY", data, err))
	require.NoError(t, err)
	data, err = x509.MarshalPKIXPublicKey(public)
	keys, err := signing.LoadKeys([]string{write("PUBLIC KEY", data, err)})
	require.NoError(t, err)
	return s, keys
}

// sign signs all manifests and heads of the run, and returns their keys.
func sign(t *testing.T, objects store.Store, s *signing.Signer) (documents []string) {
	t.Helper()
	listed, err := objects.List(t.Context(), schema.RunPrefix("r"))
	require.NoError(t, err)
	for _, o := range listed {
		if at, signature := s.Sign(o.Key, tamper.Get(t, objects, o.Key)); at != "" {
			tamper.Put(t, objects, at, signature)
			documents = append(documents, o.Key)
		}
	}
	return documents
}

func TestVerifySignatures(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1})
	mine, keys := signer(t)
	other, others := signer(t)
	signed := func(keys signing.Keys) []string {
		t.Helper()
		v, err := verify.Signed(t.Context(), objects, "r", keys, false)
		require.NoError(t, err)
		return tamper.Faults(v)
	}
	require.Empty(t, signed(nil))
	documents := sign(t, objects, other)
	require.Greater(t, len(documents), 10)
	require.Len(t, signed(keys), len(documents), "signed by another key")
	before := tamper.Verify(t, objects)
	require.Zero(t, before.Orphans, "a signature is no orphan")
	sign(t, objects, mine)
	require.Empty(t, signed(keys))
	require.Empty(t, signed(others))

	// A signature of other bytes under the place of these.
	document := documents[3]
	at, signature := mine.Sign(document, tamper.Get(t, objects, document))
	tamper.Put(t, objects, at, append([]byte{signature[0] ^ 1}, signature[1:]...))
	require.Equal(t, []string{"signature " + document}, signed(keys))
	tamper.Put(t, objects, at, signature)
	require.NoError(t, objects.Delete(t.Context(), at))
	require.Equal(t, []string{"signature " + document}, signed(keys))
	require.Empty(t, signed(others))

	// One valid signature by a trusted key is enough, whatever the signature of another trusted key is.
	both := maps.Clone(keys)
	maps.Copy(both, others)
	for _, damaged := range []*signing.Signer{mine, other} {
		sign(t, objects, mine)
		for _, document := range documents {
			at, signature := damaged.Sign(document, tamper.Get(t, objects, document))
			tamper.Put(t, objects, at, append([]byte{signature[0] ^ 1}, signature[1:]...))
		}
		require.Empty(t, signed(both))
		sign(t, objects, other)
	}

	// Where none is valid, the fault names the first one.
	at, signature = mine.Sign(document, tamper.Get(t, objects, document))
	second, theirs := other.Sign(document, tamper.Get(t, objects, document))
	tamper.Put(t, objects, at, append([]byte{signature[0] ^ 1}, signature[1:]...))
	tamper.Put(t, objects, second, append([]byte{theirs[0] ^ 1}, theirs[1:]...))
	v, err := verify.Signed(t.Context(), objects, "r", both, false)
	require.NoError(t, err)
	require.Len(t, v.Faults, 1)
	require.Equal(t, document, v.Faults[0].Key)
	require.Equal(t, "has a signature that is not valid: "+min(at, second), v.Faults[0].Message)
}

// A note of pruning is what lets a checkpoint's files be away, so it is signed, too.
func TestVerifyDemandsSignedNotesOfPruning(t *testing.T) {
	objects := mem.New()
	run := recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 3, Seed: 1})
	mine, keys := signer(t)
	weights := run.Updates[1].Checkpoint.Prefix + "model.safetensors"
	before := tamper.Get(t, objects, weights)
	run.Prune(2) // by the run
	sign(t, objects, mine)
	found := func() []string {
		t.Helper()
		v, err := verify.Signed(t.Context(), objects, "r", keys, false)
		require.NoError(t, err)
		return tamper.Faults(v)
	}
	require.Empty(t, found())
	run.Prune(1) // by someone without the key
	note := run.Updates[1].Checkpoint.Prefix + schema.PrunedFile
	require.Equal(t, []string{"signature " + note}, found())
	tamper.Put(t, objects, weights, append([]byte("x"), before[1:]...))
	require.ElementsMatch(t, []string{"damaged " + weights, "signature " + note}, found(),
		"nor may other weights be next to a note")
	require.Contains(t, tamper.Faults(tamper.Verify(t, objects)), "damaged "+weights)
	tamper.Put(t, objects, weights, before)
	require.Equal(t, []string{"signature " + note}, found(), "pruning may not have deleted a file yet")

	// A signed note of another checkpoint is none of this one.
	other := run.Updates[2].Checkpoint.Prefix + schema.PrunedFile
	tamper.Put(t, objects, note, tamper.Get(t, objects, other))
	at, signature := mine.Sign(other, tamper.Get(t, objects, other))
	require.NotEmpty(t, at)
	moved, _ := mine.Sign(note, tamper.Get(t, objects, note))
	tamper.Put(t, objects, moved, signature)
	require.Contains(t, found(), "signature "+note)
}

// Signatures hold for what is there. So that the end of a run cannot be cut off, a complete one is demanded: the run
// commits its end, which names its last evaluation.
func TestVerifyDemandsTheEndOfASignedRun(t *testing.T) {
	mine, keys := signer(t)
	end := func(step int) string { return schema.At("r", step, schema.StageEnd).ManifestKey() }
	for name, c := range map[string]struct {
		options recordtest.Options
		cut     int // remove what comes after this step
		want    []string
	}{
		"complete": {recordtest.Options{Steps: 3}, 3, nil},
		"stopped":  {recordtest.Options{Steps: 3, Planned: 5, Stopped: true}, 3, nil},
		"goes on":  {recordtest.Options{Steps: 3, Planned: 5}, 3, []string{"missing " + end(3)}},
		"cut":      {recordtest.Options{Steps: 4}, 2, []string{"missing " + end(2)}},
		"cut at the evaluation after a step": {recordtest.Options{Steps: 4, EvaluateAt: map[int]int{2: 1}}, 2,
			[]string{"missing " + end(2)}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := mem.New()
			c.options.Run, c.options.Seed = "r", 1
			recordtest.Train(t, objects, c.options)
			sign(t, objects, mine)
			listed, err := objects.List(t.Context(), "")
			require.NoError(t, err)
			for _, o := range listed {
				place, err := schema.ParseManifestKey(o.Key)
				if _, step, notHead := schema.ParseHeadKey(o.Key); notHead == nil {
					place, err = schema.Place{Step: step}, nil
				}
				if n, numbered := place.StepNumber(); err == nil && numbered && n > c.cut {
					require.NoError(t, objects.Delete(t.Context(), o.Key))
				}
			}
			v, err := verify.Signed(t.Context(), objects, "r", keys, false)
			require.NoError(t, err)
			require.Equal(t, append([]string{}, c.want...), tamper.Faults(v))
			v, err = verify.Signed(t.Context(), objects, "r", keys, true)
			require.NoError(t, err)
			require.Empty(t, v.Faults)
		})
	}
}
