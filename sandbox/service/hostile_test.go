package service

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

func TestLimitsOfCallsHaveCeilings(t *testing.T) {
	f := &fake{}
	s := newService(t, Options{Executor: f})
	names := strings.Repeat(`"`+strings.Repeat("n", 250)+`",`, 200)
	for _, c := range []struct{ body, field, message string }{
		{`{"code":"ok","limits":{"output_bytes":1125899906842624}}`, "limits.output", "at most 16777216 bytes"},
		{`{"code":"ok","limits":{"memory_bytes":9223372036854775807}}`, "limits.memory", "at most 1099511627776 bytes"},
		{`{"code":"ok","limits":{"file_bytes":9223372036854775807}}`, "limits.file", "at most 17179869184 bytes"},
		{`{"code":"ok","limits":{"cpu_seconds":86401}}`, "limits.cpu", "at most 24h0m0s"},
		{`{"code":"ok","limits":{"wall_seconds":864001}}`, "limits.wall", "at most 240h0m0s"},
		{`{"code":"ok","limits":{"processes":8193}}`, "limits.processes", "at most 8192"},
		{`{"code":"ok","collect":[` + strings.TrimSuffix(strings.Repeat(`"a",`, 257), ",") + `]}`, "collect",
			"at most 256"},
		{`{"code":"ok","collect":[` + strings.TrimSuffix(names, ",") + `]}`, "collect", "at most 32768"},
	} {
		code, text := ask(t, s, "POST", "/v1/run", c.body)
		requireError(t, code, text, http.StatusBadRequest, rpc.KindBadCall, c.field, c.message)
	}
	code, text := ask(t, s, "POST", "/run_code", `{"code":"ok","language":"python","memory_limit_MB":17592186044416}`)
	require.Equal(t, http.StatusUnprocessableEntity, code, "2^44 MiB are no bytes that an integer holds")
	require.Contains(t, text, "memory_limit_MB")
	require.Zero(t, f.runs())
	require.NoError(t, sandbox.Call{Limits: sandbox.MostLimits}.Validate())
}

// serving runs a service on loopback and returns its address.
func serving(t *testing.T, s *Service, wrap func(net.Listener) net.Listener) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, wrap(listener), nil, hangs) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	return listener.Addr().String()
}

func plainly(l net.Listener) net.Listener { return l }

// sent sends a raw request and returns the service's answer.
func sent(t *testing.T, address, request string) (int, string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, request)
	require.NoError(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(text)
}

func TestWebPagesAreRefusedOnLoopback(t *testing.T) {
	f := &fake{}
	address := serving(t, newService(t, Options{Executor: f}), plainly)
	post := func(path, host string, headers ...string) (int, string) {
		body := `{"code":"ok","language":"python"}`
		head := append([]string{"POST " + path + " HTTP/1.1", "Host: " + host,
			fmt.Sprintf("Content-Length: %d", len(body))}, headers...)
		return sent(t, address, strings.Join(head, "\r\n")+"\r\n\r\n"+body)
	}
	const asJSON = "Content-Type: application/json"
	for _, r := range routes() {
		if r.method != http.MethodPost {
			continue
		}
		for _, host := range []string{"evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80",
			"192.168.0.1", ""} {
			code, text := post(r.path, host, asJSON)
			requireError(t, code, text, http.StatusForbidden, kindForbidden, "", "Host is")
		}
		for _, origin := range []string{"http://evil.example", "null", "http://localhost:1", "file://"} {
			code, text := post(r.path, address, asJSON, "Origin: "+origin)
			requireError(t, code, text, http.StatusForbidden, kindForbidden, "", "Origin is")
		}
		code, text := post(r.path, address, asJSON, "Sec-Fetch-Site: cross-site")
		requireError(t, code, text, http.StatusForbidden, kindForbidden, "", "Sec-Fetch-Site")
		for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded",
			"multipart/form-data; boundary=x", "text/plain; application/json"} {
			code, text := post(r.path, address, "Content-Type: "+kind)
			requireError(t, code, text, http.StatusUnsupportedMediaType, kindWrongType, "", "must be application/json")
		}
		code, text = post(r.path, address)
		requireError(t, code, text, http.StatusUnsupportedMediaType, kindWrongType, "", "must be application/json")
	}
	require.Zero(t, f.runs())
	for _, host := range []string{address, "localhost", "LOCALHOST:8290", "[::1]:8290", "127.0.0.9"} {
		code, text := post("/v1/run", host, "Content-Type: application/json; charset=utf-8", "Origin: http://"+host)
		require.Equal(t, http.StatusOK, code, text)
	}
	require.Error(t, foreignStream(metadata.Pairs(":authority", "evil.example")))
	require.Error(t, foreignStream(metadata.Pairs(":authority", "localhost:1", "origin", "http://localhost:1")))
	require.NoError(t, foreignStream(metadata.Pairs(":authority", "localhost:1")))
}

