package s3_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/testing/storetest"
	"github.com/ropewalk/ropewalk/store/s3"
)

const (
	largeVariable = "ROPEWALK_TEST_LARGE"
	largeObject   = 5<<30 + 300<<20 + 7 // more than a single put takes
	// largeMemory bounds the memory that the process may use, in bytes: for parts and ranges in transit, and for Go
	// itself.
	largeMemory = 512 << 20
)

// generated is content that is computed when it is read, so that it takes no disk. It is different at every offset.
type generated struct{ size int64 }

func (g generated) ReadAt(p []byte, offset int64) (int, error) {
	n := 0
	var word [8]byte
	for n < len(p) && offset+int64(n) < g.size {
		at := uint64(offset) + uint64(n)
		x := at / 8 * 0x9e3779b97f4a7c15
		x ^= x >> 29
		binary.LittleEndian.PutUint64(word[:], x*0xbf58476d1ce4e5b9)
		n += copy(p[n:min(int64(len(p)), g.size-offset)], word[at%8:])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// peakMemory returns the peak resident memory of this process.
func peakMemory(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			require.NoError(t, err)
			return kib << 10
		}
	}
	t.Fatal("/proc/self/status has no VmHWM")
	return 0
}

func TestGeneratedContent(t *testing.T) {
	whole := make([]byte, 1000)
	_, err := generated{1000}.ReadAt(whole, 0)
	require.NoError(t, err)
	for _, r := range [][2]int{{0, 1}, {3, 8}, {8, 100}, {991, 9}, {17, 500}} {
		piece := make([]byte, r[1])
		n, err := generated{1000}.ReadAt(piece, int64(r[0]))
		require.NoError(t, err)
		require.Equal(t, r[1], n)
		require.True(t, bytes.Equal(whole[r[0]:r[0]+r[1]], piece), "%v", r)
	}
	n, err := generated{1000}.ReadAt(whole, 900)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, 100, n)
}

// An object beyond the limit of a single put goes to a real server and back to a file, checked by its digest, in
// bounded memory. The test takes up to 12 GiB of disk while the server assembles the object from its parts.
func TestMoreThanASinglePut(t *testing.T) {
	if os.Getenv(largeVariable) == "" {
		t.Skipf("takes minutes and 12 GiB of disk: make test-large sets %s", largeVariable)
	}
	server := storetest.Versitygw(t)
	s, err := s3.New(s3.Options{
		Endpoint: server.Endpoint, Bucket: "large", AccessKey: server.AccessKey, SecretKey: server.SecretKey,
	})
	require.NoError(t, err)
	require.NoError(t, s.EnsureBucket(t.Context()))
	whole := generated{largeObject}
	h := sha256.New()
	_, err = io.Copy(h, io.NewSectionReader(whole, 0, largeObject))
	require.NoError(t, err)
	digest := hex.EncodeToString(h.Sum(nil))

	require.NoError(t, s.PutFrom(t.Context(), blobKey, whole, largeObject))
	back := filepath.Join(t.TempDir(), "optimizer.safetensors")
	require.NoError(t, commit.New(s).FetchFile(t.Context(), blobKey, digest, largeObject, back))
	got, size, err := commit.DigestFile(back)
	require.NoError(t, err)
	require.EqualValues(t, largeObject, size)
	require.Equal(t, digest, got)
	peak := peakMemory(t)
	fmt.Printf("%d bytes there and back, at most %d MiB in memory\n", size, peak>>20)
	require.Less(t, peak, int64(largeMemory))
}
