package zygote

import (
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func exited(code int) unix.WaitStatus                { return unix.WaitStatus(code << 8) }
func signalled(signal unix.Signal) unix.WaitStatus   { return unix.WaitStatus(signal) }
func saying(record string) stream                    { return stream{bytes: []byte("S" + record)} }
func wrote(text string, overflow bool) stream        { return stream{bytes: []byte(text), overflow: overflow} }
func seconds(s float64) time.Duration                { return time.Duration(s * float64(time.Second)) }
func failing(s sandbox.Status, c int) sandbox.Result { return sandbox.Result{Status: s, ExitCode: c} }

func ended(s sandbox.Status, signal string) sandbox.Result {
	return sandbox.Result{Status: s, ExitCode: -1, Signal: signal}
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		name string
		o    outcome
		want sandbox.Result
	}{
		{"exit 0 is ok whatever the record claims", outcome{wait: exited(0), control: saying("m")}, failing("ok", 0)},
		{"value", outcome{wait: exited(0), control: saying("v42")}, sandbox.Result{Status: "ok", Value: "42"}},
		{"value of a failure is ignored", outcome{wait: exited(1), control: saying("v42")}, failing("runtime_error", 1)},
		{"syntax", outcome{wait: exited(1), control: saying("s")}, failing("syntax_error", 1)},
		{"memory", outcome{wait: exited(1), control: saying("m")}, failing("out_of_memory", 1)},
		{"exit code without record", outcome{wait: exited(9), control: saying("")}, failing("runtime_error", 9)},
		{"CPU limit", outcome{wait: signalled(unix.SIGXCPU), cpu: seconds(2)}, ended("timeout_cpu", "SIGXCPU")},
		{"CPU limit ignored until the hard one", outcome{wait: signalled(unix.SIGKILL), cpu: seconds(3)}, ended("timeout_cpu", "SIGKILL")},
		{"SIGXCPU sent to oneself", outcome{wait: signalled(unix.SIGXCPU), cpu: seconds(0.1)}, ended("killed", "SIGXCPU")},
		{"wall limit", outcome{wait: signalled(unix.SIGKILL), cause: causeWall}, ended("timeout_wall", "SIGKILL")},
		{"wall limit of one that also worked", outcome{wait: signalled(unix.SIGKILL), cpu: seconds(1.9), cause: causeWall}, ended("timeout_wall", "SIGKILL")},
		{"ended by itself just before the wall limit's kill", outcome{wait: exited(0), cause: causeWall, control: saying("")}, failing("ok", 0)},
		{"SIGKILL from elsewhere", outcome{wait: signalled(unix.SIGKILL)}, ended("killed", "SIGKILL")},
		{"crash with core", outcome{wait: signalled(unix.SIGSEGV) | 0x80}, ended("killed", "SIGSEGV")},
		{"a time-out's output is dropped", outcome{wait: signalled(unix.SIGXCPU), cpu: seconds(2), stdout: wrote("a", false), stderr: wrote("b", false)}, ended("timeout_cpu", "SIGXCPU")},
		{"too much output, killed", outcome{wait: signalled(unix.SIGKILL), cause: causeOutput, stdout: wrote("aa", true), stderr: wrote("b", false)},
			sandbox.Result{Status: "output_limit", ExitCode: -1, Signal: "SIGKILL", Stdout: "aa"}},
		{"too much output, ended by itself: the same", outcome{wait: exited(0), stdout: wrote("aa", true)},
			sandbox.Result{Status: "output_limit", ExitCode: -1, Signal: "SIGKILL", Stdout: "aa"}},
		{"text", outcome{wait: exited(0), stdout: wrote("<f at 0x7ffff7bd8a00> at 0x12\xff", false)},
			sandbox.Result{Status: "ok", Stdout: "<f at 0x000000000000> at 0x12\uFFFD"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, c.o.verdict(sandbox.DefaultLimits))
		})
	}
}

func TestCPULimitIsRoundedUp(t *testing.T) {
	require.Equal(t, time.Second, wholeSeconds(time.Millisecond))
	require.Equal(t, 2*time.Second, wholeSeconds(2*time.Second))
	require.Equal(t, 3*time.Second, wholeSeconds(2*time.Second+1))
}

func TestReplyOfWrongSizeIsRefused(t *testing.T) {
	_, err := decodeReply(make([]byte, replySize-1))
	require.ErrorContains(t, err, "got 19 bytes, want 20")
}

func TestTailKeepsTheEnd(t *testing.T) {
	var log tail
	require.Equal(t, "it wrote no log", log.String())
	for range 1000 {
		_, err := log.Write([]byte("0123456789"))
		require.NoError(t, err)
	}
	_, err := log.Write([]byte("the end\n"))
	require.NoError(t, err)
	require.Len(t, log.bytes, tailSize)
	require.Contains(t, log.String(), "the end")
}
