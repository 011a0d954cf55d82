// Package pythontest finds the Python that tests compare with, and skips or fails a test if there is none.
package pythontest

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/internal/testing/longform"
)

// Need returns an interpreter that has all modules. If there is none, the test is skipped, or fails if
// ROPEWALK_REQUIRE_<what> is set.
func Need(t testing.TB, what string, modules ...string) string {
	t.Helper()
	name, err := python.Find(t.Context(), modules...)
	if err != nil {
		if variable := "ROPEWALK_REQUIRE_" + what; os.Getenv(variable) != "" {
			t.Fatalf("%s is set, but %v", variable, err)
		}
		t.Skip(err)
	}
	return name
}

const engineVariable = "ROPEWALK_TEST_ENGINE"

// NeedLong skips a test that starts PyTorch several times or on several ranks, unless the long form is asked for.
func NeedLong(t testing.TB) {
	t.Helper()
	longform.Need(t, engineVariable, "test-engine")
}

// Long reports whether the long form of the tests with PyTorch is asked for.
func Long() bool {
	return longform.Asked(engineVariable)
}

// Start runs a script that answers lines of JSON. Its input ends with the test, and it must then exit successfully.
func Start(t testing.TB, interpreter, script string) *bench.Peer {
	t.Helper()
	p, err := bench.StartPeer(context.Background(), script, exec.Command(interpreter, script))
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := p.Close()
		require.NoError(t, err)
	})
	return p
}

// Ask runs a script once with a question as JSON on its standard input, and decodes the JSON of its answer. The script
// uses one thread and no network.
func Ask(t testing.TB, interpreter, script string, question, answer any) {
	t.Helper()
	in, err := json.Marshal(question)
	require.NoError(t, err)
	cmd := exec.Command(interpreter, script)
	var messages bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &messages
	cmd.Env = append(os.Environ(), "HF_HUB_OFFLINE=1", "OMP_NUM_THREADS=1")
	out, err := cmd.Output()
	require.NoError(t, err, messages.String())
	require.NoError(t, json.Unmarshal(out, answer), "%s", out)
}
