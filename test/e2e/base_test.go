package e2e

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/storetest"
)

// The processes that tools/test.sh runs these tests in share the command and the base run: the first
// that needs the base run makes it and leaves it in a folder for the others.
const (
	binaryVariable = "ROPEWALK_E2E_BINARY"
	baseVariable   = "ROPEWALK_E2E_BASE"
)

// makeBase makes the base run in a fresh home, whose stack may be up afterwards.
func (h *home) makeBase(t *testing.T) (r report) {
	t.Helper()
	folder := os.Getenv(baseVariable)
	if folder == "" {
		h.ensureUp(t)
		return h.train(t, "base")
	}
	require.NoError(t, os.MkdirAll(folder, 0o755))
	defer lock(t, filepath.Join(folder, "lock"))()
	done := filepath.Join(folder, "report.json")
	if text, err := os.ReadFile(done); err == nil {
		require.NoError(t, json.Unmarshal(text, &r))
		copyBase(t, filepath.Join(folder, "home"), h.dir)
		return r
	} else if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err)
	}
	h.ensureUp(t)
	r = h.train(t, "base")
	copyBase(t, h.dir, filepath.Join(folder, "home"))
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(done, text, 0o600))
	return r
}

// lock waits for an exclusive lock between processes.
func lock(t *testing.T, path string) (unlock func()) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	require.NoError(t, err)
	require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	return func() { f.Close() }
}

// baseParts are what the base run and its warm start have put into a home.
var baseParts = []string{"s3/ropewalk/warmstarts", "s3/ropewalk/" + schema.RunPrefix("base"),
	"s3/ropewalk/" + schema.CatalogueKey("base")}

// copyBase copies the base run from a home's folder to one whose stack is not up. The server keeps notes
// of its own on each file: as attributes, or below objectmeta.
func copyBase(t *testing.T, from, to string) {
	t.Helper()
	for _, part := range baseParts {
		for _, path := range []string{part, strings.Replace(part, "s3/", "objectmeta/", 1)} {
			if _, err := os.Stat(filepath.Join(from, path)); errors.Is(err, fs.ErrNotExist) {
				require.NotEqual(t, part, path, "the base run left no %s", part)
				continue
			}
			target := filepath.Join(to, path)
			require.NoError(t, os.MkdirAll(filepath.Dir(target), 0o755))
			out, err := exec.Command("cp", "--archive", "--no-target-directory", filepath.Join(from, path),
				target).CombinedOutput()
			require.NoError(t, err, "%s", out)
		}
	}
}

// withBase returns a separate home with the base run, so that its runs need no warm start, and the base run's report.
// The home's stack is not up.
func withBase(t *testing.T) (*home, report) {
	t.Helper()
	want := baseReport(t)
	h := newHome(t, t.TempDir())
	copyBase(t, shared.home.dir, h.dir)
	return h, want
}

// lendBase puts the base run into a test's own S3 server, so that runs there need no warm start.
func lendBase(t *testing.T, s storetest.Server) {
	t.Helper()
	baseReport(t)
	if _, err := os.Stat(filepath.Join(shared.home.dir, "objectmeta")); err == nil {
		return // that server's own notes have a place that is not known here: it makes a warm start
	}
	folder := t.TempDir()
	require.NoError(t, os.Symlink(s.Folder, filepath.Join(folder, "s3")))
	copyBase(t, shared.home.dir, folder)
}

// wholeRun returns a run of the shared home that equals the base run, for a test to break: one that an earlier test
// left whole, or a new one.
func (h *home) wholeRun(t *testing.T, otherwise string) string {
	t.Helper()
	if n := len(shared.whole); n > 0 {
		run := shared.whole[n-1]
		shared.whole = shared.whole[:n-1]
		return run
	}
	h.train(t, otherwise)
	return otherwise
}
