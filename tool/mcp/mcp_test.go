package mcp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/mcptest"
	"github.com/ropewalk/ropewalk/internal/testing/tooltest"
	"github.com/ropewalk/ropewalk/tool"
	"github.com/ropewalk/ropewalk/tool/mcp"
)

// server returns the settings of a server of mcptest.
func server(mode string, more ...string) mcp.Server {
	command, env := mcptest.Command(mode, more...)
	return mcp.Server{Name: "count", Command: command, Env: env, Repeat: "sandboxed", Session: mcp.PerEpisode,
		Sessions: 64, Seconds: 120, OutputKB: 4}
}

func newPool(t *testing.T) *mcp.Pool {
	p := mcp.NewPool()
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

func pinned(t *testing.T, p *mcp.Pool, s mcp.Server) mcp.Server {
	t.Helper()
	s, err := p.Discover(t.Context(), s)
	require.NoError(t, err)
	return s
}

func opened(t *testing.T, p *mcp.Pool, s mcp.Server, name string) tool.Tool {
	t.Helper()
	out, err := p.Tool(s, name)
	require.NoError(t, err)
	return out
}

// call is a call of an episode.
func call(episode, turn int, name, arguments string, past ...tool.Ran) tool.Call {
	return tool.Call{Key: tool.Key{Scope: tool.Scope{Run: "r"}, Label: "sample", Step: 1, Group: episode, Turn: turn},
		Tool: name, Name: name, Arguments: json.RawMessage(arguments), Past: past}
}

// one runs a single call.
func one(t *testing.T, of tool.Tool, c tool.Call) (tool.Result, error) {
	t.Helper()
	results, err := of.Run(t.Context(), []tool.Call{c})
	if err != nil {
		var each tool.CallErrors
		if errors.As(err, &each) {
			err = each[0]
		}
		return tool.Result{}, err
	}
	return results[0], nil
}

func TestToolsArePinned(t *testing.T) {
	s := server("honest")
	s.Repeat = mcp.ByAnnotations
	s = pinned(t, newPool(t), s)
	var lines []string
	for _, p := range s.Pinned {
		require.Len(t, p.Digest, 64)
		lines = append(lines, fmt.Sprintf("%s | %s | %s | %s", p.Tool, s.ToolName(p.Tool), p.Repeat, p.Description))
	}
	require.Equal(t, []string{
		"Say-It | count_say_it | pure | says a text",
		"add | count_add | at_most_once | Adds to the counter. Returns its value",
		"die | count_die | at_most_once | ends the program, once if a file is given",
		"fail | count_fail | sandboxed | tool count_fail",
		"show | count_show | at_most_once | shows one of each kind",
		"variables | count_variables | at_most_once | lists the program's variables",
	}, lines)
	for _, spec := range s.Specs() {
		require.True(t, spec.Stateful)
		require.Equal(t, tool.AtMostOnce, spec.Repeat, "the tool that can be repeated least decides")
	}
	s.Session = mcp.SharedSession
	require.Equal(t, tool.Pure, s.Specs()[0].Repeat)
	field, text := s.Fault()
	require.Empty(t, field+text)
	s.Pinned[0].Description = "says another text"
	_, text = s.Fault()
	require.Contains(t, text, "digest")
}

func TestAServersToolConforms(t *testing.T) {
	for _, session := range []string{mcp.PerEpisode, mcp.SharedSession} {
		t.Run(session, func(t *testing.T) {
			p := newPool(t)
			s := server("honest")
			s.Repeat, s.Session, s.Tools, s.Sessions = "pure", session, []string{"Say-It"}, 8
			s = pinned(t, p, s)
			gone := s
			gone.Command = []string{filepath.Join(t.TempDir(), "nothing")}
			tooltest.Run(t, tooltest.Subject{Tool: opened(t, p, s, "count_say_it"),
				Broken: opened(t, p, gone, "count_say_it"), Good: []string{`{"text": "a"}`, `{"text": "b"}`}})
		})
	}
}

// Calls of one episode share a session, those of another have their own, over both transports.
func TestSessionsOfEpisodes(t *testing.T) {
	web := httptest.NewServer(mcptest.Handler())
	t.Cleanup(web.Close)
	address := server("honest")
	address.Command, address.Env, address.URL = nil, nil, web.URL
	for name, s := range map[string]mcp.Server{"program": server("honest"), "address": address} {
		t.Run(name, func(t *testing.T) {
			p := newPool(t)
			s := pinned(t, p, s)
			add := opened(t, p, s, "count_add")
			first := call(0, 0, "count_add", `{"by": 2}`)
			r, err := one(t, add, first)
			require.NoError(t, err)
			require.Equal(t, tool.Result{Status: tool.OK, Stdout: "the counter is 2"}, r)
			past := tool.Ran{Call: first, Result: r}
			r, err = one(t, add, call(0, 1, "count_add", `{"by": 3}`, past))
			require.NoError(t, err)
			require.Equal(t, "the counter is 5", r.Stdout)
			r, err = one(t, add, call(1, 0, "count_add", `{"by": 7}`))
			require.NoError(t, err)
			require.Equal(t, "the counter is 7", r.Stdout)
			require.Equal(t, 2, p.Held())

			// Several calls of a turn, of two tools of the server, run in order in one session.
			box := tool.Toolbox{add, opened(t, p, s, "count_fail"), opened(t, p, s, "count_say_it")}
			out, err := box.RunEach(t.Context(), []tool.Call{call(2, 0, "count_add", `{"by": 1}`),
				call(2, 0, "count_fail", `{"text": "no"}`), call(2, 0, "count_add", `{"by": "x"}`),
				call(2, 0, "count_add", `{"by": 1}`)}, nil)
			require.NoError(t, err)
			require.Equal(t, []tool.Result{{Status: tool.OK, Stdout: "the counter is 1"},
				{Status: tool.Failed, Stderr: "no"},
				{Status: tool.BadArguments, Stderr: "by: got string, want integer"},
				{Status: tool.OK, Stdout: "the counter is 2"}},
				[]tool.Result{out[0].Result, out[1].Result, out[2].Result, out[3].Result})
			for episode := range 3 {
				require.NoError(t, box.End(t.Context(), call(episode, 0, "", "").Key.Episode()))
			}
			require.Eventually(t, func() bool { return p.Held() == 0 }, soon, tick)
		})
	}
}

// A worker that has no session of an episode repeats its calls, and another worker's results must come out.
func TestALostSessionIsMadeAgain(t *testing.T) {
	first := call(0, 0, "count_add", `{"by": 2}`)
	past := tool.Ran{Call: first, Result: tool.Result{Status: tool.OK, Stdout: "the counter is 2"}}
	bad := tool.Ran{Call: call(0, 0, "count_add", `{}`), Result: tool.Result{Status: tool.BadArguments}}
	p := newPool(t)
	s := pinned(t, p, server("honest"))
	r, err := one(t, opened(t, p, s, "count_add"), call(0, 1, "count_add", `{"by": 3}`, past, bad))
	require.NoError(t, err)
	require.Equal(t, "the counter is 5", r.Stdout)

	// An attempt whose result was not committed has called already: the session is made again without that call.
	r, err = one(t, opened(t, p, s, "count_add"), call(0, 1, "count_add", `{"by": 3}`, past))
	require.NoError(t, err)
	require.Equal(t, "the counter is 5", r.Stdout)

	past.Result.Stdout = "the counter is 9"
	_, err = one(t, opened(t, newPool(t), s, "count_add"), call(0, 1, "count_add", `{"by": 3}`, past))
	require.ErrorIs(t, err, mcp.ErrDiffers)

	s.Repeat = "at_most_once"
	s = pinned(t, p, s)
	past.Result.Stdout = "the counter is 2"
	_, err = one(t, opened(t, newPool(t), s, "count_add"), call(0, 1, "count_add", `{"by": 3}`, past))
	require.ErrorIs(t, err, mcp.ErrStateLost)
}

// The server dies within a call. A call that can be repeated is made in a new session after the episode's earlier
// calls.
func TestAServerThatDiesOnce(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "died")
	arguments := fmt.Sprintf(`{"text": %q}`, mark)
	p := newPool(t)
	s := pinned(t, p, server("honest"))
	first := call(0, 0, "count_add", `{"by": 2}`)
	r, err := one(t, opened(t, p, s, "count_add"), first)
	require.NoError(t, err)
	past := tool.Ran{Call: first, Result: r}
	r, err = one(t, opened(t, p, s, "count_die"), call(0, 1, "count_die", arguments, past))
	require.NoError(t, err)
	require.Equal(t, "still alive", r.Stdout)
	died := tool.Ran{Call: call(0, 1, "count_die", arguments), Result: r}
	r, err = one(t, opened(t, p, s, "count_add"), call(0, 2, "count_add", `{"by": 1}`, past, died))
	require.NoError(t, err)
	require.Equal(t, "the counter is 3", r.Stdout)

	require.NoError(t, os.Remove(mark))
	s.Repeat = "at_most_once"
	s = pinned(t, p, s)
	_, err = one(t, opened(t, p, s, "count_die"), call(1, 0, "count_die", arguments))
	require.ErrorIs(t, err, mcp.ErrLost)
	require.FileExists(t, mark)
}

