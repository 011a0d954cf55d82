package batch

import (
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// Pieces are the sequences that models read to give the token outputs of trajectories. A piece is a trajectory or, if
// the prompts held only the latest turns, what the policy saw and wrote at one turn.
type Pieces struct {
	trajectories []schema.BatchRow
	pieces       []piece
}

type piece struct {
	row        int // index of the trajectory
	tokens     []int32
	begin, end int // range of the trajectory's tokens that belong to the piece; they are the last of its tokens
}

// CutPieces makes the pieces of trajectories, in order, for a policy with a history.
func CutPieces(trajectories []schema.BatchRow, turns []schema.TurnRow, history rollout.History) *Pieces {
	out := &Pieces{trajectories: trajectories}
	if history == (rollout.History{}) {
		for i, t := range trajectories {
			out.pieces = append(out.pieces, piece{row: i, tokens: t.TokenIDs, end: len(t.TokenIDs)})
		}
		return out
	}
	of := byTrajectory(turns)
	for i, t := range trajectories {
		own, end, past := of[t.TrajectoryID], 0, []rollout.Span{}
		for _, turn := range own {
			w := rollout.WindowAfter(int(own[0].ContextTokens), past, history)
			begin := end
			end += len(turn.TokenIDs)
			past = append(past, rollout.Span{Begin: begin + int(turn.ContextTokens), End: end})
			out.pieces = append(out.pieces, piece{row: i, tokens: w.Tokens(t.TokenIDs, end), begin: begin, end: end})
		}
	}
	return out
}

// Tokens are what a model reads, one list for each piece.
func (p *Pieces) Tokens() [][]int32 {
	out := make([][]int32, len(p.pieces))
	for i, piece := range p.pieces {
		out[i] = piece.tokens
	}
	return out
}

// Join turns a model's outputs for the pieces into outputs for the trajectories, with zeros off the loss mask. An
// output under the mask that is not finite is an error; role is the model's role.
func (p *Pieces) Join(role policy.Role, out policy.TokenOutputs) (policy.TokenOutputs, error) {
	out.LogProbs, out.Entropies, out.Values = p.join(out.LogProbs), p.join(out.Entropies), p.join(out.Values)
	for _, lists := range [][][]float32{out.LogProbs, out.Entropies, out.Values} {
		for i := range lists {
			if err := blank(role, p.trajectories[i], lists[i]); err != nil {
				return policy.TokenOutputs{}, err
			}
		}
	}
	return out, nil
}

// join copies the values of the pieces to the trajectories; it returns nil for nil.
func (p *Pieces) join(lists [][]float32) [][]float32 {
	if lists == nil {
		return nil
	}
	out := make([][]float32, len(p.trajectories))
	for i, t := range p.trajectories {
		out[i] = make([]float32, len(t.TokenIDs))
	}
	for i, piece := range p.pieces {
		copy(out[piece.row][piece.begin:piece.end], lists[i][len(lists[i])-(piece.end-piece.begin):])
	}
	return out
}

// blank zeroes the values off a trajectory's loss mask; the values under the mask must be finite.
func blank(role policy.Role, trajectory schema.BatchRow, values []float32) error {
	for t, m := range trajectory.LossMask {
		if m == 0 {
			values[t] = 0
		} else if v := float64(values[t]); math.IsNaN(v) || math.IsInf(v, 0) {
			return &policy.NonFiniteError{Name: fmt.Sprintf("output of the %s for token %d of trajectory %s", role, t,
				trajectory.TrajectoryID)}
		}
	}
	return nil
}
