package batch

import (
	"strings"

	"github.com/ropewalk/ropewalk/rl/advantage"
	"github.com/ropewalk/ropewalk/rl/method"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// trainingRow is one row of the batch before it is committed: a trajectory, or one turn of it.
type trainingRow struct {
	schema.BatchRow
	entropies []float32
	reference []float32
	reward    float64 // of the trajectory
	written   int     // tokens that the policy wrote, masked or not
	name      advantage.Row
	turn      *turnFacts // nil for a whole trajectory
	origins   []origin   // of the last tokens; nil if no tokens are shared
	unshared  bool       // LossMask is the row's own copy
}

// turnFacts are the facts of a turn that estimators read.
type turnFacts struct {
	last     bool
	valid    bool   // one of its calls could be parsed, or it completes an answer
	known    bool   // the record says whether the turn is valid
	seenHash string // digest of the tokens before the response
	seen     string // the text of these tokens without the prompt, which is the same for the whole group
	// In an interactive environment: the state before the turn, and the reward for the turn. Unset elsewhere.
	situation string
	paid      *float64
	summary   bool // the policy was asked for a summary: the turn has no state, and nothing can be invalid in it
}

// layOut makes the rows of a layout: turns, or whole trajectories (also for imports, which name no layout). The rows
// of turns hold as many earlier turns as the prompts did.
func layOut(kept []Sequence, layout string, history rollout.History) []trainingRow {
	var rows []trainingRow
	for _, s := range kept {
		if layout == method.Turns {
			rows = append(rows, s.turnRows(history)...)
			continue
		}
		rows = append(rows, trainingRow{
			BatchRow: s.BatchRow, entropies: s.entropies, reference: s.reference, reward: s.reward, written: s.written,
			name: advantage.Row{Group: s.GroupID, Trajectory: s.TrajectoryID}, origins: s.origins(),
		})
	}
	return rows
}

// turnRows cuts a trajectory into one row for each turn: what the policy saw and wrote up to the end of the turn.
// Only the turn's own tokens are in the loss.
func (s Sequence) turnRows(history rollout.History) []trainingRow {
	rows := make([]trainingRow, len(s.turns))
	end, past, shown, origins := 0, []rollout.Span{}, "", s.origins()
	for k, t := range s.turns {
		head := int(s.turns[0].ContextTokens)
		w, left := rollout.WindowAfter(head, past, history), history.LeftOut(head, past)
		begin := end
		end += len(t.TokenIDs)
		past = append(past, rollout.Span{Begin: begin + int(t.ContextTokens), End: end})
		length := w.Len(end)
		valid, known := t.Valid()
		row := trainingRow{
			BatchRow: s.BatchRow, entropies: own(s.entropies, begin, end, length),
			reference: own(s.reference, begin, end, length), reward: s.reward, written: tokensUnder(t.LossMask),
			name: advantage.Row{Group: s.GroupID, Trajectory: s.TrajectoryID, Turn: int(t.Turn)},
			turn: &turnFacts{last: k == len(s.turns)-1, valid: valid, known: known, seenHash: t.AnchorHash,
				seen: s.seen(left, k)},
		}
		if step, ok := s.steps[t.Turn]; ok {
			f := row.turn
			f.valid, f.known, f.seenHash, f.situation, f.paid = step.Valid, true, step.SeenHash, step.Situation,
				&step.Reward
			f.seen, shown = shown, step.Observation // "" for the first turn, where the group shares the observation
		}
		if t.IsSummary() {
			row.turn = &turnFacts{last: row.turn.last, valid: true, known: true, summary: true}
		}
		if origins != nil {
			row.origins = origins[begin:end]
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

// seen is the text that the policy saw before its response at a turn, without the task. Its prompt began at the first
// turn.
func (s Sequence) seen(first, turn int) string {
	text := strings.Builder{}
	for k, t := range s.turns[first:turn] {
		if k > 0 || !t.IsSummary() { // a summary that a prompt begins with answers the task
			text.WriteString(t.Observation)
		}
		text.WriteString(t.Response)
	}
	text.WriteString(s.turns[turn].Observation)
	return text.String()
}

// own copies a turn's part of a trajectory's list to the end of a row's list and fills the rest with zeros. It
// returns nil for nil.
func own[T int32 | float32](list []T, begin, end, length int) []T {
	if list == nil {
		return nil
	}
	out := make([]T, length)
	copy(out[length-(end-begin):], list[begin:end])
	return out
}
