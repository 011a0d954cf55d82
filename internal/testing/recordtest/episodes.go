package recordtest

import (
	"context"
	"fmt"
	"strconv"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/schema"
)

// addEpisodes adds the episodes of an evaluation to its manifest: one turn without calls for each row.
func (r *Run) addEpisodes(m *schema.Manifest, step int, rows []schema.EvaluationRow) {
	var prompts []schema.EvaluationPromptRow
	var turns []schema.EvaluationTurnRow
	var trajectories []schema.EvaluationTrajectoryRow
	groups := map[string]int{}
	for i := range rows {
		row := &rows[i]
		g, known := groups[row.ProblemID]
		if !known {
			g = len(groups)
			groups[row.ProblemID] = g
			prompts = append(prompts, schema.EvaluationPromptRow{GroupID: schema.GroupID(max(step, 0), g),
				ProblemID: row.ProblemID, Level: row.Level, Problem: fmt.Sprintf("problem %d", g), Answer: row.Gold,
				TokenIDs: []int32{1, 2, 3, 4, 5, 6, 7, 8}})
		}
		group, id := schema.GroupID(max(step, 0), g), schema.TrajectoryID(max(step, 0), g, int(row.Sample))
		row.TrajectoryID, row.ResponseTokens = &id, new(int32(4))
		turns = append(turns, schema.EvaluationTurnRow{GroupID: group, TrajectoryID: id, ContextTokens: 8,
			TokenIDs: []int32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
			LossMask: []int32{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1},
			LogProbs: []float32{0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1}, Entropies: make([]float32, 12),
			Response: "<answer>4</answer>", Finish: "stop", Answered: true, AnchorHash: "0011223344556677",
			PolicyVersion: row.PolicyVersion, ParsedCalls: new(int32), Wrapped: new(true)})
		trajectories = append(trajectories, schema.EvaluationTrajectoryRow{GroupID: group, TrajectoryID: id,
			ProblemID: row.ProblemID, Level: row.Level, Source: "rollout", Turns: 1, AnswerTags: 1, Tokens: row.Tokens,
			ResponseTokens: 4, Finish: "answered", Gold: row.Gold, PolicyVersion: row.PolicyVersion})
	}
	addShard(r, m, prompts)
	addShard(r, m, turns)
	addShard(r, m, []schema.EvaluationCallRow{})
	addShard(r, m, trajectories)
}

// addShard puts a shard and adds it to a manifest that is not committed yet.
func addShard[R schema.Row](r *Run, m *schema.Manifest, rows []R) {
	schema.Sort(rows)
	info, err := commit.PutRows(context.Background(), r.writer, m.Place, rows)
	require.NoError(r.t, err)
	m.Shards = append(m.Shards, info)
}

// resampled starts the manifest of the resample stage.
func (r *Run) resampled(step int, prompts, reward schema.Ref) schema.Manifest {
	inputs := []schema.Ref{reward}
	if step == r.Skipped {
		inputs = append(inputs, prompts)
	}
	m := r.manifest(schema.At(r.Run, step, schema.StageResample), inputs...)
	excluded := 0
	for _, s := range r.selectionRows(step) {
		if s.Excluded != nil {
			excluded++
		}
	}
	if excluded > 0 {
		m.Stats = map[string]float64{schema.StatExcluded: float64(excluded)}
	}
	if step == r.Skipped {
		m.Note = map[string]string{
			schema.NoteExcludedShards: `[{"shard":1,"stage":"sandbox","reason":"no usable python interpreter"}]`}
	}
	return m
}

// broken adds the rows of a sample that the engine broke on in its first turn.
func (out *rows) broken(group, id, policy, why string, step, g int) {
	out.turns[0] = append(out.turns[0], schema.TurnRow{
		GroupID: group, TrajectoryID: id, ContextTokens: 3, TokenIDs: []int32{1, 2, 3}, LossMask: []int32{0, 0, 0},
		LogProbs: []float32{0, 0, 0}, Entropies: []float32{0, 0, 0}, AnchorHash: "a", PolicyVersion: policy,
		Excluded: &why,
	})
	out.trajectories = append(out.trajectories, schema.TrajectoryRow{
		GroupID: group, TrajectoryID: id, ProblemID: fmt.Sprintf("p%d-%d", step, g), Level: int32(2 + g),
		Source: "rollout", Turns: 1,
		Tokens: 3, Finish: "excluded", Gold: strconv.Itoa(step + g), PolicyVersion: policy, Excluded: &why,
	})
	out.unscored = append(out.unscored, schema.SelectionRow{GroupID: group, TrajectoryID: id,
		Reason: schema.ReasonExcluded, Excluded: &why})
}
