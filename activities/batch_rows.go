package activities

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/rl/advantage"
	"github.com/ropewalk/ropewalk/rl/method"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// sequence is one kept trajectory: its tokens, turn after turn, with what is known of each.
type sequence struct {
	schema.BatchRow
	entropies []float32 // of the policy before the update; nil where nothing asked for them
	reference []float32 // the reference's log-probabilities; nil likewise
	reward    float64
	masked    bool             // no token of it is in the loss
	written   int              // tokens that the policy wrote, masked or not
	turns     []schema.TurnRow // in order
}

// trainingRow is one row of the batch in the making: a trajectory, or one turn of it.
type trainingRow struct {
	schema.BatchRow
	entropies []float32
	reference []float32
	reward    float64 // of the trajectory
	written   int     // tokens that the policy wrote, masked or not
	name      advantage.Row
	turn      *turnFacts // nil of a whole trajectory
}

// turnFacts are what estimators read of a turn.
type turnFacts struct {
	last     bool
	valid    bool   // a call of it could be read, or it closes an answer
	known    bool   // the record says whether it is valid
	seenHash string // digest of the tokens before the response
	seen     string // their text, the prompt aside: a group has one
}

// keptSequences joins the kept trajectories with their rewards and turns, in canonical order. The
// tokens of a masked one are off its loss mask; its reward counts like any other.
func keptSequences(selection []schema.SelectionRow, rewards []schema.RewardRow, turns []schema.TurnRow) ([]sequence, error) {
	rewardOf := make(map[string]float64, len(rewards))
	for _, r := range rewards {
		rewardOf[r.TrajectoryID] = r.Reward
	}
	tokens, turnsOf := joinTurns(turns), map[string][]schema.TurnRow{}
	for _, t := range turns {
		turnsOf[t.TrajectoryID] = append(turnsOf[t.TrajectoryID], t)
	}
	kept := slices.DeleteFunc(slices.Clone(selection), func(s schema.SelectionRow) bool { return !s.Kept })
	slices.SortFunc(kept, func(x, y schema.SelectionRow) int { return cmp.Compare(x.TrajectoryID, y.TrajectoryID) })
	out := make([]sequence, len(kept))
	for i, s := range kept {
		reward, ok := rewardOf[s.TrajectoryID]
		if !ok {
			return nil, refuse(wire.FailCorrupt, "trajectory %s is selected and has no reward", s.TrajectoryID)
		}
		row, ok := tokens[s.TrajectoryID]
		if !ok {
			return nil, refuse(wire.FailCorrupt, "trajectory %s is selected and has no turns", s.TrajectoryID)
		}
		row.GroupID, row.TrajectoryID, row.Count, row.Weight = s.GroupID, s.TrajectoryID, s.Count, s.Weight
		own := turnsOf[s.TrajectoryID]
		slices.SortFunc(own, func(x, y schema.TurnRow) int { return cmp.Compare(x.Turn, y.Turn) })
		written := tokensUnder(row.LossMask)
		if s.Masked != nil {
			clear(row.LossMask)
		}
		out[i] = sequence{BatchRow: row, reward: reward, masked: s.Masked != nil, written: written, turns: own}
	}
	return out, nil
}

// tokensUnder counts the tokens under a mask.
func tokensUnder(mask []int32) int {
	n := 0
	for _, m := range mask {
		n += int(m)
	}
	return n
}

// joinTurns concatenates each trajectory's turns in order. A trajectory with a turn whose
// log-probabilities are null has none at all.
func joinTurns(turns []schema.TurnRow) map[string]schema.BatchRow {
	ordered := slices.Clone(turns)
	slices.SortStableFunc(ordered, func(x, y schema.TurnRow) int { return cmp.Compare(x.Turn, y.Turn) })
	out := map[string]schema.BatchRow{}
	unknown := map[string]bool{}
	for _, t := range ordered {
		row := out[t.TrajectoryID]
		row.TokenIDs = append(row.TokenIDs, t.TokenIDs...)
		row.LossMask = append(row.LossMask, t.LossMask...)
		if t.LogProbs == nil || unknown[t.TrajectoryID] {
			row.OldLogProbs, unknown[t.TrajectoryID] = nil, true
		} else {
			row.OldLogProbs = append(row.OldLogProbs, t.LogProbs...)
		}
		out[t.TrajectoryID] = row
	}
	return out
}

