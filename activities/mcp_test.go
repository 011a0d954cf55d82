package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/prepare"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/internal/testing/mcptest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// dialer is an engine whose policy makes the calls of a script, one list for each turn, and then answers. In a call,
// ROW is a number of the trajectory's own.
type dialer struct {
	fakeEngine
	script [][]string
	tokens *tokenizer.Tokenizer
}

func (c *dialer) Generate(_ context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	var g policy.Generated
	for i, prefix := range req.Prefixes {
		seen := c.tokens.Decode(prefix)
		text := `\boxed{7}` + protocol.EndOfTurn
		turn := strings.Count(seen, protocol.EndOfTurn+"\n<|im_start|>assistant\n") - 1
		if turn < len(c.script) {
			text = ""
			for _, call := range c.script[turn] {
				text += "<tool_call>\n" + strings.ReplaceAll(call, "ROW", fmt.Sprint(req.Streams[i]%1000)) +
					"\n</tool_call>"
			}
			text += protocol.EndOfTurn
		}
		ids := c.tokens.Encode(text)
		g.Tokens = append(g.Tokens, ids)
		g.LogProbs = append(g.LogProbs, make([]float32, len(ids)))
		g.Entropies = append(g.Entropies, make([]float32, len(ids)))
		g.Finish = append(g.Finish, policy.FinishStop)
	}
	return g, nil
}

// mcpBench is a step whose policy calls the tools of an MCP server.
type mcpBench struct {
	*notebookBench
	dialer *dialer
}

// serverSetting is a recipe's override with a server of mcptest.
func serverSetting(t *testing.T, mode string, more map[string]any, env ...string) string {
	t.Helper()
	command, variables := mcptest.Command(mode, env...)
	server := map[string]any{"name": "count", "command": command, "env": variables, "output_kb": 4}
	for k, v := range more {
		server[k] = v
	}
	text, err := json.Marshal([]any{server})
	require.NoError(t, err)
	return "rollout.mcp=" + string(text)
}

func mcpOf(t *testing.T, setting string, script ...[]string) *mcpBench {
	engine := &dialer{script: script}
	step := stepWith(t, engine, nil, setting, "rollout.max_turns=4", "rollout.max_tokens=12000",
		"rollout.max_turn_tokens=600", "policy.max_positions=12288", "rollout.max_tool_text_bytes=600",
		"rollout.protocol=hermes", "rollout.tools=[]", "warm_start.steps=0", "warm_start.optimizer.warmup_steps=0")
	t.Cleanup(func() { require.NoError(t, step.deps.Close()) })
	b := &mcpBench{dialer: engine, notebookBench: &notebookBench{stepBench: step}}
	b.on(step.deps.Store)
	return b
}

// on switches to another worker on a store. The worker before is not closed: it may be frozen or dead.
func (b *mcpBench) on(objects store.Store) {
	b.t.Helper()
	deps, err := New(stage.Options{Store: objects, Trainer: b.dialer, Rollout: b.dialer, Sandbox: &printer{nth: -1},
		Tier: sandbox.TierFull, Code: b.deps.Code, Scratch: b.t.TempDir()})
	require.NoError(b.t, err)
	b.t.Cleanup(func() { require.NoError(b.t, deps.Close()) })
	published(deps, b.policy.Digest)
	b.deps = deps
	recipe, err := deps.Recipes.Recipe(b.t.Context(), b.scope)
	require.NoError(b.t, err)
	b.dialer.tokens, err = deps.Recipes.Tokenizer(recipe)
	require.NoError(b.t, err)
}

const addRow = `{"name": "count_add", "arguments": {"by": ROW}}`

// countScript is three turns of calls, of several tools and with bad arguments.
var countScript = [][]string{
	{addRow},
	{addRow, `{"name": "count_add", "arguments": {"by": "much"}}`,
		`{"name": "count_fail", "arguments": {"text": "no"}}`},
	{`{"name": "count_say_it", "arguments": {"text": "ROW"}}`, addRow},
}

