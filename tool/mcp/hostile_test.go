package mcp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/tool"
	"github.com/ropewalk/ropewalk/tool/mcp"
)

// soon is how long a test waits for what must happen, and tick how often it looks.
const (
	soon = 5 * time.Minute
	tick = 10 * time.Millisecond
)

// hasty is a hostile server with little time for its answers.
func hasty(mode string, more ...string) mcp.Server {
	s := server(mode, more...)
	if strings.HasPrefix(mode, "hang") || mode == "deaf" || mode == "late" {
		s.Seconds = 3
	}
	return s
}

// bounded runs f and requires that it needs little memory at any time. The collector works harder near the limit, so
// what exceeds the bound is memory in use. The SDK allocates 32 KiB for each tool, and a busy machine collects it late.
func bounded(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	peak := make(chan uint64, 1)
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	limit := debug.SetMemoryLimit(int64(before.Sys-before.HeapReleased) + 48<<20)
	defer debug.SetMemoryLimit(limit)
	go func() {
		var most uint64
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse)
			select {
			case <-done:
				peak <- most
				return
			case <-time.After(tick):
			}
		}
	}()
	f()
	close(done)
	require.Less(t, <-peak, before.HeapInuse+96<<20, "bytes of the heap")
}

func TestListsThatCannotBeUsed(t *testing.T) {
	for mode, want := range map[string]struct {
		kind error
		text string
	}{
		"hang at the start":   {mcp.ErrHung, "did not answer in time"},
		"10000 tools":         {mcp.ErrListing, "more than 1000 tools"},
		"endless pages":       {mcp.ErrListing, "more than 100 pages"},
		"100 MB description":  {mcp.ErrFlood, "sent too much"},
		"long description":    {mcp.ErrListing, `tool "poke": its description has 1048576 bytes`},
		"no schema":           {mcp.ErrListing, `tool "poke": the schema is no JSON schema`},
		"schema of a file":    {mcp.ErrListing, `tool "poke": the schema is no JSON schema`},
		"costly schema":       {mcp.ErrListing, "refers to itself too often"},
		"names that collide":  {mcp.ErrListing, "two tools have the name count_a_b"},
		"the same name twice": {mcp.ErrListing, "names a tool twice"},
		"no tools":            {mcp.ErrListing, "it has none"},
	} {
		t.Run(mode, func(t *testing.T) {
			bounded(t, func() {
				_, err := newPool(t).Discover(t.Context(), hasty(mode))
				require.ErrorIs(t, err, want.kind)
				require.ErrorContains(t, err, want.text)
				require.Less(t, len(err.Error()), 4000)
			})
		})
	}
	s := hasty("well")
	s.Tools = []string{"poke", "prod"}
	_, err := newPool(t).Discover(t.Context(), s)
	require.ErrorContains(t, err, `it has no tool "prod"`)
}

// A server that breaks a call breaks nothing else, and gives no verdict.
func TestCallsThatBreak(t *testing.T) {
	for mode, want := range map[string]error{
		"hang":                   mcp.ErrHung,
		"deaf":                   mcp.ErrHung,
		"die":                    mcp.ErrLost,
		"die within the answer":  mcp.ErrLost,
		"100 MB":                 mcp.ErrFlood,
		"flood of notifications": mcp.ErrFlood,
		"no JSON":                mcp.ErrLost,
		"no result":              mcp.ErrLost,
		"an error":               mcp.ErrAnswer,
	} {
		t.Run(mode, func(t *testing.T) {
			bounded(t, func() {
				p := newPool(t)
				poke := opened(t, p, pinned(t, p, hasty(mode)), "count_poke")
				_, err := one(t, poke, call(0, 0, "count_poke", `{}`))
				require.ErrorIs(t, err, want)
				require.NotErrorIs(t, err, tool.ErrNotRun, "it may have run")
			})
		})
	}
}

