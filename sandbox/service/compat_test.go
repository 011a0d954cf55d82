package service

import (
	"encoding/json"
	"strings"
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

// Requests from code-judge's documentation.
func TestJudge(t *testing.T) {
	f := &fake{}
	s := newService(t, Options{Executor: f})
	code, text := ask(t, s, "POST", "/judge",
		`{"sub_id":"s","type":"python","solution":"ok","input":"9\n","expected_output":"9"}`)
	require.Equal(t, 200, code)
	require.JSONEq(t, `{"sub_id":"s","success":true,"run_success":true,"cost":2,"reason":""}`, text)
	require.Equal(t, sandbox.Call{Language: "python", Code: "ok", Stdin: "9\n", Limits: judgeLimits}, f.last())

	for _, tt := range []struct {
		name, body, want string
	}{
		{"another output", `{"sub_id":"s","type":"python","solution":"ok","input":"8","expected_output":"9"}`,
			`"success":false,"run_success":true,"cost":2,"reason":""`},
		{"nothing is expected", `{"sub_id":"s","type":"python","solution":"ok"}`,
			`"success":true,"run_success":true,"cost":2,"reason":""`},
		{"it fails", `{"sub_id":"s","type":"python","solution":"runtime_error"}`,
			`"success":false,"run_success":false,"cost":2,"reason":""`},
		{"it takes too long", `{"sub_id":"s","type":"python","solution":"timeout_cpu"}`,
			`"success":false,"run_success":false,"cost":2,"reason":"worker_timeout"`},
		{"the sandbox breaks", `{"sub_id":"s","type":"python","solution":"break"}`,
			`"success":false,"run_success":false,"cost":0,"reason":"internal_error"`},
		{"a language that is not offered", `{"sub_id":"s","type":"cpp","solution":"x"}`,
			`"success":false,"run_success":false,"cost":0,"reason":"invalid_input"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, text := ask(t, s, "POST", "/judge", tt.body)
			require.Equal(t, 200, code)
			require.JSONEq(t, `{"sub_id":"s",`+tt.want+`}`, text)
		})
	}
	code, text = ask(t, s, "POST", "/run",
		`{"sub_id":"s","type":"python","solution":"ok","input":"`+strings.Repeat("é", 1500)+`"}`)
	require.Equal(t, 200, code)
	require.JSONEq(t,
		`{"sub_id":"s","success":true,"run_success":true,"cost":2,"reason":"","stdout":"`+strings.Repeat("é",
			1000)+`","stderr":""}`, text)
	code, text = ask(t, s, "POST", "/run", `{"sub_id":"s","type":"python","solution":"break"}`)
	require.Equal(t, 200, code)
	require.JSONEq(t,
		`{"sub_id":"s","success":false,"run_success":false,"cost":0,"reason":"internal_error",
			"stdout":null,"stderr":null}`, text)
}

func TestJudgeBatches(t *testing.T) {
	s := newService(t, Options{Executor: &fake{}})
	body := `{"sub_id":"b","type":"batch","submissions":[
		{"type":"python","sub_id":"1","solution":"ok","input":"a"},{"type":"python","solution":"killed"}]}`
	for _, path := range []string{"/run/batch", "/run/long-batch", "/judge/batch", "/judge/long-batch"} {
		code, text := ask(t, s, "POST", path, body)
		require.Equal(t, 200, code)
		var got batchResult[runResult]
		require.NoError(t, json.Unmarshal([]byte(text), &got))
		require.Equal(t, "b", got.SubID)
		require.Len(t, got.Results, 2)
		require.Equal(t, "1", got.Results[0].SubID)
		require.True(t, got.Results[0].Success)
		require.False(t, got.Results[1].RunSuccess)
		require.NotEmpty(t, got.Results[1].SubID)
		if strings.HasPrefix(path, "/run") {
			require.Equal(t, "a", *got.Results[0].Stdout)
		} else {
			require.NotContains(t, text, "stdout")
		}
	}
	for body, field := range map[string]string{
		`{"submissions":[]}`: "submissions", `{"type":"one","submissions":[{"type":"python","solution":""}]}`: "type",
		`{"submissions":[{"solution":""}]}`: "type", `{"submissions":[{"type":"python"}]}`: "solution",
		`{"submissions":[{"type":"cobol","solution":""}]}`: "type",
	} {
		code, text := ask(t, s, "POST", "/run/batch", body)
		require.Equal(t, 422, code, text)
		require.Contains(t, text, `"`+field+`"`)
	}
	_, text := ask(t, s, "GET", "/status", "")
	require.JSONEq(t, `{"queue":0,"num_workers":2}`, text)
}

func TestJudgeQueueTimeout(t *testing.T) {
	text := "x"
	got := ran(submission{SubID: &text}, answer{err: tooLong(&job{})})
	require.Equal(t, "queue_timeout", got.Reason)
	require.False(t, got.RunSuccess)
}
