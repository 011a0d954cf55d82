package recordtest

import (
	"fmt"
	"strconv"

	"github.com/ropewalk/ropewalk/schema"
)

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
