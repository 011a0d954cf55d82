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
	for _, x := range xidTable {
		require.Greater(t, x.First, last, "rows are in order and do not overlap")
		require.GreaterOrEqual(t, x.Last, x.First)
		require.NotEmpty(t, x.Name)
		require.Contains(t, []consequence{ignore, application, degrade, fail}, x.Consequence)
		if strings.HasPrefix(x.Action, "RESET_GPU") || strings.HasPrefix(x.Action, "RESTART_BM") ||
			strings.HasPrefix(x.Action, "RESTART_VM") {
			require.Equal(t, fail, x.Consequence, x.Codes())
		}
		last = x.Last
	}
}

func TestXidOf(t *testing.T) {
	for code, want := range map[int]consequence{
		13: application, 31: application, 43: application, 45: ignore, 46: fail, 48: fail, 63: ignore, 64: fail,
		74: fail, 79: fail, 92: ignore,
		94: degrade, 95: fail, 101: application, 119: fail, 130: application, 154: ignore, 172: degrade,
		1: degrade, 50: degrade, 173: degrade, 9999: degrade, // not in the table
	} {
		row := XidOf(code)
		require.Equal(t, want, row.Consequence, "Xid %d, %s", code, row.Name)
		require.True(t, row.First <= code && code <= row.Last)
	}
	require.Equal(t, Kind("gpu_xid_79"), xidKind(79))
}

// docs/gpu.md lists all codes by their consequence.
func TestXidTableInDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/gpu.md")
	require.NoError(t, err)
	want := "| consequence | Xids |\n| --- | --- |\n"
	for _, c := range []consequence{fail, degrade, application, ignore} {
		var codes []string
		for _, x := range xidTable {
			if x.Consequence == c {
				codes = append(codes, x.Codes())
			}
		}
		want += fmt.Sprintf("| %s | %s |\n", c, strings.Join(codes, ", "))
	}
	require.Contains(t, string(page), want, "write the table of docs/gpu.md again:\n%s", want)
	for _, kind := range []Kind{KindLost, KindHung, KindUnreadable, KindResetRequired, KindRebootRequired, KindDrain,
		KindDoubleBit, KindRemapPending,
		KindRemapFailed, KindThrottleThermal, KindThrottlePower, KindLinkDown} {
		require.Contains(t, string(page), "`"+string(kind)+"`")
	}
}
