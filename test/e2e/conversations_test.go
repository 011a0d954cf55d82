package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/realdata"
	"github.com/ropewalk/ropewalk/schema"
)

// talk is a made-up file: two tasks of two trials, with tool calls, nulls, parts and fields of others.
const talk = `[
 {"task_id": "book", "trial": 0, "reward": 1, "tools": [{"type": "function", "function": {"name": "find"}}], "messages": [
  {"role": "system", "content": "Be helpful."}, {"role": "user", "content": "A <b>table</b> & two chairs?"},
  {"role": "assistant", "content": null, "function_call": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{\"n\": 1.50}"}}, {"id": "c2", "type": "function", "function": {"name": "find", "arguments": "{}"}}]},
  {"role": "tool", "tool_call_id": "c2", "name": "find", "content": "Error: none"}, {"role": "tool", "tool_call_id": "c1", "name": "find", "content": "[\"t1\"]"},
  {"role": "assistant", "content": "Done. \u2603", "refusal": null}, {"role": "user", "content": "###STOP###"}]},
 {"task_id": "book", "trial": 1, "reward": 0, "messages": [
  {"role": "system", "content": "Be helpful."}, {"role": "user", "content": [{"type": "text", "text": "One table."}]},
  {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "transfer", "arguments": "oops"}}]},
  {"role": "tool", "tool_call_id": "c1", "content": "Transferred"}]},
 {"task_id": 2, "trial": 1, "reward": 0, "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "No."}]},
 {"task_id": 2, "trial": 0, "reward": 0, "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Never."}]}
]`

// conversation has the fields of an item and of an exported line that the tests read.
type conversation struct {
	Task       any     `json:"task_id"`
	Trial      float64 `json:"trial"`
	Reward     float64 `json:"reward"`
	Messages   any     `json:"messages"`
	Traj       any     `json:"traj"`
	Tools      any     `json:"tools"`
	Trajectory string  `json:"trajectory_id"`
	Kept       bool    `json:"kept"`
}

// name identifies the trial and its task.
func (c conversation) name() string { return fmt.Sprint(c.Task, "/", c.Trial) }

// imported imports a file and returns the report.
func (h *home) imported(t *testing.T, file, run string) (out struct {
	Run          string             `json:"run_id"`
	Trajectories int                `json:"trajectories"`
	ToolCalls    int                `json:"tool_calls"`
	Tasks        int                `json:"tasks"`
	PassHatK     map[string]float64 `json:"pass_hat_k"`
	Kept         int                `json:"kept"`
}) {
	t.Helper()
	r := h.run(t, "import", "openai", file, "--run-id", run, "--json").ok(t)
	require.NoError(t, json.Unmarshal([]byte(r.out), &out), r.out)
	require.Equal(t, run, out.Run)
	h.run(t, "verify", run).ok(t)
	return out
}

// exported returns a run's conversations by name.
func (h *home) exported(t *testing.T, run string, more ...string) map[string]conversation {
	t.Helper()
	r := h.run(t, append([]string{"export", run, "--format", "openai", "-o", "-"}, more...)...).ok(t)
	out := map[string]conversation{}
	for line := range strings.Lines(r.out) {
		var c conversation
		require.NoError(t, json.Unmarshal([]byte(line), &c), line)
		require.NotContains(t, out, c.name())
		out[c.name()] = c
	}
	return out
}

// giveBack requires that every item of a file comes back with the same messages.
func (h *home) giveBack(t *testing.T, data []byte, run string) {
	t.Helper()
	var items []conversation
	require.NoError(t, json.Unmarshal(data, &items))
	got := h.exported(t, run)
	require.Len(t, got, len(items))
	for _, want := range items {
		if want.Messages == nil {
			want.Messages = want.Traj
		}
		c, ok := got[want.name()]
		require.True(t, ok, want.name())
		require.Equal(t, want.Messages, c.Messages, want.name())
		require.Equal(t, want.Reward, c.Reward, want.name())
		require.Equal(t, want.Tools, c.Tools, want.name())
	}
}

func TestConversationsComeInAndGoOut(t *testing.T) {
	h, _ := needs(t, sharedStack)
	require.NoError(t, os.WriteFile(filepath.Join(h.cwd, "talk.json"), []byte(talk), 0o600))
	report := h.imported(t, "talk.json", "talk")
	require.Equal(t, []int{4, 3, 2, 2}, []int{report.Trajectories, report.ToolCalls, report.Tasks, report.Kept})
	require.Equal(t, map[string]float64{"1": 0.25, "2": 0}, report.PassHatK)
	h.giveBack(t, []byte(talk), "talk")

	require.Contains(t, h.run(t, "show", "talk", "--step", "1").ok(t).out, "answer │ Error: none")
	r := h.run(t, "sql", "--run", "talk", "--csv", "select count(*) from imported").ok(t)
	require.Equal(t, "4", lastLine(r.out))
	require.Regexp(t, `talk +1/1 +– +done`, h.run(t, "runs").ok(t).out)
	rows := h.run(t, "sql", "--run", "talk", "--csv",
		"select name, arguments, status from tool_calls order by trajectory_id, call").ok(t).out
	require.Equal(t, "name,arguments,status\nfind,\"{\"\"n\"\": 1.50}\",ok\nfind,{},tool_error\ntransfer,oops,ok\n",
		rows)

	sft := h.run(t, "export", "talk", "--format", "sft", "-o", "-").ok(t).out
	require.Equal(t, 1, strings.Count(sft, "\n"), "one kept positive")
	require.Contains(t, sft, `"prompt":[{"role":"system"`)
	h.run(t, "export", "talk", "--format", "parquet", "-o", ".").ok(t)
	data, err := os.ReadFile(filepath.Join(h.cwd, "talk.parquet"))
	require.NoError(t, err)
	require.Equal(t, "PAR1", string(data[:4]))
}

