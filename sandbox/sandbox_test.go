package sandbox

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOrDefault(t *testing.T) {
	require.Equal(t, DefaultLimits, Limits{}.OrDefault())
	want := DefaultLimits
	want.CPU, want.Wall = time.Second, 10*time.Second
	require.Equal(t, want, Limits{CPU: time.Second}.OrDefault(), "wall follows CPU")
	whole := Limits{CPU: 1, Wall: 2, MemoryBytes: 3, OutputBytes: 4, FileBytes: 5, Processes: 6}
	require.Equal(t, whole, whole.OrDefault())
}

func TestOnlyOKDidNotFail(t *testing.T) {
	for _, s := range Statuses() {
		require.Equal(t, s != StatusOK, s.Failed(), s)
		require.Equal(t, s == StatusQueueTimeout || s == StatusInfrastructure, s.Breakage(), s)
	}
}

func TestValidateNamesTheField(t *testing.T) {
	require.NoError(t, Call{Code: "print(1)", Files: []File{{Name: "a/b.txt"}},
		Collect: []string{"out.txt"}}.Validate())
	for _, c := range []struct {
		call Call
		want string
	}{
		{Call{Code: "\xff"}, "code is not UTF-8"},
		{Call{Code: strings.Repeat(" ", MostCode+1)}, "code has 8388609 bytes"},
		{Call{Stdin: strings.Repeat(" ", MostInput+1)}, "stdin has"},
		{Call{Files: make([]File, mostFiles+1)}, "files: there are 257"},
		{Call{Files: []File{{Name: "../x"}}}, `files[0]: name "../x"`},
		{Call{Files: []File{{Name: "x"}, {Name: "x"}}}, "files[1]"},
		{Call{Files: []File{{Name: "/etc/passwd"}}}, "files[0]"},
		{Call{Files: []File{{Name: "a\x00b"}}}, "files[0]"},
		{Call{Files: []File{{Name: "x", Content: make([]byte, MostInput+1)}}}, "files have"},
		{Call{Collect: []string{"ok", "."}}, "collect[1]"},
		{Call{Trace: strings.Repeat("x", MostTrace+1)}, "trace is no"},
		{Call{Limits: Limits{CPU: -1}}, "limits.cpu is negative"},
		{Call{Limits: Limits{Wall: -1}}, "limits.wall is negative"},
		{Call{Limits: Limits{MemoryBytes: -1}}, "limits.memory is negative"},
		{Call{Limits: Limits{OutputBytes: -1}}, "limits.output is negative"},
		{Call{Limits: Limits{FileBytes: -1}}, "limits.file is negative"},
		{Call{Limits: Limits{Processes: -1}}, "limits.processes is negative"},
	} {
		err := c.call.Validate()
		require.ErrorIs(t, err, ErrBadCall)
		require.ErrorContains(t, err, c.want)
		require.True(t, strings.HasPrefix(c.want, BadField(err)) && BadField(err) != "", c.want)
	}
}

func TestKeyHoldsAllThatTheVerdictDependsOn(t *testing.T) {
	base := Call{Code: "print(1)"}
	require.Equal(t, base.Key(), Call{Language: Python, Code: "print(1)", Limits: DefaultLimits}.Key(),
		"defaults written out are the same call")
	seen := map[string]bool{base.Key(): true}
	for _, c := range []Call{
		{Code: "print(2)"}, {Code: "print(1)", Language: Bash}, {Code: "print(1)", Packages: PackagesNumpy},
		{Code: "print(1)", Stdin: "x"},
		{Code: "print(1)", Files: []File{{Name: "a"}}},
		{Code: "print(1)", Files: []File{{Name: "a", Content: []byte("b")}}},
		{Code: "print(1)", Collect: []string{"a"}}, {Code: "print(1)", Limits: Limits{CPU: time.Second}},
		{Code: "print(1)", Limits: Limits{Processes: 2}},
	} {
		require.False(t, seen[c.Key()], "%+v", c)
		seen[c.Key()] = true
	}
}

func TestTiersAreOrdered(t *testing.T) {
	require.True(t, TierFull.AtLeast(TierLandlock))
	require.True(t, TierLandlock.AtLeast(TierLandlock))
	require.False(t, TierRlimits.AtLeast(TierLandlock))
	_, err := ParseTier("strong")
	require.ErrorContains(t, err, `tier "strong"`)
}
