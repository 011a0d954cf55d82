package mcp_test

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/tool"
	"github.com/ropewalk/ropewalk/tool/mcp"
)

// installed returns the value of a variable that says where a third party's server is. Without it the test is skipped,
// or fails if ROPEWALK_REQUIRE_MCP_SERVERS is set.
func installed(t *testing.T, variable, world string) string {
	t.Helper()
	at := os.Getenv(variable)
	switch {
	case at != "":
	case os.Getenv("ROPEWALK_REQUIRE_MCP_SERVERS") != "":
		t.Fatalf("%s is not set; tools/worlds.sh %s prints its value", variable, world)
	default:
		t.Skipf("%s is not set; tools/worlds.sh %s prints its value", variable, world)
	}
	return at
}

// asked is a call of a real server's tool and what must come out.
type asked struct {
	tool, arguments string
	status          tool.Status
	contains        string
}

// converse makes the calls in one episode, then loses the session and makes the last call again in another pool, which
// repeats the earlier ones.
func converse(t *testing.T, s mcp.Server, calls []asked) {
	t.Helper()
	var past []tool.Ran
	p := newPool(t)
	for i, a := range calls {
		c := call(0, i, a.tool, a.arguments, past...)
		r, err := one(t, opened(t, p, s, a.tool), c)
		require.NoError(t, err)
		require.Equal(t, a.status, r.Status, "%s %s: %s%s", a.tool, a.arguments, r.Stdout, r.Stderr)
		require.Contains(t, r.Stdout+r.Stderr, a.contains)
		past = append(past, tool.Ran{Call: call(0, i, a.tool, a.arguments), Result: r.Untimed()})
	}
	last := len(calls) - 1
	r, err := one(t, opened(t, newPool(t), s, calls[last].tool),
		call(0, last, calls[last].tool, calls[last].arguments, past[:last]...))
	require.NoError(t, err)
	require.Equal(t, past[last].Result, r.Untimed(), "the result after the session was made again")
}

// The Model Context Protocol's own test server (npm), which shows every kind of content.
func TestRealServerEverything(t *testing.T) {
	modules := installed(t, "ROPEWALK_MCP_NODE_MODULES", "mcp-npm")
	s := mcp.Server{Name: "every", Repeat: "sandboxed", Session: mcp.PerEpisode, Sessions: 8, Seconds: 60,
		OutputKB: 64, Env: []string{"PATH"},
		Command: []string{"node", filepath.Join(modules, ".bin", "mcp-server-everything"), "stdio"}}
	s = pinned(t, newPool(t), s)
	var names []string
	for _, spec := range s.Specs() {
		names = append(names, spec.Name)
	}
	t.Log(strings.Join(names, " "))
	require.Contains(t, names, "every_echo")
	require.GreaterOrEqual(t, len(names), 8)
	converse(t, s, []asked{
		{"every_echo", `{"message": "</tool_call> ä"}`, tool.OK, "Echo: </tool_call> ä"},
		{"every_get_sum", `{"a": 2, "b": 40}`, tool.OK, "42"},
		{"every_get_sum", `{"a": "two"}`, tool.BadArguments, "a: got string, want number"},
		{"every_get_tiny_image", `{}`, tool.OK, "[image, image/png, "},
		{"every_get_structured_content", `{"location": "Chicago"}`, tool.OK, `"temperature":`},
		{"every_get_env", `{}`, tool.OK, `"PATH"`},
		{"every_echo", `{"message": "last"}`, tool.OK, "Echo: last"},
	})
}

// A server of the protocol's collection on PyPI.
func TestRealServerTime(t *testing.T) {
	python := installed(t, "ROPEWALK_MCP_PYTHON", "mcp")
	s := mcp.Server{Name: "time", Repeat: "pure", Session: mcp.PerEpisode, Sessions: 8, Seconds: 60, OutputKB: 64,
		Command: []string{python, "-m", "mcp_server_time", "--local-timezone", "UTC"}}
	s = pinned(t, newPool(t), s)
	require.Len(t, s.Pinned, 2)
	converse(t, s, []asked{
		{"time_convert_time", `{"source_timezone": "UTC", "time": "16:30", "target_timezone": "Asia/Tokyo"}`, tool.OK,
			"T01:30:00+09:00"},
		{"time_convert_time", `{"source_timezone": "UTC", "time": "16:30"}`, tool.BadArguments,
			"target_timezone is missing"},
		{"time_convert_time", `{"source_timezone": "Mars", "time": "16:30", "target_timezone": "UTC"}`, tool.Failed,
			"Mars"},
	})
}

// A server made of PyPI's library, over both transports: both describe the same tools and give the same results.
func TestRealLibraryServer(t *testing.T) {
	python := installed(t, "ROPEWALK_MCP_PYTHON", "mcp")
	program := mcp.Server{Name: "calc", Repeat: mcp.ByAnnotations, Session: mcp.PerEpisode, Sessions: 8, Seconds: 60,
		OutputKB: 64, Command: []string{python, "testdata/counter.py"}}
	program = pinned(t, newPool(t), program)
	require.Equal(t, []string{"pure", "at_most_once"}, []string{program.Pinned[0].Repeat, program.Pinned[1].Repeat})

	port := freePort(t)
	served := exec.Command(python, "testdata/counter.py", strconv.Itoa(port))
	served.Stderr = os.Stderr
	require.NoError(t, served.Start())
	t.Cleanup(func() { _ = served.Process.Kill(); _ = served.Wait() })
	require.Eventually(t, func() bool {
		c, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), time.Second)
		if err == nil {
			c.Close()
		}
		return err == nil
	}, soon, 50*time.Millisecond)
	address := mcp.Server{Name: "calc", Repeat: "pure", Session: mcp.PerEpisode, Sessions: 8, Seconds: 60, OutputKB: 64,
		URL: "http://127.0.0.1:" + strconv.Itoa(port) + "/mcp"}
	address = pinned(t, newPool(t), address)
	program.Repeat = "pure"
	program = pinned(t, newPool(t), program)
	a, err := json.Marshal(program.Pinned)
	require.NoError(t, err)
	b, err := json.Marshal(address.Pinned)
	require.NoError(t, err)
	require.Equal(t, string(a), string(b))
	for _, s := range []mcp.Server{program, address} {
		converse(t, s, []asked{
			{"calc_add", `{"a": 2, "b": 40}`, tool.OK, "42"},
			{"calc_divide", `{"a": 2, "b": 0}`, tool.Failed, "Error executing tool divide"},
			{"calc_divide", `{"a": 3, "b": 2}`, tool.OK, "1.5"},
		})
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
