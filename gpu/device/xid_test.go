package device

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestXidTable(t *testing.T) {
	last := 0
	for _, x := range Xids {
		require.Greater(t, x.First, last, "rows are in order and do not overlap")
		require.GreaterOrEqual(t, x.Last, x.First)
		require.NotEmpty(t, x.Name)
		require.Contains(t, []Consequence{Ignore, Application, Degrade, Fail}, x.Consequence)
		if strings.HasPrefix(x.Action, "RESET_GPU") || strings.HasPrefix(x.Action, "RESTART_BM") ||
			strings.HasPrefix(x.Action, "RESTART_VM") {
			require.Equal(t, Fail, x.Consequence, x.Codes())
		}
		last = x.Last
	}
}

func TestXidOf(t *testing.T) {
	for code, want := range map[int]Consequence{
		13: Application, 31: Application, 43: Application, 45: Ignore, 46: Fail, 48: Fail, 63: Ignore, 64: Fail,
		74: Fail, 79: Fail, 92: Ignore,
		94: Degrade, 95: Fail, 101: Application, 119: Fail, 130: Application, 154: Ignore, 172: Degrade,
		1: Degrade, 50: Degrade, 173: Degrade, 9999: Degrade, // not in the table
	} {
		row := XidOf(code)
		require.Equal(t, want, row.Consequence, "Xid %d, %s", code, row.Name)
		require.True(t, row.First <= code && code <= row.Last)
	}
	require.Equal(t, Kind("gpu_xid_79"), XidKind(79))
}

// docs/gpu.md shows the table as it is.
func TestXidTableInDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/gpu.md")
	require.NoError(t, err)
	var want strings.Builder
	want.WriteString("| Xid | what | NVIDIA's action | consequence |\n| --- | --- | --- | --- |\n")
	for _, x := range Xids {
		fmt.Fprintf(&want, "| %s | %s | %s | %s |\n", x.Codes(), x.Name, x.Action, x.Consequence)
	}
	require.Contains(t, string(page), want.String(), "write the table of docs/gpu.md again:\n%s", want.String())
	for _, kind := range []Kind{KindLost, KindHung, KindUnreadable, KindResetRequired, KindRebootRequired, KindDrain,
		KindDoubleBit, KindRemapPending,
		KindRemapFailed, KindThrottleThermal, KindThrottlePower, KindLinkDown} {
		require.Contains(t, string(page), "`"+string(kind)+"`")
	}
}
