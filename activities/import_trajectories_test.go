package activities

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/activities/data"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// chats is a file with one short conversation for each task.
func chats(tasks int, answer string) string {
	var b strings.Builder
	for i := range tasks {
		fmt.Fprintf(&b,
			`{"task_id":%d,"reward":1,"messages":[{"role":"user","content":"%d"},{"role":"assistant","content":"%s"}]}`+
				"\n", i, i, answer)
	}
	return b.String()
}

// imports runs the activity over an uploaded file of conversations.
func imports(b *stepBench, file string) (api.Imported, error) {
	b.t.Helper()
	in := api.ImportInput{Scope: b.scope, Format: api.FormatOpenAI, Digest: schema.Digest([]byte(file))}
	in.Source = "imports/" + in.Digest + ".json"
	require.NoError(b.t, b.deps.Store.Put(b.t.Context(), in.Source, []byte(file)))
	return do(b, data.ImportTrajectories{Worker: b.deps}.Execute, in)
}

func TestAnImportNearTheMostGroupsIsWhole(t *testing.T) {
	const groups = 9_990
	b := stepOf(t, nil, nil)
	out, err := imports(b, chats(groups, "yes"))
	require.NoError(t, err)
	require.Equal(t, groups, out.Trajectories)
	var refs []schema.Ref
	for _, s := range out.Shards {
		refs = append(refs, s.Manifest)
	}
	prompts := rowsAt[schema.PromptRow](b, refs...)
	require.Len(t, prompts, groups)
	require.Equal(t, schema.GroupID(1, groups-1), prompts[groups-1].GroupID)
	require.Len(t, rowsAt[schema.ImportedRow](b, refs...), groups)
}

func TestAnImportOfMoreGroupsThanIdsCountIsRefused(t *testing.T) {
	_, err := imports(stepOf(t, nil, nil), chats(schema.MaxGroups+1, "yes"))
	require.ErrorContains(t, err, "the file holds 10001 tasks; at most 10000 are imported at once: split it")
	requirePermanent(t, err)
}

func TestAnotherFileUnderARunThatHasOneIsRefused(t *testing.T) {
	b := stepOf(t, nil, nil)
	first, err := imports(b, chats(3, "yes"))
	require.NoError(t, err)
	again, err := imports(b, chats(3, "yes"))
	require.NoError(t, err)
	require.True(t, again.Adopted)
	require.Equal(t, first.Shards, again.Shards)
	_, err = imports(b, chats(4, "no"))
	require.ErrorContains(t, err, "run_id: run r holds the import of another file")
	requirePermanent(t, err)
}

// A killed import leaves shards without the stage's manifest, which is the only one that names the file.
func TestAnotherFileDoesNotGoOnWithAKilledImport(t *testing.T) {
	b := stepOf(t, nil, nil)
	_, err := imports(b, chats(3, "yes"))
	require.NoError(t, err)
	require.NoError(t, b.deps.Store.Delete(t.Context(), schema.At("r", 1, schema.StageImport).ManifestKey()))
	_, err = imports(b, chats(3, "no"))
	require.ErrorContains(t, err, "run_id: run r holds shard 0 of another file's import")
	requirePermanent(t, err)
	_, err = imports(b, chats(3, "yes"))
	require.NoError(t, err)
}

// requirePermanent requires a bad input that a retry cannot fix.
func requirePermanent(t *testing.T, err error) {
	t.Helper()
	var failure *temporal.ApplicationError
	require.ErrorAs(t, err, &failure)
	require.Equal(t, api.FailBadInput, failure.Type())
	require.True(t, failure.NonRetryable())
}
