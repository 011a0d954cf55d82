package activities

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/activities/learn"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// oracle is an engine whose outputs for a token depend only on the token's position and the model's role.
type oracle struct {
	policy.Engine
	loaded []policy.Role
	asked  []policy.ForwardRequest
	spoil  float32 // replaces the last output of the first row
	fail   error
}

func (o *oracle) Load(_ context.Context, role policy.Role, _ string, _ bool) error {
	o.loaded = append(o.loaded, role)
	return nil
}

func (o *oracle) Forward(_ context.Context, req policy.ForwardRequest) (policy.TokenOutputs, error) {
	o.asked = append(o.asked, req)
	list := func(scale float32) [][]float32 {
		var out [][]float32
		for _, s := range req.Sequences {
			row := make([]float32, len(s))
			for t := range row {
				row[t] = scale * float32(t)
			}
			out = append(out, row)
		}
		return out
	}
	out := policy.TokenOutputs{}
	scale := map[policy.Role]float32{policy.RolePolicy: -1, policy.RoleReference: -2, policy.RoleCritic: 0.5}[req.Role]
	if req.Outputs.Has(policy.OutLogProb) {
		out.LogProbs = list(scale)
		if o.spoil != 0 {
			last := out.LogProbs[0]
			last[len(last)-1] = o.spoil
		}
	}
	if req.Outputs.Has(policy.OutEntropy) {
		out.Entropies = list(-scale)
	}
	if req.Outputs.Has(policy.OutValue) {
		out.Values = list(scale)
	}
	return out, o.fail
}

// logprobsBench is a step with two shards, each with a kept and a dropped trajectory of two turns.
func logprobsBench(t *testing.T, o *oracle, set ...string) (*stepBench, api.TokenOutputsInput) {
	t.Helper()
	b := stepOf(t, o, nil)
	trainer, _ := b.deps.Engines.Pool.CPU()
	trainer.Mark(policy.RolePolicy, b.policy.Digest, false)
	recipe, err := recipes.Resolve("quickstart", "", append(benchRecipe, set...), nil, nil)
	require.NoError(t, err)
	b.scope.Run = "f"
	b.scope.Config, err = commitRecipe(t.Context(), b.deps, "f", schema.AtInit("f", schema.StagePrepare),
		recipe, enginepool.Choice{Kind: "cpu"})
	require.NoError(t, err)
	var selection []schema.SelectionRow
	for g := range 2 {
		for k := range 2 {
			row := schema.SelectionRow{GroupID: schema.GroupID(1, g), TrajectoryID: schema.TrajectoryID(1, g, k),
				Reason: "roc_positive_surplus"}
			if k == 1 {
				row.Kept, row.Count, row.Weight, row.Reason = true, 1, 1, ""
			}
			selection = append(selection, row)
		}
	}
	in := api.TokenOutputsInput{Scope: b.scope, Policy: b.policy,
		Selection: commitRows(b, schema.At("f", 1, schema.StageResample), selection)}
	var turns []schema.Ref
	for turn := range 2 {
		var rows []schema.TurnRow
		for k := range 2 {
			rows = append(rows, schema.TurnRow{
				GroupID: schema.GroupID(1, 0), TrajectoryID: schema.TrajectoryID(1, 0, k), Turn: int32(turn),
				ContextTokens: 2,
				TokenIDs:      []int32{1, 2, 3}, LossMask: []int32{0, 0, 1}, LogProbs: []float32{0, 0, -1},
				Entropies: []float32{0, 0, 1},
				Finish:    "stop", PolicyVersion: "p",
			})
		}
		turns = append(turns, commitRows(b, schema.At("f", 1, schema.StageRollout).WithTurn(turn).WithShard(0), rows,
			turns...))
	}
	in.Assembled = commitRows(b, schema.At("f", 1, schema.StageAssemble).WithShard(0), []schema.TrajectoryRow{},
		turns[1])
	return b, in
}

// warmStart commits a checkpoint as the run's first policy.
func (b *stepBench) warmStart(digest string) schema.Ref {
	b.t.Helper()
	return b.checkpointAt(schema.AtInit("f", schema.StageWarmStart), digest, "")
}

// checkpointAt commits a checkpoint, with a critic if critic is not empty.
func (b *stepBench) checkpointAt(place schema.Place, digest, critic string) schema.Ref {
	b.t.Helper()
	m := schema.NewManifest(place, b.deps.Code, strings.Repeat("d", 64))
	prefix := place.CheckpointPrefix("0")
	sum, err := b.deps.Record.Blob(b.t.Context(), prefix+"config.json", []byte("{}"))
	require.NoError(b.t, err)
	m.Checkpoint = &schema.Checkpoint{Prefix: prefix, Digest: digest,
		Files: []schema.CheckpointFile{{Name: "config.json", Digest: sum, Bytes: 2}}}
	if critic != "" {
		m.Critic = &schema.Checkpoint{Prefix: prefix, Digest: critic, Files: m.Checkpoint.Files}
	}
	_, ref, _, err := b.deps.Record.Commit(b.t.Context(), m)
	require.NoError(b.t, err)
	return ref
}