func TestResultsOfEveryKind(t *testing.T) {
	p := newPool(t)
	s := pinned(t, p, server("honest"))
	r, err := one(t, opened(t, p, s, "count_show"), call(0, 0, "count_show", `{}`))
	require.NoError(t, err)
	require.Equal(t, "a text\n[image, image/png, 3 bytes]\n[audio, audio/wav, 4 bytes]\n"+
		"[link to resource file:///a.txt, text/plain]\n[resource file:///b.txt, text/plain]\ninside b\n"+
		`{"a":"<x>","b":2}`, r.Stdout)
}

// A worker's sessions are bounded. An episode that can be repeated makes room for another.
func TestNoMoreSessionsThanAllowed(t *testing.T) {
	p := newPool(t)
	s := server("honest")
	s.Sessions, s.Tools = 2, []string{"add"}
	s = pinned(t, p, s)
	add := opened(t, p, s, "count_add")
	var calls []tool.Call
	for episode := range 6 {
		calls = append(calls, call(episode, 0, "count_add", `{"by": 1}`))
	}
	for _, c := range calls {
		r, err := one(t, add, c)
		require.NoError(t, err)
		require.Equal(t, "the counter is 1", r.Stdout)
		require.LessOrEqual(t, p.Held(), 2)
	}
	s.Repeat = "at_most_once"
	s = pinned(t, p, s)
	_, err := opened(t, p, s, "count_add").Run(t.Context(), calls)
	var each tool.CallErrors
	require.ErrorAs(t, err, &each)
	require.ErrorIs(t, errors.Join(each...), mcp.ErrNoRoom)
	require.Len(t, each.Unwrap(), 4)
}