// tau-bench's 200 real trajectories.
func TestTauBenchComesInAndGoesOut(t *testing.T) {
	file := realdata.Path(t, "taubench", "gpt-4o-airline.json")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	h, _ := needs(t, sharedStack)
	report := h.imported(t, file, "airline")
	require.Equal(t, []int{200, 1164, 50}, []int{report.Trajectories, report.ToolCalls, report.Tasks})
	require.Len(t, report.PassHatK, 4)
	for k, want := range map[string]float64{"1": 0.42, "2": 41.0 / 150, "3": 0.22, "4": 0.2} {
		require.InDelta(t, want, report.PassHatK[k], 1e-9, "pass^%s", k)
	}
	h.giveBack(t, data, "airline")
	got := h.run(t, "sql", "--run", "airline", "--csv", passSQL).ok(t).out
	require.Equal(t, "k,pass_hat_k\n1,0.42\n2,0.273333\n3,0.22\n4,0.2\n", got)
}

// passSQL computes pass^k of the runs in view: the chance that k trials of a task all succeed.
const passSQL = `WITH tasks AS (SELECT run, group_id, count(*) n, count(*) FILTER (success) c FROM rewards GROUP BY ALL),
chances AS (SELECT run, group_id, k, product(greatest(c - i, 0)::DOUBLE / (n - i)) p
  FROM tasks, (SELECT unnest(range(1, min(n) + 1)) k FROM tasks), range(0, 1000) draws(i) WHERE i < k GROUP BY ALL)
SELECT k, round(avg(p), 6) pass_hat_k FROM chances GROUP BY k ORDER BY k`

// A training run's trajectories are conversations too, and can be imported again.
func TestATrainingRunGoesOutAndComesBack(t *testing.T) {
	h, _ := needs(t, sharedStack)
	got := h.exported(t, "base", "--step", "2")
	require.Len(t, got, 64)
	kept := h.exported(t, "base", "--steps", "2-2", "--only", "kept")
	require.NotEmpty(t, kept)
	for name, c := range got {
		require.Equal(t, c.Kept, kept[name].Trajectory != "", name)
		first := c.Messages.([]any)[0].(map[string]any)
		require.Equal(t, "user", first["role"])
	}
	h.run(t, "export", "base", "--format", "openai", "--step", "2", "-o", "base.jsonl").ok(t)
	report := h.imported(t, "base.jsonl", "again-as-talk")
	require.Equal(t, []int{64, 8}, []int{report.Trajectories, report.Tasks})
	require.Len(t, report.PassHatK, 8)
	again := h.exported(t, "again-as-talk")
	for name, c := range got {
		require.Equal(t, c.Messages, again[name].Messages, name)
		require.Equal(t, c.Reward, again[name].Reward, name)
	}
}

func TestBrokenConversationsLeaveNothing(t *testing.T) {
	h, _ := needs(t, sharedStack)
	for name, c := range map[string]struct{ text, want string }{
		"line": {"{\"messages\": []}\n{", "broken.jsonl: read conversations: line 2: unexpected end of JSON input"},
		"field": {`{"reward": 1, "messages": [{"role": "assistant", "content": 3}]}`,
			"broken.jsonl: read conversations: line 1: item 0: messages[0].content: must be text, got 3"},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(h.cwd, "broken.jsonl"), []byte(c.text), 0o600))
		r := h.run(t, "import", "openai", "broken.jsonl", "--run-id", "broken-"+name)
		require.Equal(t, 2, r.code, r.err)
		require.Contains(t, r.err, c.want)
		require.Empty(t, h.record().keys(schema.RunPrefix("broken-"+name)))
		require.False(t, h.record().has(schema.CatalogueKey("broken-"+name)))
	}
}

// An export that fails leaves the earlier file unchanged, and no half-written one.
func TestExportThatFailsLeavesNothing(t *testing.T) {
	h, _ := needs(t, sharedStack)
	// No shard equals one of another test, which the cache may hold.
	text := strings.ReplaceAll(talk, "Never.", "Nowhere.")
	require.NoError(t, os.WriteFile(filepath.Join(h.cwd, "talk.json"), []byte(text), 0o600))
	h.imported(t, "talk.json", "talk-damaged")
	shards := h.record().keys(schema.RunPrefix("talk-damaged") + "table=turns/")
	require.NotEmpty(t, shards)
	require.NoError(t, os.WriteFile(h.record().path(shards[0]), []byte("damaged"), 0o600))
	out := filepath.Join(t.TempDir(), "out.jsonl")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"talk-damaged"}, 1, shards[0]},
		{[]string{"nosuch"}, 2, "no such run in the record: nosuch"},
		{[]string{"base", "--step", "77"}, 2,
			"no such step is finished: steps 77 to 77 are asked for, and run base has 4 steps, from 1 to 4"},
		{[]string{"base", "--gen", "7"}, 2, "no such generation in the record: generation 7 of run base"},
	} {
		require.NoError(t, os.WriteFile(out, []byte("what was there"), 0o600))
		r := h.run(t, append([]string{"export", "-o", out}, c.args...)...)
		require.Equal(t, c.code, r.code, r.err)
		require.Contains(t, r.err, c.want)
		left, err := os.ReadDir(filepath.Dir(out))
		require.NoError(t, err)
		require.Len(t, left, 1)
		text, err := os.ReadFile(out)
		require.NoError(t, err)
		require.Equal(t, "what was there", string(text))
	}
}
