package stack

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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
	require.Greater(t, memoryOf(roots), int64(1<<20))
	self, err := os.Executable()
	require.NoError(t, err)
	hog := exec.Command(self, "hog")
	out, err := hog.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, hog.Start())
	defer func() { _ = hog.Process.Kill(); _ = hog.Wait() }()
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	child := memoryOf([]int{hog.Process.Pid})
	require.GreaterOrEqual(t, child, int64(64<<20))
	require.Greater(t, memoryOf(roots), child)
	require.Equal(t, []int{1 << 30}, readProcesses().trees([]int{1 << 30, 1 << 30}), "each process counts once")
	require.Zero(t, processMemory(1<<30))
}

func TestSecretStaysInside(t *testing.T) {
	a := Addresses{SecretKey: "hush", AccessKey: "id"}
	require.NotContains(t, a.LogValue().String(), "hush")
	require.Contains(t, a.Env(), "AWS_SECRET_ACCESS_KEY=hush")
	l := layout{t.TempDir()}
	require.NoError(t, os.Mkdir(l.servers(), 0o700))
	require.NoError(t, l.writeState(s3Name, state{Addresses: a}))
	text, err := os.ReadFile(l.state(s3Name))
	require.NoError(t, err)
	require.NotContains(t, string(text), "hush")
}

// A full disk refuses a command that needs another server, and not one whose servers run: it may be the one that helps.
func TestAFullDiskLeavesARunningStackUsable(t *testing.T) {
	playedS3(t)
	root := t.TempDir()
	join(t, root, func(o *Options) { o.Need = Need{S3: true} })
	defer func(was uint64) { minFree = was }(minFree)
	minFree = math.MaxUint64
	join(t, root, func(o *Options) { o.Need = Need{S3: true} })
	_, err := Join(t.Context(), testOptions(root))
	require.ErrorContains(t, err, "start the stack in "+root+": disk full: ")
}

// The state keeps the last lines, and a command gets those that it has not shown yet.
func TestLinesOfProgress(t *testing.T) {
	var s state
	require.Empty(t, s.since(0))
	for i := range keptLines + 5 {
		s.say(strconv.Itoa(i))
	}
	require.Len(t, s.since(0), keptLines)
	require.Equal(t, []string{"23", "24"}, s.since(23))
	require.Empty(t, s.since(25))
}

// A lock is shared or owned, others can ask about it, and it changes hands without a moment in which it is free.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	how, err := lockedAs(path)
	require.NoError(t, err)
	require.Equal(t, unlocked, how)
	require.NoFileExists(t, path)
	first, err := takeLock(t.Context(), path, shared)
	require.NoError(t, err)
	second, err := takeLock(t.Context(), path, shared)
	require.NoError(t, err)
	require.ErrorIs(t, first.take(owned), errLocked)
	how, err = first.others()
	require.NoError(t, err)
	require.Equal(t, shared, how)
	require.NoError(t, first.close())
	require.NoError(t, second.take(owned))
	how, err = second.others()
	require.NoError(t, err)
	require.Equal(t, unlocked, how, "its own lock is not another's")
	how, err = lockedAs(path)
	require.NoError(t, err)
	require.Equal(t, owned, how)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = takeLock(ctx, path, shared)
	require.ErrorIs(t, err, errLocked)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, second.close())
}

func TestFullDisk(t *testing.T) {
	free, err := freeBytes(t.TempDir())
	require.NoError(t, err)
	require.Positive(t, free)
	require.NoError(t, layout{t.TempDir()}.checkSpace())
	require.ErrorContains(t, layout{"/proc"}.checkSpace(), "disk full: 0 MiB are free")
}