func TestTokenOutputsOfEachModel(t *testing.T) {
	o := &oracle{}
	b, in := logprobsBench(t, o, "loss.old_log_probs=recompute", "token_outputs.entropies=true",
		"loss.kl={coefficient: 0.1}", "advantage={name: gae}", "loss.value={}")
	reference, critic := strings.Repeat("a", 64), strings.Repeat("b", 64)
	warm := b.warmStart(reference)
	// Nothing needs to be loaded.
	trainer, _ := b.deps.Engines.Pool.CPU()
	trainer.Mark(policy.RoleReference, reference, false)
	trainer.Mark(policy.RoleCritic, critic, false)
	in.Policy.Manifest = b.checkpointAt(schema.At("f", 7, schema.StageUpdate), b.policy.Digest, critic)

	out, err := do(b, learn.ComputeTokenOutputs{Worker: b.deps}.Execute, in)
	require.NoError(t, err)
	require.Equal(t, 1, out.Rows)
	require.Equal(t, int64(2), out.Tokens)
	require.Equal(t, []schema.TokenOutputsRow{{
		GroupID: schema.GroupID(1, 0), TrajectoryID: schema.TrajectoryID(1, 0, 1),
		OldLogProbs: []float32{0, 0, -2, 0, 0, -5}, Entropies: []float32{0, 0, 2, 0, 0, 5},
		ReferenceLogProbs: []float32{0, 0, -4, 0, 0, -10},
		Values:            []float32{0, 0, 1, 0, 0, 2.5}, PolicyVersion: b.policy.Digest, ReferenceVersion: reference,
		CriticVersion: critic, LossMask: []int32{0, 0, 1, 0, 0, 1},
	}}, rowsAt[schema.TokenOutputsRow](b, out.Manifest))
	require.Empty(t, o.loaded)
	require.Len(t, o.asked, 3, "one pass of each model")
	require.Equal(t, policy.OutLogProb|policy.OutEntropy, o.asked[0].Outputs)
	require.Equal(t, [][]int32{{1, 2, 3, 1, 2, 3}}, o.asked[0].Sequences)
	committed, err := b.deps.Record.Read(t.Context(), out.Manifest)
	require.NoError(t, err)
	turns, err := b.deps.TurnRefs(t.Context(), in.Assembled)
	require.NoError(t, err)
	require.Len(t, turns, 2)
	require.Equal(t, append(append([]schema.Ref{in.Config}, turns...), in.Selection, in.Policy.Manifest, warm),
		committed.Inputs)

	again, err := do(b, learn.ComputeTokenOutputs{Worker: b.deps}.Execute, in)
	require.NoError(t, err)
	require.True(t, again.Adopted)
	require.Equal(t, 1, again.Rows)
	require.Len(t, o.asked, 3)
}

// A model that is not resident is loaded once, under its role, and the policy stays resident.
func TestTheReferenceIsLoadedOnce(t *testing.T) {
	o := &oracle{}
	b, in := logprobsBench(t, o, "loss.kl={coefficient: 0.1}")
	b.warmStart(strings.Repeat("a", 64))
	for shard := range 2 {
		in.Shard = shard
		_, err := do(b, learn.ComputeTokenOutputs{Worker: b.deps}.Execute, in)
		require.NoError(t, err)
	}
	require.Equal(t, []policy.Role{policy.RoleReference}, o.loaded)
	trainer, _ := b.deps.Engines.Pool.CPU()
	require.True(t, trainer.Holds(policy.RolePolicy, b.policy.Digest))
}

func TestTokenOutputsOfNothing(t *testing.T) {
	o := &oracle{}
	b, in := logprobsBench(t, o, "loss.old_log_probs=recompute")
	var none []schema.SelectionRow
	in.Selection = commitRows(b, schema.At("f", 1, schema.StageResample).WithGen(1), none)
	out, err := do(b, learn.ComputeTokenOutputs{Worker: b.deps}.Execute, in)
	require.NoError(t, err)
	require.Zero(t, out.Rows)
	require.Empty(t, rowsAt[schema.TokenOutputsRow](b, out.Manifest))
	require.Empty(t, o.asked, "no model is asked")
}

func TestTokenOutputsThatCannotBe(t *testing.T) {
	kind := func(err error) string {
		var app *temporal.ApplicationError
		require.ErrorAs(t, err, &app)
		require.True(t, app.NonRetryable())
		return app.Type()
	}
	b, in := logprobsBench(t, &oracle{spoil: float32(math.Inf(-1))}, "loss.old_log_probs=recompute")
	_, err := do(b, learn.ComputeTokenOutputs{Worker: b.deps}.Execute, in)
	require.Equal(t, api.FailNonFinite, kind(err))
	require.ErrorContains(t, err, "output of the policy for token 5 of trajectory 00001/0000/001")

	b, in = logprobsBench(t, &oracle{}, "loss.kl={coefficient: 0.1}")
	_, err = do(b, learn.ComputeTokenOutputs{Worker: b.deps}.Execute, in)
	require.Equal(t, api.FailCorrupt, kind(err))
	require.ErrorContains(t, err,
		"find the reference of step 1: run f commits no checkpoint of the policy after step 0")

	b, in = logprobsBench(t, &oracle{fail: policy.ErrOutOfMemory}, "loss.old_log_probs=recompute")
	_, err = do(b, learn.ComputeTokenOutputs{Worker: b.deps}.Execute, in)
	var app *temporal.ApplicationError
	require.True(t, errors.As(err, &app) && !app.NonRetryable(), "what may pass is tried again: %v", err)
	require.ErrorContains(t, err, policy.ErrOutOfMemory.Error())
}
