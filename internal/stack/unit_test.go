package stack

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLogTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "part.log")
	var b strings.Builder
	for i := range 30 {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	old := b.Len()
	require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
	require.Equal(t, "  (it wrote nothing)", logTail(path, int64(old)))
	tail := strings.Split(logTail(path, 0), "\n")
	require.Len(t, tail, tailLines)
	require.Equal(t, "  | line 10", tail[0])
	require.Equal(t, "  | line 29", tail[tailLines-1])
	require.Len(t, strings.Split(logTail(path, int64(old-len("line 28\nline 29\n"))), "\n"), 2)
	long := strings.Repeat("x", 3*tailBytes)
	require.NoError(t, os.WriteFile(path, []byte(long), 0o600))
	require.Less(t, len(logTail(path, 0)), maxTailRow+20)
	require.Contains(t, logTail(path+"none", 0), "no log")
}

func TestLongLogIsSetAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "part.log")
	require.NoError(t, os.WriteFile(path, make([]byte, maxLog+1), 0o600))
	f, size, err := openLog(path)
	require.NoError(t, err)
	defer f.Close()
	require.Zero(t, size)
	require.FileExists(t, path+".1")
}

// The memory of a process tree holds what a child uses.
func TestMemoryOfTree(t *testing.T) {
	roots := []int{os.Getpid()}
	before := memoryOf(roots)
	require.Greater(t, before, int64(1<<20))
	self, err := os.Executable()
	require.NoError(t, err)
	hog := exec.Command(self, "hog")
	out, err := hog.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, hog.Start())
	defer func() { _ = hog.Process.Kill(); _ = hog.Wait() }()
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.GreaterOrEqual(t, memoryOf(roots)-before, int64(64<<20))
	require.Less(t, memoryOf([]int{hog.Process.Pid}), memoryOf(roots))
	require.Equal(t, []int{1 << 30}, readProcesses().trees([]int{1 << 30, 1 << 30}), "each process counts once")
	require.Zero(t, processMemory(1<<30))
}

func TestSecretStaysInside(t *testing.T) {
	a := Addresses{SecretKey: "hush", AccessKey: "id"}
	require.NotContains(t, a.LogValue().String(), "hush")
	require.Contains(t, a.Env(), "AWS_SECRET_ACCESS_KEY=hush")
	l := layout{t.TempDir()}
	require.NoError(t, l.writeState(state{Addresses: a}))
	text, err := os.ReadFile(l.state())
	require.NoError(t, err)
	require.NotContains(t, string(text), "hush")
}

func TestPrivateFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	require.NoError(t, privateFolder(dir))
	require.NoError(t, privateFolder(dir), "our own is taken again")
	require.NoError(t, os.Chmod(dir, 0o755))
	require.ErrorContains(t, privateFolder(dir), "must be a folder of mode 0700 that you own")
	link := filepath.Join(t.TempDir(), "l")
	require.NoError(t, os.Symlink(dir, link))
	require.Error(t, privateFolder(link))
}

// A full disk refuses a command that needs another part, and not one whose parts run: it may be the one that helps.
func TestAFullDiskLeavesARunningStackUsable(t *testing.T) {
	s := &supervisor{layout: layout{"/proc"}, parts: map[string]*part{partTemporal: {healthy: true},
		partS3: {healthy: true}}, addresses: Addresses{UI: "u"}}
	got, err := s.ensure(t.Context(), Need{Temporal: true, S3: true})
	require.NoError(t, err)
	require.Equal(t, s.addresses, got)
	_, err = s.ensure(t.Context(), Need{Temporal: true, S3: true, Worker: true})
	require.ErrorContains(t, err, "disk full: 0 MiB are free")
	s.parts = map[string]*part{}
	for _, need := range []Need{{Temporal: true}, {S3: true}} {
		_, err = s.ensure(t.Context(), need)
		require.ErrorContains(t, err, "disk full: 0 MiB are free")
	}
}

func TestFullDisk(t *testing.T) {
	free, err := freeBytes(t.TempDir())
	require.NoError(t, err)
	require.Positive(t, free)
	require.NoError(t, layout{t.TempDir()}.checkSpace())
	require.ErrorContains(t, layout{"/proc"}.checkSpace(), "disk full: 0 MiB are free")
}