// Episodes call an MCP server's tools through the real stages. Whatever befalls the sessions, the same bytes are
// committed: a retried activity, another worker for each turn, and a record that is replayed.
func TestEpisodesCallAnMCPServer(t *testing.T) {
	setting := serverSetting(t, "honest", map[string]any{"repeat": "sandboxed"})
	plain := mcpOf(t, setting, countScript...)
	for range countScript {
		plain.turn()
	}
	statuses := map[string]int{}
	for _, r := range rowsAt[schema.ToolCallRow](plain.stepBench, plain.tools...) {
		require.Nil(t, r.Excluded)
		statuses[fmt.Sprintf("turn %d call %d: %s %s", r.Turn, r.Call, r.Name, r.Status)]++
		if r.Turn == 1 && r.Call == 1 {
			require.Contains(t, r.Response, "by: got string, want integer")
		}
	}
	const n = 2 * benchSamples
	require.Equal(t, map[string]int{
		"turn 0 call 0: count_add ok": n, "turn 1 call 0: count_add ok": n,
		"turn 1 call 1: count_add bad_arguments": n, "turn 1 call 2: count_fail tool_error": n,
		"turn 2 call 0: count_say_it ok": n, "turn 2 call 1: count_add ok": n,
	}, statuses)
	require.Eventually(t, func() bool { return plain.deps.Execution.Servers.Held() == 0 }, 5*time.Minute,
		10*time.Millisecond, "sessions end with their episodes")

	t.Run("another worker for each turn", func(t *testing.T) {
		b := mcpOf(t, setting, countScript...)
		for range countScript {
			b.on(b.deps.Store)
			b.turn()
		}
		require.Equal(t, plain.tools, b.tools)
	})
	t.Run("a worker that dies before it commits", func(t *testing.T) {
		b := mcpOf(t, setting, countScript...)
		objects := b.deps.Store
		for range countScript {
			b.generate()
			b.on(faults.New(objects, faults.Rule{Op: faults.PutIfAbsent, Key: "manifests/step=1/sandbox/"}))
			for range 2 {
				_, err := b.execute()
				require.ErrorContains(t, err, faults.ErrInjected.Error())
			}
			b.on(objects)
			_, err := b.execute()
			require.NoError(t, err)
		}
		require.Equal(t, plain.tools, b.tools)
	})
	t.Run("one session for all", func(t *testing.T) {
		b := mcpOf(t, serverSetting(t, "honest", map[string]any{"repeat": "pure", "session": "shared"}),
			[]string{`{"name": "count_say_it", "arguments": {"text": "ROW"}}`})
		for _, r := range b.turn() {
			require.Equal(t, "ok", r.Status)
			require.Contains(t, r.Arguments, r.Stdout)
		}
	})
}

// Calls that must not run twice run once, whatever befalls the worker. A worker without the session excludes their
// trajectories: no verdict depends on its fate.
func TestMCPCallsThatMustNotRunTwice(t *testing.T) {
	file := filepath.Join(t.TempDir(), "executions")
	b := mcpOf(t, serverSetting(t, "honest", nil, "EXECUTIONS="+file), []string{addRow}, []string{addRow})
	executions := func() int {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		return strings.Count(string(text), "\n")
	}
	objects := b.deps.Store
	b.generate()
	b.on(faults.New(objects, faults.Rule{Op: faults.PutIfAbsent, Key: "manifests/step=1/sandbox/"}))
	_, err := b.execute()
	require.ErrorContains(t, err, faults.ErrInjected.Error())
	require.Equal(t, 2*benchSamples, executions())
	b.on(objects)
	out, err := b.execute()
	require.NoError(t, err)
	require.Zero(t, out.Excluded)
	require.Equal(t, 2*benchSamples, executions(), "the second attempt reads the results")

	b.generate()
	out, err = b.execute()
	require.NoError(t, err)
	require.Equal(t, 2*benchSamples, out.Excluded)
	require.Equal(t, 2*benchSamples, executions())
	for _, r := range rowsAt[schema.ToolCallRow](b.stepBench, out.Manifest) {
		require.Equal(t, "MCP tool count_add: MCP server count: the episode's session is lost, and its calls must not "+
			"run twice", *r.Excluded)
	}
}

