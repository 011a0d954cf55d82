package badinput_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/badinput"
)

func TestCompressed(t *testing.T) {
	var packed, archive bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte(`{"messages": []}`))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	z := zip.NewWriter(&archive)
	_, err = z.Create("a.jsonl")
	require.NoError(t, err)
	require.NoError(t, z.Close())

	require.Equal(t, "is compressed with gzip; unpack it first (gunzip)", badinput.Compressed(packed.Bytes()))
	require.Equal(t, "is compressed with zstd; unpack it first (unzstd)",
		badinput.Compressed([]byte("\x28\xb5\x2f\xfd\x04")))
	require.Equal(t, "is compressed with bzip2; unpack it first (bunzip2)", badinput.Compressed([]byte("BZh91AY")))
	require.Equal(t, "is compressed with xz; unpack it first (unxz)", badinput.Compressed([]byte("\xfd7zXZ\x00\x00")))
	require.Equal(t, "is compressed with zip; unpack it first (unzip)", badinput.Compressed(archive.Bytes()))
	for _, plain := range []string{"", "{", "version: 1\n", "PAR1", "BZ"} {
		require.Empty(t, badinput.Compressed([]byte(plain)), plain)
	}
}