// layOut makes the rows of a layout: whole trajectories (also of imports, which name none), or turns.
// The rows of turns hold as many earlier turns as the prompts did.
func layOut(kept []sequence, layout string, history int) []trainingRow {
	var rows []trainingRow
	for _, s := range kept {
		if layout == method.Turns {
			rows = append(rows, s.turnRows(history)...)
			continue
		}
		rows = append(rows, trainingRow{
			BatchRow: s.BatchRow, entropies: s.entropies, reference: s.reference, reward: s.reward, written: s.written,
			name: advantage.Row{Group: s.GroupID, Trajectory: s.TrajectoryID},
		})
	}
	return rows
}

// turnRows cuts a trajectory into one row for each turn: what the policy saw and wrote up to the end of the
// turn, with a loss on the turn's own tokens alone.
func (s sequence) turnRows(history int) []trainingRow {
	rows := make([]trainingRow, len(s.turns))
	end, ends := 0, []int{}
	for k, t := range s.turns {
		w := rollout.WindowAfter(int(s.turns[0].ContextTokens), ends, history)
		begin := end
		end += len(t.TokenIDs)
		ends = append(ends, end)
		length := w.Len(end)
		valid, known := t.Valid()
		row := trainingRow{
			BatchRow: s.BatchRow, entropies: own(s.entropies, begin, end, length), reference: own(s.reference, begin, end, length), reward: s.reward, written: tokensUnder(t.LossMask),
			name: advantage.Row{Group: s.GroupID, Trajectory: s.TrajectoryID, Turn: int(t.Turn)},
			turn: &turnFacts{last: k == len(s.turns)-1, valid: valid, known: known, seenHash: t.AnchorHash, seen: s.seen(k, history)},
		}
		row.Turn = new(t.Turn)
		row.TokenIDs, row.LossMask = w.Tokens(s.TokenIDs, end), own(s.LossMask, begin, end, length)
		for _, list := range []*[]float32{&row.OldLogProbs, &row.RolloutLogProbs, &row.ReferenceLogProbs, &row.Values} {
			*list = own(*list, begin, end, length)
		}
		rows[k] = row
	}
	return rows
}

// seen is the text that the policy saw before its response at a turn, the task aside.
func (s sequence) seen(turn, history int) string {
	first := 0
	if history > 0 {
		first = max(0, turn-history)
	}
	text := strings.Builder{}
	for _, t := range s.turns[first:turn] {
		text.WriteString(t.Observation)
		text.WriteString(t.Response)
	}
	text.WriteString(s.turns[turn].Observation)
	return text.String()
}

// own lays a turn's part of a trajectory's list at the end of a row's, with zeros before it; nil of nil.
func own[T int32 | float32](list []T, begin, end, length int) []T {
	if list == nil {
		return nil
	}
	out := make([]T, length)
	copy(out[length-(end-begin):], list[begin:end])
	return out
}

// whole joins the turns of each trajectory of a batch in canonical order, as turnRows has cut them: the own
// tokens of each after those of the one before. Rows that are trajectories stay as they are. (Of a masked
// one with a history the place of the task's end is not known; its tokens are of no use anyway.)
func whole(batch []schema.BatchRow, history int) []schema.BatchRow {
	var out []schema.BatchRow
	head, ends := 0, []int{}
	for _, row := range batch {
		if row.Turn == nil {
			out = append(out, row)
			continue
		}
		row.Turn = nil
		if n := len(out); n > 0 && out[n-1].TrajectoryID == row.TrajectoryID {
			before := out[n-1]
			seen := rollout.WindowAfter(head, ends, history).Len(len(before.TokenIDs))
			row.TokenIDs, row.LossMask = after(before.TokenIDs, row.TokenIDs, seen), after(before.LossMask, row.LossMask, seen)
			for _, list := range [][2]*[]float32{
				{&before.OldLogProbs, &row.OldLogProbs}, {&before.RolloutLogProbs, &row.RolloutLogProbs}, {&before.ReferenceLogProbs, &row.ReferenceLogProbs},
				{&before.Advantages, &row.Advantages}, {&before.Values, &row.Values}, {&before.Returns, &row.Returns},
			} {
				*list[1] = after(*list[0], *list[1], seen)
			}
			out = out[:n-1]
		} else {
			head, ends = max(0, slices.Index(row.LossMask, 1)), ends[:0]
		}
		ends = append(ends, len(row.TokenIDs))
		out = append(out, row)
	}
	return out
}

// after puts what a turn's list holds beyond what its policy saw after the list of earlier turns.
func after[T int32 | float32](earlier, list []T, seen int) []T {
	if list == nil {
		return nil
	}
	return append(slices.Clone(earlier), list[seen:]...)
}
