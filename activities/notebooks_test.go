package activities

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/episodes"
	"github.com/ropewalk/ropewalk/activities/prepare"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/zygotetest"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
)

// steadyScript keeps state over several turns, with an error and a block that cannot be read.
var steadyScript = [][]string{
	{"import random\nx = [ROW]\nx"},
	{"x.append(random.random())\nprint(len(x))", "{not a call", "y = 1 // 0"},
	{"def f(n): return [*x, n]\nf(3)[1:]", "print(sorted(k for k in globals() if len(k) == 1), id(f) > 0)"},
	{"x is f.__globals__['x'], len(f(1)), str(object())"},
}

func steadyRun(t *testing.T, sessions sandbox.Sessions) *notebookBench {
	b := notebooksOf(t, sessions, steadyScript...)
	for range steadyScript {
		b.turn()
	}
	return b
}

func TestVariablesLiveOnFromTurnToTurn(t *testing.T) {
	b := steadyRun(t, zygotetest.Sessions(t))
	require.Zero(t, b.deps.Execution.Notebooks.Live(), "no cell can follow on the last turn but one")
	rows := rowsAt[schema.ToolCallRow](b.stepBench, b.tools...)
	require.Len(t, rows, 2*benchSamples*7)
	seen := map[string]bool{}
	for _, r := range rows {
		require.Nil(t, r.Excluded)
		switch [2]int32{r.Turn, r.Call} {
		case [2]int32{0, 0}:
			seen[r.Value] = true
		case [2]int32{1, 0}:
			require.Equal(t, "2\n", r.Stdout)
		case [2]int32{1, 1}:
			require.Equal(t, "decode_error", r.Status)
		case [2]int32{1, 2}:
			require.Contains(t, r.Stderr, `File "<cell 3>", line 1`, "a block that cannot be read is no cell")
		case [2]int32{2, 0}:
			require.Equal(t, "[0.8444218515250481, 3]", r.Value)
		case [2]int32{2, 1}:
			require.Equal(t, "['f', 'x'] True\n", r.Stdout)
		case [2]int32{3, 0}:
			require.Equal(t, "(True, 3, '<object object at 0x000000000000>')", r.Value)
		}
	}
	require.Greater(t, len(seen), 1, "trajectories have variables of their own")
}

// A retried activity, other workers and removed interpreters produce the same manifests, byte for byte, as an
// undisturbed step.
func TestSameBytesWhateverBefellTheInterpreters(t *testing.T) {
	sessions := zygotetest.Sessions(t)
	few := func(t *testing.T, sessions sandbox.Sessions) *notebookBench {
		b := notebooksOf(t, sessions, steadyScript...)
		b.engine.rows = 3
		return b
	}
	plain := few(t, sessions)
	for range steadyScript {
		plain.turn()
	}
	want := plain.tools

	t.Run("half a turn was done", func(t *testing.T) {
		u := &unsteady{Sessions: sessions}
		u.left.Store(1 << 30)
		b := few(t, u)
		for turn := range steadyScript {
			b.generate()
			for _, cells := range []int64{0, 1, 2} {
				u.left.Store(cells)
				_, err := b.execute()
				require.ErrorContains(t, err, errWorkerDied.Error(), "turn %d", turn)
			}
			u.left.Store(1 << 30)
			_, err := b.execute()
			require.NoError(t, err)
		}
		require.Equal(t, want, b.tools)
	})
	t.Run("another worker for each turn", func(t *testing.T) {
		b := few(t, sessions)
		for range steadyScript {
			b.on(sessions, 0)
			b.turn()
		}
		require.Equal(t, want, b.tools)
	})
	t.Run("two workers by turns", func(t *testing.T) {
		b := few(t, sessions)
		first := b.deps
		b.on(sessions, 0)
		for turn := range steadyScript {
			if turn%2 == 1 {
				first, b.deps = b.deps, first
			}
			b.turn()
		}
		require.Equal(t, want, b.tools)
	})
	t.Run("fewer places than trajectories", func(t *testing.T) {
		b := few(t, sessions)
		b.on(sessions, 2)
		for range steadyScript {
			b.turn()
		}
		require.Equal(t, want, b.tools)
	})
	t.Run("behind a service", func(t *testing.T) {
		remote := behindService(t, &printer{nth: -1}, sandbox.DefaultPreset, sessions)
		b := few(t, remote)
		for range steadyScript {
			b.turn()
		}
		require.Equal(t, want, b.tools)
	})
}

