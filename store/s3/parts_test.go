package s3

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPartsOfEverySize(t *testing.T) {
	for _, test := range []struct{ wanted, size, part int64 }{
		{DefaultPartSize, 1, DefaultPartSize},
		{DefaultPartSize, 5 << 30, DefaultPartSize},
		{DefaultPartSize, maxParts * DefaultPartSize, DefaultPartSize},
		{DefaultPartSize, maxParts*DefaultPartSize + 1, DefaultPartSize + 1<<20},
		{minPart, maxObject, 525 << 20},
	} {
		got := partSize(test.wanted, test.size)
		require.Equal(t, test.part, got, "%d bytes", test.size)
		require.LessOrEqual(t, got, int64(maxPut))
		require.LessOrEqual(t, source{size: test.size, part: got}.parts(), maxParts)
	}
}

// The parts cover the content once, in order.
func TestSections(t *testing.T) {
	content := []byte("abcdefghij")
	for part := int64(1); part <= 11; part++ {
		s := source{bytes.NewReader(content), int64(len(content)), part}
		var all []byte
		for n := 1; n <= s.parts(); n++ {
			piece, err := io.ReadAll(s.section(n))
			require.NoError(t, err)
			require.NotEmpty(t, piece)
			all = append(all, piece...)
		}
		require.Equal(t, content, all, "parts of %d bytes", part)
	}
}
