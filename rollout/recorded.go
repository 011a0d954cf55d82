package rollout

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/rl/reward"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/tool"
)

// RecordedMove is a move of a conversation from elsewhere, with the recorded answer of its call.
type RecordedMove struct {
	env.Move
	Result string // what the tool answered; "" for a final answer
}

// Recorded renders a conversation from elsewhere as the policy would have met it in a rollout: the same prompt, the
// same budgets, tool texts cut as in a rollout. Nothing is run. An error means that no rollout could have gone so.
func (l *Loop) Recorded(ctx context.Context, task env.Task, moves []RecordedMove, index int) (Demonstration, error) {
	e := l.Start(demonstrationIdentity(index), task)
	e.History = History{} // the episode is cloned as a whole, without summaries
	for i, m := range moves {
		if err := ctx.Err(); err != nil {
			return Demonstration{}, err
		}
		if err := l.recorded(ctx, e, m); err != nil {
			return Demonstration{}, fmt.Errorf("response %d: %w", i, err)
		}
	}
	if e.Finish != FinishAnswered {
		return Demonstration{}, fmt.Errorf("ends as %s, and a demonstration ends with an answer", e.Finish)
	}
	d := Demonstration{Episode: e}
	d.Tokens, d.Mask = e.Sequence()
	return d, nil
}

// recorded appends one move.
func (l *Loop) recorded(ctx context.Context, e *Episode, m RecordedMove) error {
	if !e.AwaitsResponse() {
		return fmt.Errorf("the episode has ended (%s): rollout.max_turns is %d, rollout.max_tokens is %d", e.Finish,
			l.settings.MaxTurns, l.settings.MaxTokens)
	}
	spec := l.protocol.Spec()
	for _, mark := range spec.Marks {
		if strings.Contains(m.Thought+m.Code+m.Arguments+m.Answer, mark) {
			return fmt.Errorf("holds %s, which is a mark of protocol %s", mark, spec.Name)
		}
	}
	response, ok := l.protocol.Write(m.Move)
	if !ok || m.IsCall() && !spec.Tools {
		return fmt.Errorf("protocol %s cannot write it", spec.Name)
	}
	for _, stop := range append(slices.Clone(spec.Stops), spec.EndOfTurn) {
		if strings.Contains(strings.TrimSuffix(response, stop), stop) { // a policy's response ends at the first one
			return fmt.Errorf("holds %s, which ends a response", stop)
		}
	}
	turn := l.scripted(response)
	if n := len(turn.Response); n > l.settings.MaxTurnTokens || e.Tokens()+n > l.settings.MaxTokens {
		return fmt.Errorf("has %d tokens after %d, beyond rollout.max_turn_tokens %d or rollout.max_tokens %d", n,
			e.Tokens(), l.settings.MaxTurnTokens, l.settings.MaxTokens)
	}
	l.absorb(ctx, e, turn)
	parsed := e.Turns[len(e.Turns)-1].Parsed
	calls := 0
	if m.IsCall() {
		calls = 1
	}
	if len(parsed.Calls) != calls || calls == 0 && !parsed.HasAnswer {
		return fmt.Errorf("protocol %s does not find the move again in what it writes", spec.Name)
	}
	if calls == 0 {
		return nil
	}
	if c := parsed.Calls[0]; c.Error != "" {
		return fmt.Errorf("calls %s: %s", c.Name, c.Message)
	}
	if e.Finish != "" {
		return fmt.Errorf("calls a tool in the last of rollout.max_turns %d", l.settings.MaxTurns)
	}
	return l.AbsorbOutcomes([]*Episode{e}, []tool.Outcome{{Result: tool.Result{Status: tool.OK, Stdout: m.Result}}})
}

// FinalAnswer returns a final message's answer, and the text before it: the last box if there is one, else all of it.
// What the message says in <think> is no answer.
func FinalAnswer(text string) (thought, answer string) {
	spoken := protocol.Boxed{}.Spec().Spoken(text)
	if box, found := reward.LastBoxed(spoken); found {
		at := strings.LastIndex(text, `\boxed`)
		return strings.TrimRight(text[:max(at, 0)], " \n"), box
	}
	return "", strings.TrimSpace(spoken)
}

// SequencesOf returns the rows for cloning of a trajectory's turns in their order, as Demonstration.Sequences does.
func SequencesOf(turns []RecordedTurn, whole bool) (tokens, masks [][]int32) {
	if first := slices.IndexFunc(turns, func(t RecordedTurn) bool { return t.Summary }); first > 0 && !whole {
		return summarized(turns, History{Summary: first})
	}
	for _, t := range turns {
		if whole || len(tokens) == 0 {
			tokens, masks = append(tokens, nil), append(masks, nil)
		}
		i := len(tokens) - 1
		tokens[i], masks[i] = slices.Concat(tokens[i], t.Tokens), slices.Concat(masks[i], t.Mask)
	}
	return tokens, masks
}

// summarized returns a row for each turn of a trajectory with summaries: what the policy saw and wrote.
func summarized(turns []RecordedTurn, history History) (tokens, masks [][]int32) {
	var all []int32
	var past []Span
	head := slices.Index(turns[0].Mask, 1)
	for _, t := range turns {
		window := WindowAfter(head, past, history)
		all = append(all, t.Tokens...)
		row := slices.Clone(window.Tokens(all, len(all)))
		mask := make([]int32, len(row))
		copy(mask[len(row)-len(t.Mask):], t.Mask)
		tokens, masks = append(tokens, row), append(masks, mask)
		past = append(past, Span{Begin: len(all) - len(t.Tokens) + slices.Index(t.Mask, 1), End: len(all)})
	}
	return tokens, masks
}

// RecordedTurn is a turn of the record: its context and response, with 1 where the policy wrote. Summary is set where
// the policy wrote a summary.
type RecordedTurn struct {
	Tokens, Mask []int32
	Summary      bool
}
