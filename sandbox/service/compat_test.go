package service

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
)

// Requests from SandboxFusion's documentation, and the parts of the answers that its clients read.
func TestRunCode(t *testing.T) {
	f := &fake{}
	s := newService(t, Options{Executor: f})
	code, text := ask(t, s, "POST", "/run_code", `{"compile_timeout":10,"run_timeout":3,"memory_limit_MB":512,
		"code":"ok","stdin":"5\n","language":"python",
		"files":{"b.txt":"Yg==","a.txt":"YQ==","left_out":null},
		"fetch_files":["a.txt","none"],"a_field_of_tomorrow":1}`)
	require.Equal(t, 200, code, text)
	require.JSONEq(t, `{"status":"Success","message":"","compile_result":null,
		"executor_pod_name":null,"files":{"a.txt":"YQ=="},
		"run_result":{"status":"Finished","execution_time":2,"return_code":0,"stdout":"5\n","stderr":""}}`, text)
	require.Equal(t, sandbox.Call{Language: "python", Code: "ok", Stdin: "5\n", Collect: []string{"a.txt", "none"},
		Files:  []sandbox.File{{Name: "a.txt", Content: []byte("a")}, {Name: "b.txt", Content: []byte("b")}},
		Limits: sandbox.Limits{CPU: 3 * time.Second, Wall: 3 * time.Second, MemoryBytes: 512 << 20}}, f.last())

	for _, tt := range []struct{ code, status, run, returned string }{
		{"runtime_error", "Failed", "Finished", "1"},
		{"syntax_error", "Failed", "Finished", "1"},
		{"timeout_wall", "Failed", "TimeLimitExceeded", "null"},
		{"timeout_cpu", "Failed", "TimeLimitExceeded", "null"},
		{"out_of_memory", "Failed", "Finished", "1"},
		{"killed", "Failed", "Finished", "-9"},
	} {
		code, text := ask(t, s, "POST", "/run_code",
			`{"code":"`+tt.code+`","language":"bash","stdin":null,"memory_limit_MB":-1}`)
		require.Equal(t, 200, code)
		require.JSONEq(t, `{"status":"`+tt.status+`","message":"","compile_result":null,
			"executor_pod_name":null,"files":{},
			"run_result":{"status":"`+tt.run+`","execution_time":2,"return_code":`+tt.returned+`,
				"stdout":"","stderr":"it failed"}}`, text, tt.code)
	}
	require.Equal(t, 10*time.Second, f.last().Limits.CPU, "the default run_timeout")
	for _, body := range []string{`{"code":"break","language":"python"}`, `{"code":"int main(){}","language":"cpp"}`} {
		code, text := ask(t, s, "POST", "/run_code", body)
		require.Equal(t, 200, code)
		var got fusionResponse
		require.NoError(t, json.Unmarshal([]byte(text), &got))
		require.Equal(t, fusionError, got.Status)
		require.NotEmpty(t, got.Message)
		require.Nil(t, got.RunResult)
	}
	for body, field := range map[string]string{
		`{"language":"python"}`: "code", `{"code":"x"}`: "language", `{"code":7,"language":"python"}`: "code",
		`{"code":"x","language":"python","run_timeout":0}`:   "run_timeout",
		`{"code":"x","language":"python","files":{"a":"!"}}`: "files.a",
	} {
		code, text := ask(t, s, "POST", "/run_code", body)
		require.Equal(t, 422, code, text)
		var got validation
		require.NoError(t, json.Unmarshal([]byte(text), &got))
		require.Equal(t, []string{"body", field}, got.Detail[0].Loc)
	}
	_, text = ask(t, s, "GET", "/v1/ping", "")
	require.JSONEq(t, `"pong"`, text)
}