// Clients that announce the largest body and send nothing hold no room, and are refused after a while.
func TestStalledBodiesBlockNoOthers(t *testing.T) {
	s := newService(t, Options{Executor: &fake{}, QueueBytes: rpc.MostMessage})
	s.bodyPause = 300 * time.Millisecond
	address := serving(t, s, plainly)
	var stalled []net.Conn
	for range 8 {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		defer conn.Close()
		_,
			err = fmt.Fprintf(conn,
			"POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{",
			rpc.MostMessage)
		require.NoError(t, err)
		stalled = append(stalled, conn)
	}
	body := `{"code":"ok"}`
	code,
		text := sent(t, address,
		fmt.Sprintf("POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
			"Content-Length: %d\r\n\r\n%s", len(body), body))
	require.Equal(t, http.StatusOK, code, text)
	for _, conn := range stalled {
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusRequestTimeout, answer.StatusCode)
		require.NoError(t, answer.Body.Close())
	}
	require.Eventually(t, func() bool { return s.bodies.TryAcquire(rpc.MostMessage) }, hangs, time.Millisecond,
		"all room is given back")
}

// lacking is a listener that has no descriptors for a while.
type lacking struct {
	net.Listener
	faults []error
}

func (l *lacking) Accept() (net.Conn, error) {
	if len(l.faults) > 0 {
		err := &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", l.faults[0])}
		l.faults = l.faults[1:]
		return nil, err
	}
	return l.Listener.Accept()
}

func TestAcceptIsTriedAgain(t *testing.T) {
	address := serving(t, newService(t, Options{Executor: &fake{}}), func(l net.Listener) net.Listener {
		return &lacking{l, []error{syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED, syscall.ENOBUFS,
			syscall.ENOMEM}}
	})
	code, _ := sent(t, address, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.Equal(t, http.StatusOK, code)
	require.False(t, passing(net.ErrClosed))
	require.False(t, passing(errors.New("else")))
}

// A request on a stream is decoded once there is room for it, and the room is released.
func TestStreamsReserveBeforeTheyDecode(t *testing.T) {
	life, end := context.WithCancel(t.Context())
	task := rpc.RunRequest{Tasks: []*rpc.Task{{Key: "k",
		Call: rpc.FromCall(sandbox.Call{Code: strings.Repeat("x", 900)})}}}
	data, err := encoding.GetCodecV2("proto").Marshal(&task)
	require.NoError(t, err)
	d := newDecoding(1000, life)
	var first, second rpc.RunRequest
	require.NoError(t, d.Unmarshal(data, &first))
	decoded := make(chan error, 1)
	go func() { decoded <- d.Unmarshal(data, &second) }()
	require.False(t, d.room.TryAcquire(200), "the first request holds its room")
	d.release(&first)
	d.release(&first)
	require.NoError(t, <-decoded)
	require.Equal(t, "k", second.GetTasks()[0].GetKey())
	var third rpc.RunRequest
	go func() { decoded <- d.Unmarshal(data, &third) }()
	end()
	require.ErrorIs(t, <-decoded, context.Canceled)
	d.release(&second)
	require.True(t, d.room.TryAcquire(1000))
}
