package grants_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/grants"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/s3"
)

// question is what a client may or may not ask.
type question struct {
	operation s3.Operation
	key       string
	may       bool
}

// cases are questions about each kind of object.
func cases() []question {
	const run = "runs/run=a/"
	digest := strings.Repeat("0123456789abcdef", 4)
	manifest := func(stage string) string {
		return schema.At("a", 3, stage).WithTurn(1).WithShard(2).WithGen(0).ManifestKey()
	}
	shard := func(table schema.Table) string {
		return schema.At("a", 3, schema.StageSandbox).WithShard(2).WithGen(0).DataKey(table, digest, "parquet")
	}
	signature := func(document string) string { return schema.SignatureKey(document, digest, "0123456789abcdef") }
	return []question{
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
	}
}

// The policy permits what stages of the queue need, and nothing that would read weights, change another stage's record
// or delete.
func TestPolicyOfTheSandboxQueue(t *testing.T) {
	t.Parallel()
	for _, c := range cases() {
		require.Equal(t, c.may, grants.SandboxQueue().Permits(c.operation, c.key), "%s %s", c.operation, c.key)
	}
}

// The role presigner of deploy/roles permits on the server whatever the policy permits, and little else: a presigner
// that is taken over cannot write weights or heads.
func TestTheRoleOfPresignersSuffices(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "roles", "presigner.json"))
	require.NoError(t, err)
	var role struct {
		Statement []struct{ Action, Resource []string }
	}
	require.NoError(t, json.Unmarshal(text, &role))
	permits := func(action, key string) bool {
		for _, s := range role.Statement {
			for _, pattern := range s.Resource {
				form := "^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$"
				arn := "arn:aws:s3:::ropewalk" + key
				if slices.Contains(s.Action, action) && regexp.MustCompile(form).MatchString(arn) {
					return true
				}
			}
		}
		return false
	}
	actions := map[s3.Operation]string{s3.OpGet: "GetObject", s3.OpHead: "GetObject", s3.OpDelete: "DeleteObject",
		s3.OpListParts: "ListMultipartUploadParts", s3.OpAbortUpload: "AbortMultipartUpload"}
	for _, o := range []s3.Operation{s3.OpPut, s3.OpPutIfAbsent, s3.OpBeginUpload, s3.OpPutPart, s3.OpCompleteUpload} {
		actions[o] = "PutObject"
	}
	require.True(t, permits("s3:ListBucketMultipartUploads", ""))
	for _, c := range cases() {
		for o, action := range actions {
			if grants.SandboxQueue().Permits(o, c.key) {
				require.True(t, permits("s3:"+action, "/"+c.key), "%s %s", o, c.key)
			}
		}
	}
	for _, key := range []string{"runs/run=a/checkpoints/1-a/model.safetensors", "runs/run=a/heads/step=1.json",
		"warmstarts/a/manifest.json", "catalogue/a.json", "requests/a.json", "deeds/a/t-x.json", "imports/a.jsonl"} {
		require.False(t, permits("s3:PutObject", "/"+key), key)
		require.False(t, permits("s3:DeleteObject", "/"+key), key)
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
