package activities

import (
	"cmp"
	"slices"

	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// piece is a sequence that the models are asked about: a kept trajectory, or, where its prompts held the
// latest turns alone, what the policy saw and wrote at one turn.
type piece struct {
	row        int // the trajectory's among those of the shard
	tokens     []int32
	begin, end int // what is the piece's own of the trajectory's tokens; the last of its tokens
}

// cut makes the pieces of the kept trajectories, in their order.
func (f *forward) cut(turns []schema.TurnRow) {
	history := f.recipe.Rollout.History
	if history == 0 {
		for i, t := range f.kept {
			f.pieces = append(f.pieces, piece{row: i, tokens: t.TokenIDs, end: len(t.TokenIDs)})
		}
		return
	}
	of := map[string][]schema.TurnRow{}
	for _, t := range turns {
		of[t.TrajectoryID] = append(of[t.TrajectoryID], t)
	}
	for i, t := range f.kept {
		own, end, ends := of[t.TrajectoryID], 0, []int{}
		slices.SortFunc(own, func(x, y schema.TurnRow) int { return cmp.Compare(x.Turn, y.Turn) })
		for _, turn := range own {
			w := rollout.WindowAfter(int(own[0].ContextTokens), ends, history)
			begin := end
			end += len(turn.TokenIDs)
			ends = append(ends, end)
			f.pieces = append(f.pieces, piece{row: i, tokens: w.Tokens(t.TokenIDs, end), begin: begin, end: end})
		}
	}
}

// join lays what a model said of the pieces onto the trajectories; nil of nil.
func (f *forward) join(lists [][]float32) [][]float32 {
	if lists == nil {
		return nil
	}
	out := make([][]float32, len(f.kept))
	for i, t := range f.kept {
		out[i] = make([]float32, len(t.TokenIDs))
	}
	for i, p := range f.pieces {
		copy(out[p.row][p.begin:p.end], lists[i][len(lists[i])-(p.end-p.begin):])
	}
	return out
}
