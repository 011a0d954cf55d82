package lease

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHolderInTheKernelsList(t *testing.T) {
	const list = `1: POSIX  ADVISORY  WRITE 11 fd:01:1234 0 EOF
2: FLOCK  ADVISORY  WRITE 4711 fd:01:1234 0 EOF
2: -> FLOCK  ADVISORY  WRITE 4712 fd:01:1234 0 EOF
3: FLOCK  ADVISORY  WRITE -1 00:2f:99 0 EOF
`
	for file, want := range map[string]int{"fd:01:1234": 4711, "fd:01:12345": 0, "00:2f:99": 0, "00:01:1": 0} {
		require.Equal(t, want, holderIn(strings.NewReader(list), file), file)
	}
}
