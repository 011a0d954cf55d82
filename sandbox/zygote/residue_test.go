package zygote

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
)

// Later calls get copies of the zygote's memory. So nothing of a call is there: no code, no input, no name of a
// file, no result.
func TestNothingOfACallStaysInTheZygote(t *testing.T) {
	everyTier(t, func(t *testing.T, e *Executor) {
		mark := "residue" + rand.Text()
		files := []sandbox.File{{Name: "given-" + mark, Content: []byte("content " + mark)}}
		calls := []sandbox.Call{
			{Code: "'a value " + mark + "'", Stdin: "an input " + mark, Files: files},
			{Code: "open('left-" + mark + "', 'w').write('x')", Collect: []string{"left-" + mark, "missing-" + mark}},
			{Code: "raise ValueError('an error " + mark + "')"},
			{Code: "# " + strings.Repeat(mark, 2000) + "\n1"}, // sent as a file
			{Code: "import os, sys\nprint('" + mark + "', file=sys.stderr)\nos.mkdir('" + mark + "')\nos._exit(1)"},
			{Code: "'" + mark + "'", Limits: sandbox.Limits{Processes: 1}},
		}
		for _, call := range calls {
			_, err := e.Run(t.Context(), []sandbox.Call{call})
			require.NoError(t, err)
			require.Empty(t, memoryWith(t, e.peek().bare().command.Process.Pid, mark), call.Code[:20])
		}
		require.Equal(t, "1", run(t, e, "1").Value)
	})
}

func TestNothingOfASessionStaysInTheForkServer(t *testing.T) {
	everySession(t, func(t *testing.T, s *Sessions) {
		mark := "residue" + rand.Text()
		one := newSessionOf(t, s, quick)
		require.Equal(t, fine("", "'"+mark+"'"), cell(t, one, "open('"+mark+"', 'w').close()\n'"+mark+"'"))
		require.NoError(t, one.Close())
		require.Empty(t, memoryWith(t, one.server.command.Process.Pid, mark))
	})
}

// memoryWith lists the mappings of a process that contain a text.
func memoryWith(t *testing.T, pid int, text string) (found []string) {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	require.NoError(t, err)
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Skipf("the memory of other processes cannot be read: %v", err)
	}
	defer memory.Close()
	read := 0
	for line := range strings.Lines(string(maps)) {
		var low, high int64
		var access string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &low, &high, &access); n != 3 || !strings.HasPrefix(access, "rw") {
			continue
		}
		block := make([]byte, high-low)
		n, _ := memory.ReadAt(block, low) // the kernel's own mappings cannot be read
		read += n
		if bytes.Contains(block[:n], []byte(text)) {
			found = append(found, line)
		}
	}
	require.Greater(t, read, 1<<20)
	return found
}
