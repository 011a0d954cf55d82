package e2e

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/workflows"
)

// replay runs `ropewalk replay --json`.
func (h *home) replay(t *testing.T, args ...string) workflows.ReplayStageResult {
	t.Helper()
	var out workflows.ReplayStageResult
	r := h.run(t, append([]string{"replay", "--json"}, args...)...).ok(t)
	require.NoError(t, json.Unmarshal([]byte(r.out), &out), r.out)
	return out
}

// same lists the stages of a replay and whether each is unchanged.
func same(r workflows.ReplayStageResult) map[string]bool {
	out := map[string]bool{}
	for _, s := range r.Stages {
		out[s.Stage] = s.Same
	}
	return out
}

// orphansOf is verify's message about objects that nothing names, which lost attempts leave behind.
func orphansOf(verified result) string {
	return regexp.MustCompile(`\d+ orphans`).FindString(verified.out)
}

// A replay needs the bucket alone: this Temporal does not know the run, which another machine may have run.
func TestReplayBesideTheRun(t *testing.T) {
	h, _ := needs(t, ownNamespace)
	h.ensureUp(t)
	const run = "base"
	before := h.contents(t, run)
	orphans := orphansOf(h.run(t, "verify", run).ok(t))
	require.NotEmpty(t, orphans)

	t.Run("as it was", func(t *testing.T) {
		r := h.replay(t, run, "--step", "2", "--from", "reward")
		require.Equal(t, 1, r.Gen)
		require.Equal(t, map[string]bool{"reward": true, "resample": true, "advantage": true}, same(r))
		d := h.run(t, "diff", run, "--step", "2", "--gen", "0,1").ok(t)
		require.Contains(t, d.out, "rewards     0 of 64 trajectories changed")
		require.Contains(t, d.out, "selection   0 of 64")
	})
	t.Run("with another selection", func(t *testing.T) {
		r := h.run(t, "replay", run, "--step", "2", "--from", "resample", "--set", "resample.roc=null", "--set",
			"resample.vspo=null").ok(t)
		require.Contains(t, r.out, "step 2: generation 2\n")
		require.Contains(t, r.out, "diff "+run+" --step 2 --gen 0,2")
		d := h.run(t, "diff", run, "--step", "2", "--gen", "0,2", "--json").ok(t)
		var got struct {
			Borrowed  []struct{ Stage string }
			Selection struct {
				Kept int `json:"kept_after"`
			}
			Advantages struct {
				Rows int `json:"rows_after"`
			}
		}
		require.NoError(t, json.Unmarshal([]byte(d.out), &got), d.out)
		require.Len(t, got.Borrowed, 1)
		require.Equal(t, "reward", got.Borrowed[0].Stage)
		require.Equal(t, 64, got.Selection.Kept)
		require.Equal(t, 64, got.Advantages.Rows)
	})
	t.Run("touches nothing else", func(t *testing.T) {
		after := h.contents(t, run)
		for key, text := range before {
			require.Equal(t, text, after[key], key)
		}
		for key := range after {
			if _, old := before[key]; !old {
				require.Regexp(t, `/step=2/.*gen=[12]`, key)
			}
		}
		v := h.run(t, "verify", run).ok(t)
		require.Contains(t, v.out, "no fault")
		require.Equal(t, orphans, orphansOf(v))
	})
	t.Run("checked", func(t *testing.T) {
		now := h.contents(t, run)
		c := h.run(t, "replay", "--check", run).ok(t)
		require.Equal(t, steps*(2+1+1), strings.Count(c.out, "  same\n"), c.out)
		require.Contains(t, c.out, "16 shards made again, 0 differ; nothing was committed")
		require.Equal(t, now, h.contents(t, run))
	})
	t.Run("refused", func(t *testing.T) {
		for _, c := range []struct {
			args []string
			want string
		}{
			{[]string{"replay", "nosuch", "--step", "1", "--from", "reward"}, "no such run in the record: nosuch"},
			{[]string{"replay", "--check", "nosuch"}, "no such run in the record: nosuch"},
			{[]string{"replay", run, "--step", "77", "--from", "reward"}, "step 77 of run " + run +
				" has committed nothing"},
			{[]string{"replay", run, "--step", "1", "--from", "reward", "--set", "resample.rok.keep=3"},
				"did you mean resample.roc.keep?"},
			{[]string{"replay", run, "--step", "1", "--from", "reward", "--set", "optimizer.lr=1"},
				"no replayed stage reads it; reward reads reward.*"},
			{[]string{"diff", run, "--step", "2", "--gen", "0,9"}, "step 2 of run " + run +
				" has no generation 9; it has 0, 1, 2"},
			{[]string{"diff", run, "--step", "77"}, "step 77 of run " + run + " has committed nothing"},
			{[]string{"diff", "nosuch", "--step", "1"}, "no such run in the record: nosuch"},
		} {
			r := h.run(t, c.args...)
			require.Equal(t, 2, r.code, r.err)
			require.Contains(t, r.err, c.want)
			require.Empty(t, r.out)
		}
	})
	t.Run("from the UI", func(t *testing.T) { replayedFromTheUI(t, h, run) })
	t.Run("damaged", func(t *testing.T) {
		rows := h.record().manifest(t,
			schema.At(run, 3, schema.StageAssemble).WithShard(1).ManifestKey()).ShardsOf(schema.Trajectories)
		restore := h.record().flip(t, rows[0].Key)
		now := h.contents(t, run)
		for _, args := range [][]string{{"replay", run, "--step", "3", "--from", "reward"},
			{"replay", "--check", run}} {
			r := h.run(t, args...)
			require.Equal(t, 1, r.code, r.err)
			require.Contains(t, r.err, rows[0].Key)
			require.Contains(t, r.err, "restore the object from a copy")
			require.NotContains(t, r.err, "retryable")
			require.Empty(t, r.out)
		}
		require.Equal(t, now, h.contents(t, run), "nothing is written")
		restore()
	})
}

