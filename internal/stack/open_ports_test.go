package stack

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// openPorts lists the addresses on which a process and its descendants listen.
func openPorts(t *testing.T, root int) (out []string) {
	t.Helper()
	tables := []string{"net/tcp", "net/tcp6"}
	seen := map[string]bool{}
	inodes := map[string]bool{}
	for _, pid := range readProcesses().trees([]int{root}) {
		entries, _ := os.ReadDir(procFile(pid, "fd"))
		for _, e := range entries {
			if name, err := os.Readlink(procFile(pid, "fd") + "/" + e.Name()); err == nil {
				inodes[name] = true
			}
		}
	}
	for _, table := range tables {
		text, err := os.ReadFile(procFile(root, table))
		require.NoError(t, err)
		for line := range bytes.Lines(text) {
			f := strings.Fields(string(line))
			if len(f) < 10 || f[3] != "0A" || !inodes["socket:["+f[9]+"]"] {
				continue
			}
			host, port, _ := strings.Cut(f[1], ":")
			raw, err := hex.DecodeString(host)
			require.NoError(t, err)
			for i := 0; i < len(raw); i += 4 {
				binary.LittleEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
			}
			number, err := hex.DecodeString(port)
			require.NoError(t, err)
			at := net.JoinHostPort(net.IP(raw).String(), fmt.Sprint(binary.BigEndian.Uint16(number)))
			if !seen[at] {
				seen[at] = true
				out = append(out, at)
			}
		}
	}
	return out
}

// asPage sends what a web page can send, and returns the answer's status: 0 if there is none.
func asPage(t *testing.T, at, method, path, host, origin string) (status int, text string) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", at, time.Second)
	if err != nil {
		return 0, err.Error()
	}
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	body := `{"workflowType": {"name": "TrainRun"}, "taskQueue": {"name": "cpu"}, "input": [{}]}`
	from := ""
	if origin != "" {
		from = "Origin: " + origin + "\r\n"
	}
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\n%sAuthorization: x\r\nContent-Type: text/plain\r\n"+
		"Content-Length: %d\r\nConnection: close\r\n\r\n%s", method, path, host, from, len(body), body)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	read, _ := io.ReadAll(io.LimitReader(answer.Body, 200))
	return answer.StatusCode, string(read)
}

// No port that the stack opens does what a web page asks, neither one that names it by its address nor one whose own
// name has been made to mean 127.0.0.1.
func TestNoPortAnswersWebPages(t *testing.T) {
	needServers(t)
	root := t.TempDir()
	lease, _ := join(t, root, func(o *Options) { o.Need = Need{Temporal: true, S3: true} })
	a := lease.Addresses()
	var ports []string
	for _, pid := range current(t, root).supervisors {
		ports = append(ports, openPorts(t, pid)...)
	}
	require.Contains(t, ports, a.Temporal)
	require.Contains(t, ports, strings.TrimPrefix(a.UI, "http://"))
	require.Contains(t, ports, strings.TrimPrefix(a.S3Endpoint, "http://"))
	require.Greater(t, len(ports), 6, "those between Temporal's services, and those that it does not need")
	start := "/api/v1/namespaces/" + a.Namespace + "/workflows/"
	for _, at := range ports {
		if conn, err := net.DialTimeout("tcp", at, time.Second); err != nil {
			continue // it answers no one
		} else {
			require.NoError(t, conn.Close())
		}
		for _, page := range []struct{ host, origin string }{
			{"evil.example", ""}, {"evil.example", "http://evil.example"}, {at, "http://evil.example"}, {at, "null"},
			{at, "http://127.0.0.1:1"},
		} {
			for _, ask := range []struct{ method, path string }{
				{"GET", "/"}, {"GET", "/metrics"}, {"GET", "/api/v1/namespaces"}, {"POST", start + "by-page"},
				{"POST", "/namespaces/" + a.Namespace + "/nexus/callback"}, {"PUT", "/" + a.S3Bucket + "/by-page"},
			} {
				status, text := asPage(t, at, ask.method, ask.path, page.host, page.origin)
				require.True(t, status == 0 || status >= 400, "%v at %s as %v: %d %s", ask, at, page, status, text)
			}
		}
	}
	require.Eventually(t, func() bool { // the UI's own connection to Temporal may not be up yet
		answer, err := http.Get(a.UI + "/api/v1/namespaces/" + a.Namespace)
		require.NoError(t, err)
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	}, time.Minute, 100*time.Millisecond, "who asks the UI himself is answered")
}

// The kernel lets a fenced port answer one address alone.
func TestFence(t *testing.T) {
	from := net.IPv4(127, 3, 4, 5)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, "greet")
	cmd.Env = append(os.Environ(), noMultipath)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	var at string
	_, err = fmt.Fscan(out, &at)
	require.NoError(t, err)
	ask := func(local net.IP, limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: local}}).DialContext(ctx, "tcp", at)
		if err != nil {
			return err
		}
		return conn.Close()
	}
	const unanswered = 500 * time.Millisecond // for as long a connection that the kernel drops stays unanswered
	require.NoError(t, ask(nil, time.Minute))
	port := portOf(at)
	// A socket's number may have passed to a socket that does not listen, or listens on another port.
	for number := range 20 {
		err := socket{cmd.Process.Pid, number}.filter(port+1, accepting(nil))
		require.Error(t, err)
	}
	require.NoError(t, ask(nil, time.Minute))
	if err := fence(cmd.Process.Pid, port, from); err != nil {
		t.Skipf("this machine does not permit fences: %v", err)
	}
	require.NoError(t, ask(from, time.Minute))
	require.Error(t, ask(nil, unanswered))
	require.Error(t, ask(net.IPv4(127, 0, 0, 1), unanswered))
	require.NoError(t, fence(cmd.Process.Pid, port, nil))
	require.Error(t, ask(from, unanswered))
	require.ErrorIs(t, fence(cmd.Process.Pid, 1, nil), errNotListening)
}
