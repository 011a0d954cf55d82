package grants_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/grants"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/s3"
)

// The policy permits what stages of the queue need, and nothing that would read weights, change another stage's record
// or delete.
func TestPolicyOfTheSandboxQueue(t *testing.T) {
	t.Parallel()
	const run = "runs/run=a/"
	digest := strings.Repeat("0123456789abcdef", 4)
	manifest := func(stage string) string {
		return schema.At("a", 3, stage).WithTurn(1).WithShard(2).WithGen(0).ManifestKey()
	}
	shard := func(table schema.Table) string {
		return schema.At("a", 3, schema.StageSandbox).WithShard(2).WithGen(0).DataKey(table, digest, "parquet")
	}
	signature := func(document string) string { return schema.SignatureKey(document, digest, "0123456789abcdef") }
	for _, c := range []struct {
		operation s3.Operation
		key       string
		may       bool
	}{
		{s3.OpGet, manifest("rollout"), true},
		{s3.OpGet, shard(schema.Turns), true},
		{s3.OpGet, "warmstarts/" + digest + "/checkpoints/0-a/tokenizer.json", true},
		{s3.OpGet, run + "heads/step=1.json", true},
		{s3.OpGet, "warmstarts/" + digest + "/checkpoints/0-a/model.safetensors", false},
		{s3.OpHead, run + "checkpoints/1-a/model.safetensors", false},
		{s3.OpGet, "requests/a.json", false},
		{s3.OpGet, "deeds/a/t-x.json", false},
		{s3.OpGet, "imports/a.jsonl", false},
		{s3.OpList, run, false},
		{s3.OpList, "", false},
		{s3.OpListUploads, "", false},
		{s3.OpPut, shard(schema.ToolCalls), true},
		{s3.OpBeginUpload, shard(schema.ToolCalls), true},
		{s3.OpListUploads, shard(schema.ToolCalls), true},
		{s3.OpPut, shard(schema.Transitions), true},
		{s3.OpPut, shard(schema.Gradings), true},
		{s3.OpPut, shard(schema.FunctionScores), true},
		{s3.OpPut, shard(schema.Timings), true},
		{s3.OpPut, shard(schema.Rewards), false},
		{s3.OpPut, shard(schema.Turns), false},
		{s3.OpPut, run + "table=tool_calls/anything", false},
		{s3.OpDelete, shard(schema.ToolCalls), false},
		{s3.OpPutIfAbsent, manifest("sandbox"), true},
		{s3.OpPutIfAbsent, manifest("grade"), true},
		{s3.OpPutIfAbsent, manifest("function"), true},
		{s3.OpPutIfAbsent, manifest("timings_calls"), true},
		{s3.OpPut, manifest("sandbox"), false},
		{s3.OpDelete, manifest("sandbox"), false},
		{s3.OpPutIfAbsent, manifest("reward"), false},
		{s3.OpPutIfAbsent, manifest("rollout"), false},
		{s3.OpPutIfAbsent, run + "manifests/step=1/sandbox/../rollout/gen=0.json", false},
		{s3.OpPutIfAbsent, run + "heads/step=1.json", false},
		{s3.OpPutIfAbsent, "warmstarts/" + digest + "/manifest.json", false},
		{s3.OpPut, signature(manifest("sandbox")), true},
		{s3.OpPut, signature(manifest("reward")), false},
		{s3.OpPut, signature(run + "heads/step=1.json"), false},
		{s3.OpPutIfAbsent, schema.CallNoteKey("a", "step=1", "begun"), true},
		{s3.OpGet, schema.CallNoteKey("a", "step=1", "begun"), true},
		{s3.OpPut, run + "checkpoints/1-a/config.json", false},
		{s3.OpPutIfAbsent, "catalogue/a.json", false},
		{s3.OpPutIfAbsent, schema.ProgramKey(digest), true},
		{s3.OpPutIfAbsent, ".ropewalk-probe/a", true},
		{s3.OpDelete, ".ropewalk-probe/a", true},
		{s3.OpPut, "elsewhere/a", false},
	} {
		require.Equal(t, c.may, grants.SandboxQueue().Permits(c.operation, c.key), "%s %s", c.operation, c.key)
	}
}

// docs/deploy.md shows the policy.
func TestThePolicyIsDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "deploy.md"))
	require.NoError(t, err)
	table := []string{"| operations | keys | for |", "| --- | --- | --- |"}
	for _, r := range grants.SandboxQueue() {
		operations := make([]string, len(r.Operations))
		for i, o := range r.Operations {
			operations[i] = fmt.Sprintf("`%s`", o)
		}
		table = append(table, "| "+strings.Join(operations, ", ")+" | "+r.Keys+" | "+r.For+" |")
	}
	require.Contains(t, string(page), strings.Join(table, "\n")+"\n", "docs/deploy.md: want this table")
}
