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
		{"exit 0 is ok whatever the record claims", outcome{reply: reply{wait: exited(0), kind: 'm'}},
			failing("ok", 0)},
		{"value", outcome{reply: reply{wait: exited(0), kind: 'v', record: "42"}},
			sandbox.Result{Status: "ok", Value: "42"}},
		{"value of a failure is ignored", outcome{reply: reply{wait: exited(1), kind: 'v', record: "42"}},
			failing("runtime_error", 1)},
		{"syntax", outcome{reply: reply{wait: exited(1), kind: 's'}}, failing("syntax_error", 1)},
		{"memory", outcome{reply: reply{wait: exited(1), kind: 'm'}}, failing("out_of_memory", 1)},
		{"the work folder is full", outcome{reply: reply{wait: exited(1), kind: 'f', record: "OSError"}},
			sandbox.Result{Status: "file_limit", ExitCode: 1, Traceback: "OSError"}},
		{"a file too large, by the kernel", outcome{reply: reply{wait: signalled(unix.SIGXFSZ)}},
			ended("file_limit", "SIGXFSZ")},
		{"too much collected", outcome{reply: reply{wait: exited(0), flags: flagTooMuch}}, ended("file_limit", "")},
		{"no more processes", outcome{reply: reply{wait: exited(1), kind: 'p'}}, failing("process_limit", 1)},
		{"a value too long for the board", outcome{reply: reply{wait: exited(0), kind: 'o'}},
			ended("output_limit", "SIGKILL")},
		{"exit code without record", outcome{reply: reply{wait: exited(9)}}, failing("runtime_error", 9)},
		{"CPU limit", outcome{reply: reply{wait: signalled(unix.SIGXCPU), cpu: seconds(2)}},
			ended("timeout_cpu", "SIGXCPU")},
		{"CPU limit ignored until the hard one", outcome{reply: reply{wait: signalled(unix.SIGKILL), cpu: seconds(3)}},
			ended("timeout_cpu", "SIGKILL")},
		{"SIGXCPU sent to oneself", outcome{reply: reply{wait: signalled(unix.SIGXCPU), cpu: seconds(0.1)}},
			ended("killed", "SIGXCPU")},
		{"wall limit", outcome{reply: reply{wait: signalled(unix.SIGKILL)}, cause: causeWall},
			ended("timeout_wall", "SIGKILL")},
		{"wall limit of one that also worked",
			outcome{reply: reply{wait: signalled(unix.SIGKILL), cpu: seconds(1.9)}, cause: causeWall},
			ended("timeout_wall", "SIGKILL")},
		{"ended by itself just before the wall limit's kill", outcome{reply: reply{wait: exited(0)}, cause: causeWall},
			failing("ok", 0)},
		{"SIGKILL from elsewhere", outcome{reply: reply{wait: signalled(unix.SIGKILL)}}, ended("killed", "SIGKILL")},
		{"crash with core", outcome{reply: reply{wait: signalled(unix.SIGSEGV) | 0x80}}, ended("killed", "SIGSEGV")},
		{"a time-out's output is dropped",
			outcome{reply: reply{wait: signalled(unix.SIGXCPU), cpu: seconds(2)}, stdout: wrote("a", false),
				stderr: wrote("b", false)}, ended("timeout_cpu", "SIGXCPU")},
		{"too much output, killed", outcome{reply: reply{wait: signalled(unix.SIGKILL)}, cause: causeOutput,
			stdout: wrote("aa", true), stderr: wrote("b", false)},
			sandbox.Result{Status: "output_limit", ExitCode: -1, Signal: "SIGKILL", Stdout: "aa"}},
		{"too much output, ended by itself: the same",
			outcome{reply: reply{wait: exited(0)}, stdout: wrote("aa", true)},
			sandbox.Result{Status: "output_limit", ExitCode: -1, Signal: "SIGKILL", Stdout: "aa"}},
		{"text", outcome{reply: reply{wait: exited(0)},
			stdout: wrote("<f at 0x7ffff7bd8a00> at 0x12 <code object at 0xe28a40, x> at 0x7ffff7bd8a00 \xff", false)},
			sandbox.Result{Status: "ok",
				Stdout: "<f at 0x000000000000> at 0x12 <code object at 0x000000000000, x> at 0x7ffff7bd8a00 \uFFFD"}},
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
	require.ErrorContains(t, err, "got 37 bytes, want at least 38")
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
