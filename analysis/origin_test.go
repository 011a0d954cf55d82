package analysis_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// amend commits a change of a run's recipe under its number, made from the recipe of a manifest.
func amend(t *testing.T, r *recordtest.Run, number int, from schema.Ref, note map[string]string) schema.Ref {
	t.Helper()
	w := commit.New(r.Store)
	m := schema.NewManifest(schema.AtInit(r.Options.Run, schema.StageAmend).WithTry(number), recordtest.Code, "")
	info, err := commit.PutDocument(context.Background(), w, m.Place, map[string]any{"name": "fixture", "n": number})
	require.NoError(t, err)
	m.Shards, m.Config, m.Inputs, m.Note = append(m.Shards, info), info.Digest, []schema.Ref{from}, note
	_, ref, _, err := w.Commit(context.Background(), m)
	require.NoError(t, err)
	return ref
}

// Amendments that were refused, and those made from a recipe that was replaced, are not in force.
func TestOriginListsAmendmentsInForce(t *testing.T) {
	r := recordtest.Train(t, mem.New(), recordtest.Options{Run: "r", Steps: 1, Seed: 1,
		Created: "2026-01-02T03:04:05Z"})
	note := func(from, set string) map[string]string {
		return map[string]string{schema.NoteFromStep: from, schema.NoteChanges: set}
	}
	first := amend(t, r, 0, r.Prepare, note("2", "optimizer.lr=0.1 steps=9"))
	amend(t, r, 1, first, map[string]string{schema.NoteFromStep: "3", schema.NoteVoid: "seed=2"})
	amend(t, r, 2, r.Prepare, note("3", "steps=7"))
	amend(t, r, 3, first, note("5", "steps=8"))
	v, err := analysis.New(r.Store).Visible(context.Background(), "r")
	require.NoError(t, err)
	o, err := v.Origin(context.Background())
	require.NoError(t, err)
	require.Equal(t, []analysis.Amendment{{From: 2, Set: []string{"optimizer.lr=0.1", "steps=9"}},
		{From: 5, Set: []string{"steps=8"}}}, o.Amendments)
	require.Equal(t, []analysis.Program{{Digest: recordtest.Code}}, o.Programs)
	require.Equal(t, []string{"host"}, o.Hosts)
	require.Equal(t, r.Updates[0].Checkpoint.Digest, o.Policy)
	require.JSONEq(t, `{"name": "fixture", "seed": 1, "steps": 1}`, string(o.Recipe))
}

// The pieces of a step have the order in which its stages ran: the sandbox takes turns with the rollout.
func TestPiecesComeInTheOrderOfTheStages(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1, Created: "2026-01-02T03:04:05Z",
		Outputs: true, Gradings: true})
	v, err := analysis.New(objects).Visible(context.Background(), "r")
	require.NoError(t, err)
	for step, want := range map[int][]string{
		analysis.NoStep: {"warm_start", "evaluate"},
		1: {"prompts", "rollout", "sandbox", "rollout", "assemble", "grade", "reward", "resample", "logprobs",
			"advantage", "update", "publish"},
		2: {"prompts", "rollout", "sandbox", "rollout", "assemble", "grade", "reward", "resample", "logprobs",
			"advantage", "update", "publish", "evaluate"},
	} {
		pieces, err := v.Pieces(context.Background(), step)
		require.NoError(t, err)
		var got []string
		for _, p := range pieces {
			got = append(got, p.Stage)
			require.Equal(t, p.Stage == "update" || p.Stage == "warm_start", p.Checkpoint != "", p.Stage)
		}
		require.Equal(t, want, got)
	}
	_, err = v.Pieces(context.Background(), 3)
	require.ErrorIs(t, err, analysis.ErrNoStep)
}
