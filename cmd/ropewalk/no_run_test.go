package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/store/mem"
)

// withoutServers makes the local record hold the named runs, and runs commands that must not start a server.
func withoutServers(t *testing.T, runs ...string) func(args ...string) (code int, out, messages string) {
	t.Helper()
	objects := mem.New()
	for i, run := range runs {
		recordtest.Train(t, objects, recordtest.Options{Run: run, Steps: 2, Seed: uint64(i + 1),
			Created: "2026-01-02T03:04:05Z"})
	}
	home := t.TempDir()
	t.Setenv("ROPEWALK_HOME", home)
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "TEMPORAL_ADDRESS", "ROPEWALK_S3_BUCKET"} {
		t.Setenv(name, "")
	}
	recordtest.Unpack(t, objects, filepath.Join(home, "s3", "ropewalk"))
	return func(args ...string) (int, string, string) {
		var out, messages bytes.Buffer
		code := Run(t.Context(), args, &out, &messages)
		require.NotContains(t, messages.String(), "starting", args)
		require.NoDirExists(t, filepath.Join(home, "servers"))
		return code, out.String(), messages.String()
	}
}

// Every command that takes a run suggests the run that a misspelt name may mean.
func TestAMisspeltRunIsSuggested(t *testing.T) {
	run := withoutServers(t, "quickstart-s1-20260102-030405", "quickstart-s1-20260103-030405", "other")
	const near = "did you mean quickstart-s1-20260102-030405?"
	misspelt := "quickstat-s1-20260102-030405"
	folder := t.TempDir()
	for _, args := range []string{
		"show RUN", "show RUN --step 1", "verify RUN", "report RUN -o -", "report other RUN -o -", "diff RUN --step 1",
		"diff other RUN", "sql --run RUN select(1)from(rewards)", "compact RUN", "follow RUN", "pause RUN",
		"unpause RUN", "stop RUN", "set RUN --steps 3", "unpark RUN --retry", "cancel RUN",
		"replay RUN --step 1 --from reward", "replay --check RUN", "view RUN --address 127.0.0.1:0",
		"export RUN -o " + folder, "export RUN --checkpoint latest -o " + folder + "/policy",
		"export RUN --format tensorboard -o " + folder,
	} {
		t.Run(args, func(t *testing.T) {
			code, out, messages := run(strings.Fields(strings.ReplaceAll(args, "RUN", misspelt))...)
			require.Equal(t, exitBadInput, code, messages)
			require.Empty(t, out)
			require.Contains(t, messages, "no such run in the record: "+misspelt)
			require.True(t, strings.HasSuffix(messages, near+"\n"), messages)
		})
	}
	for _, c := range []struct{ name, want string }{
		{"quickstart-s1", "did you mean quickstart-s1-20260102-030405 or quickstart-s1-20260103-030405?"},
		{"otehr", "did you mean other?"},
		{"nosuch", "`ropewalk runs` lists them"},
	} {
		_, _, messages := run("show", c.name)
		require.Contains(t, messages, c.want)
	}
}

// A replay that the record shows to be impossible is refused before any server starts for it.
func TestABadReplayStartsNothing(t *testing.T) {
	run := withoutServers(t, "r")
	code, out, messages := run("replay", "r", "--step", "77", "--from", "reward")
	require.Equal(t, exitBadInput, code, messages)
	require.Empty(t, out)
	require.Contains(t, messages, "step 77 of run r has committed nothing")
	_, _, messages = run("replay", "r", "--steps", "77-78", "--from", "reward")
	require.Contains(t, messages, "step 77 of run r has committed nothing")
}
