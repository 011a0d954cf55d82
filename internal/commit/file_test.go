package commit_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

// blob writes a file that is larger than one range and returns its name and bytes.
func blob(t *testing.T) (name string, data []byte) {
	t.Helper()
	data = bytes.Repeat([]byte("0123456789abcde\n"), 1<<20)
	name = filepath.Join(t.TempDir(), "model.safetensors")
	require.NoError(t, os.WriteFile(name, data, 0o600))
	return name, data
}

const blobKey = "runs/run=quick-1/checkpoints/000001-0123456789abcdef/model.safetensors"

func TestFilesThereAndBack(t *testing.T) {
	name, data := blob(t)
	s := mem.New()
	w := commit.New(s)
	digest, size, err := commit.DigestFile(name)
	require.NoError(t, err)
	require.Equal(t, schema.Digest(data), digest)
	require.EqualValues(t, len(data), size)
	require.NoError(t, w.PutFile(t.Context(), blobKey, name, size))
	require.NoError(t, w.CheckObject(t.Context(), blobKey, digest, size))
	back := filepath.Join(t.TempDir(), "back")
	require.NoError(t, w.FetchFile(t.Context(), blobKey, digest, size, back))
	got, err := os.ReadFile(back)
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, got))
	require.ErrorIs(t, w.FetchFile(t.Context(), blobKey, digest, size, back), os.ErrExist,
		"a file is never overwritten")
}

func TestDamagedFilesAreRefused(t *testing.T) {
	name, data := blob(t)
	digest, size := schema.Digest(data), int64(len(data))
	flipped := bytes.Clone(data)
	flipped[len(flipped)/2] ^= 1
	for _, test := range []struct {
		name   string
		stored []byte // nil: nothing
		says   string
	}{
		{"missing", nil, "missing though a manifest lists it"},
		{"shorter", data[:len(data)-1], "it has 16777215"},
		{"longer", append(bytes.Clone(data), 0), "it has more"},
		{"other bytes", flipped, "have the digest"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := mem.New()
			if test.stored != nil {
				require.NoError(t, s.Put(t.Context(), blobKey, test.stored))
			}
			back := filepath.Join(t.TempDir(), "back")
			err := commit.New(s).FetchFile(t.Context(), blobKey, digest, size, back)
			require.ErrorIs(t, err, commit.ErrDamaged)
			require.ErrorContains(t, err, blobKey)
			require.ErrorContains(t, err, test.says)
			require.NoFileExists(t, back)
			require.ErrorIs(t, commit.New(s).CheckObject(t.Context(), blobKey, digest, size), commit.ErrDamaged)
		})
	}
	_, size, err := commit.DigestFile(name)
	require.NoError(t, err)
	s := faults.New(mem.New()).WithMaxObject(size - 1)
	err = commit.New(s).PutFile(t.Context(), blobKey, name, size)
	require.ErrorIs(t, err, store.ErrTooLarge)
	require.Zero(t, s.Count(faults.Put, ""), "no request is sent")
}

// If the store cuts a range short, the copy ends: the object counts as damaged, and no other range fills the gap.
func TestTornRangesAreFound(t *testing.T) {
	name, data := blob(t)
	inner := mem.New()
	require.NoError(t, commit.New(inner).PutFile(t.Context(), blobKey, name, int64(len(data))))
	torn := commit.New(faults.New(inner, faults.Rule{Op: faults.Get, Effect: faults.TornSilently}))
	require.ErrorIs(t, torn.CheckObject(t.Context(), blobKey, schema.Digest(data), int64(len(data))), commit.ErrDamaged)
	require.NoError(t, commit.New(inner).CheckObject(t.Context(), blobKey, schema.Digest(data), int64(len(data))))
}