// Text of a server is never taken for a protocol's tags or special tokens, whichever protocol calls it.
func TestTextOfAnMCPServerHoldsNoTags(t *testing.T) {
	poke := `{"name": "count_poke", "arguments": {}}`
	for _, mode := range []string{"tags", "tags in the description"} {
		b := mcpOf(t, serverSetting(t, mode, map[string]any{"repeat": "pure"}), []string{poke}, []string{poke})
		rows := b.turn()
		require.Len(t, rows, 2*benchSamples)
		b.turn()
		p, err := protocol.Named("hermes")
		require.NoError(t, err)
		for _, r := range rows {
			require.Equal(t, "ok", r.Status)
			for _, mark := range p.Spec().Marks {
				require.NotContains(t, r.Response, mark)
			}
		}
		for _, turn := range rowsAt[schema.TurnRow](b.stepBench, b.turns...) {
			context := b.dialer.tokens.Decode(turn.TokenIDs[:turn.ContextTokens])
			require.NotContains(t, context, "</tools><|im_end|>")
			if turn.Turn == 1 {
				require.Contains(t, turn.Observation, map[string]string{"tags": "< |im_end|>"}[mode])
				require.Equal(t, 1, strings.Count(context, "</tool_response>"))
				require.Equal(t, 1, strings.Count(context, protocol.EndOfTurn), "only the protocol ends a turn")
			}
		}
	}
}

// PrepareRun refuses a recipe whose server cannot be used, before it writes anything. A prepared run needs no server.
func TestPreparingARunWithAnMCPServer(t *testing.T) {
	b := stepOf(t, fakeEngine{}, nil)
	t.Cleanup(func() { require.NoError(t, b.deps.Close()) })
	prepare := func(setting string) (api.Prepared, error) {
		return do(b, prepare.PrepareRun{Worker: b.deps}.Execute, api.PrepareInput{Run: "new", Kind: "train",
			Recipe: "quickstart", Overrides: []string{setting, "rollout.protocol=hermes", "rollout.prompts=8",
				"rollout.samples_per_prompt=16", "rollout.shard_groups=8"}})
	}
	before, err := b.deps.Store.List(t.Context(), "")
	require.NoError(t, err)
	for mode, message := range map[string]string{
		"10000 tools": "rollout.mcp: list the tools of MCP server count: the MCP server's list of tools cannot be " +
			"used: it has more than 1000 tools",
		"no schema": `tool "poke": the schema is no JSON schema`,
	} {
		_, err := prepare(serverSetting(t, mode, nil))
		require.ErrorContains(t, err, message)
	}
	_, err = prepare(`rollout.mcp=[{name: gone, command: [/nothing/here]}]`)
	require.ErrorContains(t, err, "open a session with MCP server gone")
	require.ErrorContains(t, err, "/nothing/here: no such file")
	after, err := b.deps.Store.List(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, before, after, "nothing is written")

	mark := filepath.Join(t.TempDir(), "changed")
	setting := serverSetting(t, "schema that changes", nil, "CHANGED="+mark)
	first, err := prepare(setting)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(mark, nil, 0o600)) // the server says something else from now on
	second, err := prepare(setting)
	require.NoError(t, err)
	require.Equal(t, first.Manifest, second.Manifest, "a prepared run keeps its tools")
	c, err := b.deps.Recipes.Config(t.Context(), first.Manifest)
	require.NoError(t, err)
	require.Equal(t, "pokes", c.Recipe.Rollout.MCP[0].Pinned[0].Description)
}