func TestSecretsStayOnTheWorker(t *testing.T) {
	t.Setenv("MCPTEST_TOKEN", "s3cret+value/1")
	t.Setenv("MCPTEST_OTHER", "not for the server")
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("from a file\n"), 0o600))
	p := newPool(t)
	s := pinned(t, p, server("honest", "PLAIN=yes", "TOKEN=Bearer ${env:MCPTEST_TOKEN}", "KEY=${file:"+file+"}"))
	text, err := json.Marshal(s)
	require.NoError(t, err)
	require.NotContains(t, string(text), "s3cret")
	r, err := one(t, opened(t, p, s, "count_variables"), call(0, 0, "count_variables", `{}`))
	require.NoError(t, err)
	require.Contains(t, r.Stdout, "PLAIN=yes\nTOKEN=Bearer [secret]\nKEY=[secret]")
	require.Len(t, strings.Split(r.Stdout, "\n"), 4, "no other variables: %s", r.Stdout)
	for said, want := range map[string]string{
		"s3cret+value/1": "[secret]", "s3cret%2Bvalue%2F1": "[secret]", "from a file": "[secret]", "s3cret": "s3cret",
	} {
		r, err := one(t, opened(t, p, s, "count_fail"), call(1, 0, "count_fail", fmt.Sprintf(`{"text": %q}`, said)))
		require.NoError(t, err)
		require.Equal(t, want, r.Stderr)
	}

	// Neither do errors hold it.
	away := s
	away.Command, away.Env, away.URL, away.Pinned = nil, nil, "http://127.0.0.1:1/?key=${env:MCPTEST_TOKEN}", nil
	_, err = p.Discover(t.Context(), away)
	require.ErrorIs(t, err, mcp.ErrLost)
	require.NotContains(t, fmt.Sprintf("%v %+v", err, err), "s3cret")
	for env, message := range map[string]string{
		"A=${env:MCPTEST_MISSING}": "resolve ${env:MCPTEST_MISSING}: the worker has no such variable",
		"A=${file:/nothing/here}":  "resolve ${file:/nothing/here}: the worker cannot open the file",
		"A=${env:MCPTEST_SHORT}":   "${env:MCPTEST_SHORT} must hold one line of 6 to 16384 bytes",
	} {
		t.Setenv("MCPTEST_SHORT", "abc")
		_, err := p.Discover(t.Context(), server("honest", env))
		require.ErrorContains(t, err, message)
		require.NotContains(t, err.Error(), "abc")
	}
}

func TestServersThatCannotBe(t *testing.T) {
	for want, change := range map[string]func(*mcp.Server){
		"either command or url":               func(s *mcp.Server) { s.URL = "http://a/mcp" },
		"must be an address":                  func(s *mcp.Server) { s.Command, s.Env, s.URL = nil, nil, "ftp://a" },
		"is for the program of command":       func(s *mcp.Server) { s.Command, s.URL = nil, "http://a/mcp" },
		"are sent to url":                     func(s *mcp.Server) { s.Headers = []string{"A=b"} },
		"must list NAME or NAME=TEXT":         func(s *mcp.Server) { s.Env = []string{"=x"} },
		"must list NAME=TEXT, got \"A: b\"":   func(s *mcp.Server) { web(s).Headers = []string{"A: b"} },
		"a reference to a secret is ${env:NA": func(s *mcp.Server) { s.Env = []string{"A=${vault:x}"} },
		"must begin with the name":            func(s *mcp.Server) { s.Command = []string{""} },
	} {
		s := server("honest")
		change(&s)
		_, text := s.Fault()
		require.Contains(t, text, want)
	}
}

func web(s *mcp.Server) *mcp.Server {
	s.Command, s.Env, s.URL = nil, nil, "http://a/mcp"
	return s
}