// If a cell would print something else when it runs again, the trajectory is excluded once its interpreter is lost.
func TestATrajectoryThatCannotBeMadeAnewIsExcluded(t *testing.T) {
	sessions := zygotetest.Sessions(t)
	script := [][]string{{"import os\nx = os.urandom(8)\nx"}, {"x"}, {"x"}}
	kept := notebooksOf(t, sessions, script...)
	first := kept.turn()
	second := kept.turn()
	for i := range first {
		require.Equal(t, first[i].Value, second[i].Value, "it lives on where it is")
	}

	b := notebooksOf(t, sessions, script...)
	b.turn()
	b.on(sessions, 0)
	b.generate()
	out, err := b.execute()
	require.NoError(t, err)
	require.Equal(t, 2*benchSamples, out.Excluded)
	for _, r := range rowsAt[schema.ToolCallRow](b.stepBench, out.Manifest) {
		require.Equal(t, "sandbox: session lost: cell 1 had another value when run again", *r.Excluded)
		require.Empty(t, r.Value)
	}

	// An interpreter whose cells ended differently from the committed ones is not used, even if it has run the same
	// number of cells.
	b = notebooksOf(t, sessions, script...)
	b.generate()
	loser := b.deps
	_, err = b.execute()
	require.NoError(t, err)
	b.on(sessions, 0)
	other := notebooksOf(t, sessions, script...)
	other.turn()
	b.deps = loser
	b.tools = other.tools // another worker's attempt was committed
	b.deps.Store = other.deps.Store
	UseRecord(b.deps, other.deps.Record)
	b.turns = other.turns
	b.generate()
	out, err = b.execute()
	require.NoError(t, err)
	require.Equal(t, 2*benchSamples, out.Excluded)
}

// If a cell ends its interpreter, the next cell gets a fresh interpreter and a message about it, on any worker.
func TestACellThatEndsItsInterpreter(t *testing.T) {
	sessions := zygotetest.Sessions(t)
	for _, tt := range []struct{ name, cell, status string }{
		{"exit", "print('bye')\nraise SystemExit", "ok"},
		{"exit with a code", "import sys\nsys.exit(3)", "runtime_error"},
		{"endless loop", "while True: pass", "timeout_cpu"},
		{"memory", "y = bytearray(10**10)", "out_of_memory"},
		{"killed by itself", "import os\nos.kill(os.getpid(), 9)", "killed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			script := [][]string{{"x = 1", "x += 1\n" + tt.cell}, {"'x' in globals()", "z = 5\nz"}, {"z + 1"}}
			run := func(each func(*notebookBench)) *notebookBench {
				b := notebooksOf(t, sessions, script...)
				b.engine.rows = 1
				for range script {
					each(b)
					b.turn()
				}
				return b
			}
			b := run(func(*notebookBench) {})
			for _, r := range rowsAt[schema.ToolCallRow](b.stepBench, b.tools...) {
				require.Nil(t, r.Excluded)
				switch [2]int32{r.Turn, r.Call} {
				case [2]int32{0, 1}:
					require.Equal(t, tt.status, r.Status)
					require.NotContains(t, r.Stderr, "restarted")
				case [2]int32{1, 0}:
					require.Equal(t, "False", r.Value)
					require.Equal(t, "(the interpreter was restarted: variables are gone)\n", r.Stderr)
					require.Equal(t,
						"Tool call success\nstdout: False\nstderr: (the interpreter was restarted: variables are gone)",
						r.Response)
				case [2]int32{1, 1}:
					require.Equal(t, "5", r.Value)
					require.Empty(t, r.Stderr)
				case [2]int32{2, 0}:
					require.Equal(t, "6", r.Value)
					require.Empty(t, r.Stderr)
				}
			}
			if tt.name != "killed by itself" { // one end stands for all
				return
			}
			again := run(func(b *notebookBench) { b.on(sessions, 0) })
			require.Equal(t, b.tools, again.tools)
		})
	}
}

func TestAWorkerWithoutSessionsRefusesTheRecipe(t *testing.T) {
	prepare := func(sessions sandbox.Sessions) (*stage.Worker, error) {
		b := stepOf(t, nil, nil)
		deps, err := New(stage.Options{Store: b.deps.Store, Tier: sandbox.TierFull, Code: b.deps.Code,
			Scratch: t.TempDir(), Sessions: sessions})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, deps.Close()) })
		before, err := deps.Store.List(t.Context(), "")
		require.NoError(t, err)
		b.deps = deps
		_, err = do(b, prepare.PrepareRun{Worker: deps}.Execute, api.PrepareInput{Run: "new", Kind: "train",
			Recipe: "quickstart", Overrides: []string{"sandbox.session=true"}})
		require.Error(t, err)
		after, listing := deps.Store.List(t.Context(), "")
		require.NoError(t, listing)
		require.Equal(t, before, after, "nothing is written")
		return deps, err
	}
	_, err := prepare(nil)
	require.ErrorContains(t, err,
		"sandbox.session: the recipe wants an interpreter for each trajectory, and this worker's sandbox makes no "+
			"sessions")
	_, err = prepare(behindService(t, &printer{nth: -1}, sandbox.DefaultPreset, nil))
	require.ErrorContains(t, err, "this service makes no sessions")

	b := stepWith(t, nil, nil, "sandbox.session=true")
	_, err = do(b, episodes.ExecuteToolCalls{Worker: b.deps}.Execute, api.ToolsInput{Scope: b.scope})
	require.ErrorContains(t, err, "sandbox.session: ")
}
