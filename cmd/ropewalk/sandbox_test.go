package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/transcript"
	"github.com/ropewalk/ropewalk/internal/testing/zygotetest"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/client"
	"github.com/ropewalk/ropewalk/sandbox/service"
)

func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program.py")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

func TestSandboxExecEndsAsTheProgram(t *testing.T) {
	zygotetest.Need(t)
	for _, tt := range []struct {
		name, program  string
		args           []string
		code           int
		out, complaint string
	}{
		{"it prints", "print(6 * 7)", nil, 0, "42\n", ""},
		{"it ends with a value", "6 * 7", nil, 0, "42\n", ""},
		{"it exits", "import sys; sys.exit(7)", nil, 7, "", ""},
		{"it raises", "print(1)\n1/0", nil, 1, "1\n", "ZeroDivisionError"},
		{"it is no program", "def", nil, 1, "", "SyntaxError"},
		{"it loops", "while True: pass", []string{"--cpu", "1s"}, 124, "", "ropewalk: timeout_cpu"},
		{"it prints too much", "print('x' * 5000)", []string{"--output-kb", "1"}, 137, "", "ropewalk: output_limit"},
		{"a negative limit", "1", []string{"--memory-mb", "-1"}, exitBadInput, "", "limits.memory is negative"},
		{"an unknown language", "1", []string{"--language", "cobol"}, exitBadInput, "", "cobol"},
		{"an unknown preset", "1", []string{"--preset", "rstar9"}, exitBadInput, "", `preset "rstar9" is not one of`},
		{"a file without a path", "1", []string{"--file", "x"}, exitBadInput, "", "want NAME=PATH"},
		{"files without a destination", "1", []string{"--collect", "x"}, exitBadInput, "", "--out"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, out, messages := command(t, append([]string{"sandbox", "exec", script(t, tt.program)}, tt.args...)...)
			require.Equal(t, tt.code, code, messages)
			require.Contains(t, messages, tt.complaint)
			if tt.out != "" {
				require.Equal(t, tt.out, out)
			}
		})
	}
}

func TestSandboxExecBringsFilesAndTellsJSON(t *testing.T) {
	zygotetest.Need(t)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "in"), []byte("5\n"), 0o644))
	code, out, messages := command(t, "sandbox", "exec",
		script(t, "n = int(input()) + len(open('data').read())\nopen('sum', 'w').write(str(n))\nprint(n)"),
		"--stdin", filepath.Join(folder, "in"), "--file", "data="+filepath.Join(folder, "in"), "--collect", "sum",
		"--out", filepath.Join(folder, "out"), "--json")
	require.Equal(t, exitDone, code, messages)
	var got service.ResultBody
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Equal(t, "ok", got.Status)
	require.Equal(t, "7\n", got.Stdout)
	sum, err := os.ReadFile(filepath.Join(folder, "out", "sum"))
	require.NoError(t, err)
	require.Equal(t, "7", string(sum))
}

func TestSandboxExecWithoutPython(t *testing.T) {
	code, _, messages := command(t, "sandbox", "exec", script(t, "1"), "--python", "/no/such/python")
	require.Equal(t, exitBroken, code)
	require.Contains(t, messages, "no usable python interpreter")
	require.Contains(t, messages, "apt-get install python3")
}

func TestSandboxServeRefuses(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(empty, []byte(" \n"), 0o600))
	clients := filepath.Join(t.TempDir(), "clients.yaml")
	require.NoError(t, os.WriteFile(clients, []byte("clients:\n- {name: rl, tokens: [token-of-the-test], calls: 0}\n"),
		0o600))
	for _, tt := range []struct {
		args      []string
		complaint string
	}{
		{[]string{"--listen", "0.0.0.0:0"}, "name a token with --token-file"},
		{[]string{"--listen", ":0"}, "name a token with --token-file"},
		{[]string{"--listen", "nowhere"}, "--listen"},
		{[]string{"--listen", "systemd"}, "systemd has passed no socket"},
		{[]string{"--listen", "0.0.0.0:0", "--token-file", empty}, "--tls-cert and --tls-key"},
		{[]string{"--token-file", empty}, "is empty"},
		{[]string{"--token-file", "/no/such/file"}, "--token-file"},
		{[]string{"--token-file", clients}, "clients.yaml:2: clients[0].calls: 0 is not between"},
		{[]string{"--tls-cert", "c.pem"}, "belong together"},
		{[]string{"--connections", "0"}, "--connections is 0"},
		{[]string{"--tls-cert", empty, "--tls-key", empty}, "--tls-cert, --tls-key"},
	} {
		code, _, messages := command(t, append([]string{"sandbox", "serve"}, tt.args...)...)
		require.Equal(t, exitBadInput, code, tt.args)
		require.Contains(t, messages, tt.complaint)
	}
}

func TestWorkersKeepAtLeastOneSession(t *testing.T) {
	code, _, messages := command(t, "worker", "--sandbox-sessions", "0")
	require.Equal(t, exitBadInput, code)
	require.Contains(t, messages, "--sandbox-sessions: must be ≥ 1, got 0")
}

func TestSandboxServe(t *testing.T) {
	zygotetest.Need(t)
	t.Setenv("ROPEWALK_HOME", t.TempDir())
	t.Setenv(tokenVariable, "secret")
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("secret\n"), 0o600))
	ctx, stop := context.WithCancel(t.Context())
	var out, messages transcript.Transcript
	done := make(chan int, 1)
	go func() {
		done <- Run(ctx, []string{"sandbox", "serve", "--listen", "127.0.0.1:0", "--token-file", token}, &out,
			&messages)
	}()
	address := ""
	require.Eventually(t, func() bool {
		if m := regexp.MustCompile(`listening on http://(\S+): tier `).FindStringSubmatch(out.String()); m != nil {
			address = m[1]
		}
		return address != ""
	}, 60*time.Second, 10*time.Millisecond, messages.String())
	post := func(path, body string) string {
		request, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+address+path, strings.NewReader(body))
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer secret")
		request.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return string(text)
	}
	require.Contains(t, post("/v1/run", `{"code":"print(6 * 7)"}`), `"stdout":"42\n"`)
	boxes, err := client.Open(client.Options{Addresses: []string{address}, Token: "secret"})
	require.NoError(t, err)
	defer boxes.Close()
	session, err := boxes.OpenSession(t.Context(), "", sandbox.Limits{})
	require.NoError(t, err, "sessions start when they are asked for")
	defer session.Close()
	for _, code := range []string{"x = 6", "x * 7"} {
		verdict, err := session.Run(t.Context(), sandbox.Call{Code: code})
		require.NoError(t, err)
		require.Equal(t, sandbox.StatusOK, verdict.Status)
	}
	var printed, complaints bytes.Buffer
	exec := []string{"sandbox", "exec", script(t, "print(1)"), "--address", address}
	require.Equal(t, 0, Run(t.Context(), exec, &printed, &complaints), complaints.String())
	require.Equal(t, "1\n", printed.String())
	stop()
	require.Equal(t, exitDone, <-done, messages.String())
}
