package stack

import (
	"context"
	"net"
	"os"
	"path/filepath"
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

// Every command that a killed supervisor served joins the next one, at the same address, and the last command to leave
// still ends the stack.
func TestTakeOver(t *testing.T) {
	playedS3(t)
	root := t.TempDir()
	s3 := func(o *Options) { o.Need = Need{S3: true} }
	first, progress := join(t, root, s3)
	second, _ := join(t, root, s3)
	for range 2 {
		was := currentState(t, root)
		require.NoError(t, syscall.Kill(was.PID, syscall.SIGKILL))
		eventually(t, "another supervisor has the server", func() bool {
			now, err := layout{root}.readState()
			return err == nil && now.PID != was.PID && now.Parts[partS3] != 0 && now.Addresses.S3Endpoint != ""
		})
		for _, l := range []*Lease{first, second} {
			_, err := l.PeakMB(context.Background(), false) // waits until the command has joined
			require.NoError(t, err)
			require.NoError(t, l.Err())
			require.Equal(t, 200, statusOf(t, l.Addresses().S3Endpoint))
		}
	}
	require.Contains(t, progress.text(), "supervisor has died: joining the next one")
	last := currentState(t, root)
	require.NoError(t, first.Close())
	require.True(t, alive(last.PID))
	require.NoError(t, second.Close())
	eventually(t, "the supervisor has ended", func() bool { return !alive(last.PID) })
	require.False(t, alive(last.Parts[partS3]))
}

// If another process has taken the port of a stack, the stack cannot serve a command's clients: it is lost, and the
// command is told.
func TestTakeOverElsewhere(t *testing.T) {
	playedS3(t)
	root := t.TempDir()
	l, _ := join(t, root, func(o *Options) { o.Need = Need{S3: true} })
	was := currentState(t, root)
	start, err := waitLock(context.Background(), layout{root}.startLock()) // no supervisor starts meanwhile
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(was.PID, syscall.SIGKILL))
	eventually(t, "the server has ended", func() bool { return !alive(was.Parts[partS3]) })
	var thief net.Listener
	eventually(t, "the port is free", func() bool { // connections of the server that has ended may hold it for a while
		thief, err = net.Listen("tcp", was.Addresses.S3Endpoint[len("http://"):])
		return err == nil
	})
	defer thief.Close()
	start.release()
	<-l.Done()
	require.ErrorIs(t, l.Err(), ErrLost)
	require.ErrorContains(t, l.Err(), "something else has taken its port")
}

// A server that is killed is started again, however often.
func TestKilledAgainAndAgain(t *testing.T) {
	playedS3(t)
	root := t.TempDir()
	l, progress := join(t, root, func(o *Options) { o.Need = Need{S3: true} })
	for range testTuning.maxQuick + 2 {
		killAndWatch(t, root, partS3, progress, "S3 died (signal: killed): starting it again")
	}
	require.NoError(t, l.Err())
}

// A supervisor that is asked to stop ends the stack: no command starts another one.
func TestStoppedSupervisor(t *testing.T) {
	playedS3(t)
	root := t.TempDir()
	l, _ := join(t, root, func(o *Options) { o.Need = Need{S3: true} })
	require.NoError(t, syscall.Kill(currentState(t, root).PID, syscall.SIGTERM))
	<-l.Done()
	require.ErrorIs(t, l.Err(), ErrLost)
	require.ErrorContains(t, l.Err(), "was asked to stop")
	eventually(t, "the stack has ended", func() bool { return !layout{root}.supervised() })
	require.NoFileExists(t, layout{root}.state())
}