// An answer that comes after the deadline of its call, just before the next call's answer, is no one's answer: the next
// attempt gets its own.
func TestALateAnswerIsNotTaken(t *testing.T) {
	p := newPool(t)
	s := pinned(t, p, hasty("late", "CHANGED="+filepath.Join(t.TempDir(), "asked")))
	poke := opened(t, p, s, "count_poke")
	_, err := one(t, poke, call(0, 0, "count_poke", `{}`))
	require.ErrorIs(t, err, mcp.ErrHung)
	for range 2 {
		got, err := one(t, poke, call(0, 0, "count_poke", `{}`))
		require.NoError(t, err)
		require.Equal(t, "poked 1 times", got.Stdout)
	}
}

func TestOddAnswersAreVerdicts(t *testing.T) {
	for mode, want := range map[string]tool.Result{
		"flood of errors": {Status: tool.OK, Stdout: "poked 1 times"},
		"bad arguments":   {Status: tool.Failed, Stderr: "text is rude"},
		"invalid UTF-8":   {Status: tool.OK, Stdout: "a\uFFFD\uFFFDb\uFFFDc"},
		"over the limit": {Status: tool.OutputLimit, Stdout: strings.Repeat("ä", 2048),
			Stderr: "the answer has more than 4 KiB"},
	} {
		t.Run(mode, func(t *testing.T) {
			p := newPool(t)
			poke := opened(t, p, pinned(t, p, server(mode)), "count_poke")
			got, err := one(t, poke, call(0, 0, "count_poke", `{}`))
			require.NoError(t, err)
			if mode == "invalid UTF-8" {
				require.True(t, utf8.ValidString(got.Stdout))
				require.NotContains(t, got.Stdout, "\x00")
				got.Stdout = strings.ReplaceAll(got.Stdout, "a\uFFFDb", "a\uFFFD\uFFFDb")
			}
			require.Equal(t, want, got)
		})
	}
}

// A server that states another schema later is refused for good, with both digests.
func TestAServerThatChangesItsMind(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "changed")
	p := newPool(t)
	s := pinned(t, p, server("schema that changes", "CHANGED="+mark))
	poke := opened(t, p, s, "count_poke")
	_, err := one(t, poke, call(0, 0, "count_poke", `{}`))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(mark, nil, 0o600))
	_, err = one(t, poke, call(1, 0, "count_poke", `{}`))
	require.ErrorIs(t, err, mcp.ErrChanged)
	require.ErrorIs(t, err, tool.ErrNotRun)
	var refused *refusal.Error
	require.ErrorAs(t, err, &refused)
	require.Regexp(t, `MCP server count: tool poke: its description and schema have the digest [0-9a-f]{64} now, and `+
		`[0-9a-f]{64} when the run was prepared`, refused.Error())
}

// A server whose results cannot be repeated excludes an episode that loses its session; it is never scored on others.
func TestResultsThatDifferOnRepetition(t *testing.T) {
	p := newPool(t)
	s := pinned(t, p, server("random"))
	first := call(0, 0, "count_poke", `{}`)
	r, err := one(t, opened(t, p, s, "count_poke"), first)
	require.NoError(t, err)
	_, err = one(t, opened(t, newPool(t), s, "count_poke"),
		call(0, 1, "count_poke", `{}`, tool.Ran{Call: first, Result: r}))
	require.ErrorIs(t, err, mcp.ErrDiffers)
}

// The programs that a server has started end with it.
func TestAServersChildrenEndWithIt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "child")
	p := newPool(t)
	poke := opened(t, p, pinned(t, p, hasty("hang with a child", "CHILD="+file, "PATH")), "count_poke")
	_, err := one(t, poke, call(0, 0, "count_poke", `{}`))
	require.ErrorIs(t, err, mcp.ErrHung)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	pid, err := strconv.Atoi(string(text))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return syscall.Kill(pid, 0) != nil || err == nil && strings.Contains(string(state), ") Z ")
	}, soon, tick)
}
