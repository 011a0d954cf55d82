package stack

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// playedS3 puts this test binary on the PATH as the S3 server, so that a stack needs no other program.
func playedS3(t *testing.T) {
	t.Helper()
	forgetServers(t)
	self, err := os.Executable()
	require.NoError(t, err)
	bin := t.TempDir()
	require.NoError(t, os.Symlink(self, filepath.Join(bin, "versitygw")))
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// Every command whose server's supervisor is killed joins the next one, at the same address, and the last command to
// leave still ends the server.
func TestTakeOver(t *testing.T) {
	playedS3(t)
	root := t.TempDir()
	s3 := func(o *Options) { o.Need = Need{S3: true} }
	first, progress := join(t, root, s3)
	second, more := join(t, root, s3)
	for range 2 { // a command that still joins the next supervisor when that is killed says so once
		awaitNext(t, root, killSupervisors(t, root))
		for l, said := range map[*Lease]*lines{first: progress, second: more} {
			eventually(t, "the command has noticed", func() bool {
				return strings.Contains(said.text(), "supervisor of S3 has died: joining the next one")
			})
			require.NoError(t, l.Err())
			require.Equal(t, 200, statusOf(t, l.Addresses().S3Endpoint))
		}
	}
	last := current(t, root)
	require.NoError(t, first.Close())
	require.Equal(t, last, current(t, root))
	require.NoError(t, second.Close())
	require.False(t, alive(last.servers[s3Name]))
	eventually(t, "the supervisor has ended", func() bool { return !alive(last.supervisors[s3Name]) })
}

// If another process has taken the port of a stack, the stack cannot serve a command's clients: it is lost, and the
// command is told.
func TestTakeOverElsewhere(t *testing.T) {
	playedS3(t)
	root := t.TempDir()
	l, _ := join(t, root, func(o *Options) { o.Need = Need{S3: true} })
	start, err := takeLock(t.Context(), layout{root}.starting(s3Name), owned) // no supervisor starts meanwhile
	require.NoError(t, err)
	was := killSupervisors(t, root)
	var thief net.Listener
	eventually(t, "the port is free", func() bool { // connections of the server that has ended may hold it for a while
		thief, err = net.Listen("tcp", was.addresses.S3Endpoint[len("http://"):])
		return err == nil
	})
	defer thief.Close()
	require.NoError(t, start.close())
	<-l.Done()
	require.ErrorIs(t, l.Err(), errLost)
	require.ErrorContains(t, l.Err(), "something else has taken its port")
}

// A server that is killed is started again, however often.
func TestKilledAgainAndAgain(t *testing.T) {
	playedS3(t)
	root := t.TempDir()
	l, progress := join(t, root, func(o *Options) { o.Need = Need{S3: true} })
	for range testTuning.maxQuick + 2 {
		killAndWatch(t, root, s3Name, progress, "S3 died (signal: killed): starting it again")
	}
	require.NoError(t, l.Err())
}

// A supervisor that is asked to stop ends its server: no command starts another one.
func TestStoppedSupervisor(t *testing.T) {
	playedS3(t)
	root := t.TempDir()
	l, _ := join(t, root, func(o *Options) { o.Need = Need{S3: true} })
	was := current(t, root)
	require.NoError(t, syscall.Kill(was.supervisors[s3Name], syscall.SIGTERM))
	<-l.Done()
	require.ErrorIs(t, l.Err(), errLost)
	require.ErrorContains(t, l.Err(), "was asked to stop")
	eventually(t, "the stack has ended", func() bool { return len(current(t, root).supervisors) == 0 })
	require.False(t, alive(was.servers[s3Name]))
	require.NoError(t, l.Close())
	again, _ := join(t, root, func(o *Options) { o.Need = Need{S3: true} })
	require.Equal(t, 200, statusOf(t, again.Addresses().S3Endpoint), "what it has left behind stops no one")
}

// A supervisor that is killed while it starts its server, or whose command is, is replaced or ends.
func TestKilledWhileItStarts(t *testing.T) {
	playedS3(t)
	root := t.TempDir()
	o := freePorts(t, testOptions(root))
	o.Need = Need{S3: true}
	killed := false
	o.Progress = func(line string) {
		if line == "starting S3…" && !killed {
			s, err := layout{root}.readState(s3Name)
			killed = err == nil && syscall.Kill(s.PID, syscall.SIGKILL) == nil
		}
	}
	l, err := Join(t.Context(), o)
	require.NoError(t, err)
	require.True(t, killed)
	require.Equal(t, 200, statusOf(t, l.Addresses().S3Endpoint))
	require.NoError(t, l.Close())
	require.Empty(t, current(t, root).supervisors)
}

// While a command waits for the next worker, which needs the servers, it joins their next supervisors.
func TestTakeOversSideBySide(t *testing.T) {
	needServers(t)
	root := t.TempDir()
	l, progress := join(t, root, func(*Options) {})
	start, err := takeLock(t.Context(), layout{root}.starting(workerName), owned) // no worker starts meanwhile
	require.NoError(t, err)
	was := current(t, root)
	require.NoError(t, syscall.Kill(was.supervisors[workerName], syscall.SIGKILL))
	eventually(t, "the command waits for the next worker", func() bool {
		return strings.Contains(progress.text(), "supervisor of the worker has died: joining the next one")
	})
	require.NoError(t, syscall.Kill(was.supervisors[s3Name], syscall.SIGKILL))
	eventually(t, "another supervisor has S3", func() bool {
		now, err := layout{root}.running(s3Name)
		return err == nil && now.PID != was.supervisors[s3Name] && now.Healthy
	})
	require.NoError(t, start.close())
	eventually(t, "another supervisor has the worker", func() bool {
		now, err := layout{root}.running(workerName)
		return err == nil && now.PID != was.supervisors[workerName] && now.Healthy
	})
	require.NoError(t, l.Err())
}