// contents has every object of a run, by key.
func (h *home) contents(t *testing.T, run string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, key := range h.record().keys(schema.RunPrefix(run)) {
		text, err := os.ReadFile(h.record().path(key))
		require.NoError(t, err)
		out[key] = string(text)
	}
	return out
}

// A check starts no server and leaves the folder as it is.
func TestReplayIsCheckedWithoutServers(t *testing.T) {
	h, want := needs(t, ownServers("it starts none"))
	before := tree(t, h.dir)
	r := h.with("PATH=/nowhere").run(t, "replay", "--check", want.Run).ok(t)
	require.Contains(t, r.out, "run "+want.Run+": 16 shards made again, 0 differ; nothing was committed")
	require.Empty(t, r.err)
	require.Equal(t, before, tree(t, h.dir))

	for set, message := range map[string]string{
		"resample.rok.keep=3": "did you mean resample.roc.keep?",
		"optimizer.lr=1":      "no replayed stage reads it; reward reads reward.*",
	} {
		refused := h.with("PATH=/nowhere").run(t, "replay", want.Run, "--step", "1", "--from", "reward", "--set", set)
		require.Equal(t, 2, refused.code, refused.err)
		require.Contains(t, refused.err, message)
	}
	require.Equal(t, before, tree(t, h.dir))
}

// tree lists the files below a folder and the digests of what they hold.
func tree(t *testing.T, folder string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		out[path] = schema.Digest(text)
		return err
	}))
	return out
}

// replayedFromTheUI replays a step by a workflow that is started without the command.
func replayedFromTheUI(t *testing.T, h *home, run string) {
	t.Helper()
	c := h.dial(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	started := startFromUI(t, c, workflows.ReplayStageName, "some replay", map[string]any{
		"run_id": run, "step": 1, "from": "advantage", "set": []string{"advantage.std=false"},
	})
	var out workflows.ReplayStageResult
	require.NoError(t, started.Get(ctx, &out))
	require.Equal(t, 1, out.Gen)
	claim := h.record().manifest(t, schema.At(run, 1, schema.StageReplay).WithGen(1).ManifestKey())
	require.Equal(t, "some replay "+started.GetRunID(), claim.Note["claim"])

	value, err := c.QueryWorkflow(ctx, "some replay", "", "__temporal_workflow_metadata")
	require.NoError(t, err)
	var metadata sdkpb.WorkflowMetadata
	require.NoError(t, value.Get(&metadata))
	require.Contains(t, metadata.CurrentDetails, "| stage | shards | before | after | |")
	eventually(t, func() bool {
		list, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: `RunID="` + run +
			`" and Step=1 and Stage="done" and WorkflowType="ReplayStage"`})
		require.NoError(t, err)
		return len(list.Executions) == 1
	}, "the replay to be found by its search attributes")

	failsAtOnce(t, c, startFromUI(t, c, workflows.ReplayStageName, "bad replay",
		map[string]any{"run_id": run, "step": 1, "from": "rollout"}), "rollout cannot be replayed")
}

func TestReplayOfAnImport(t *testing.T) {
	h, _ := needs(t, sharedStack)
	const run = "replayed-import"
	h.run(t, "import", "openai", h.conversations(t), "--run-id", run).ok(t)
	r := h.replay(t, run, "--step", "1", "--from", "reward")
	require.Equal(t, map[string]bool{"reward": true, "resample": true, "advantage": true}, same(r))
	require.Contains(t, h.run(t, "replay", "--check", run).ok(t).out, "3 shards made again, 0 differ")
	h.run(t, "verify", run).ok(t)
}
