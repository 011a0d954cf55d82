package service

import (
	"bytes"
	"net/http/httptest"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

// FuzzRequest checks that every message of a stream is refused or is a well-formed call, and that a decoded message is
// the same after it is encoded again.
func FuzzRequest(f *testing.F) {
	for _, c := range []sandbox.Call{{},
		{Code: "print(1)", Stdin: "\xff", Files: []sandbox.File{{Name: "a", Content: []byte{0}}},
			Collect: []string{"b"}, Limits: sandbox.DefaultLimits, Trace: "t"}} {
		data, err := proto.Marshal(&rpc.RunRequest{Tasks: []*rpc.Task{{Key: "k", Call: rpc.FromCall(c),
			QueueLifeNs: -1}}, Cancel: []string{"l"}})
		require.NoError(f, err)
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	s := New(Options{Executor: &fake{}})
	f.Cleanup(func() { s.Close() })
	f.Fuzz(func(t *testing.T, data []byte) {
		var in rpc.RunRequest
		if proto.Unmarshal(data, &in) != nil {
			return
		}
		for _, task := range in.GetTasks() {
			call := task.GetCall().Sandbox()
			require.Equal(t, call.Key(), rpc.FromCall(call).Sandbox().Key())
			if s.check(request{key: task.GetKey(), call: call}) == nil {
				require.NoError(t, call.Validate())
			}
		}
	})
}

// FuzzBody checks that no body of any request makes the service fail.
func FuzzBody(f *testing.F) {
	paths := []string{"/v1/run", "/run_code"}
	for i, body := range []string{
		`{"code":"ok","files":[{"name":"a","content":"AA=="}],"limits":{"cpu_seconds":1e308}}`,
		`{"code":"ok","language":"python","files":{"a":null},"run_timeout":-1e9}`,
	} {
		f.Add(i, []byte(body))
	}
	open := make(chan struct{})
	close(open)
	s := New(Options{Executor: &fake{hold: open}})
	f.Cleanup(func() { s.Close() })
	handler := s.Handler()
	f.Fuzz(func(t *testing.T, path int, body []byte) {
		r := httptest.NewRequestWithContext(t.Context(), "POST", paths[uint(path)%uint(len(paths))],
			bytes.NewReader(body))
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		require.Contains(t, []int{200, 400, 409, 413, 422, 500, 503}, w.Code)
		if w.Code == 500 {
			require.Regexp(t, "break|panic|\\\\u", string(body), "only if a call broke")
		}
	})
}
