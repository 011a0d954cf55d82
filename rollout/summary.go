package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/rollout/protocol"
)

// Summaries. After every History.Summary ordinary turns, if the episode continues, the policy is asked for a summary in
// a separate turn. The turn is sampled, recorded and trained as every other one. It calls no tool, steps no
// environment, and does not count towards Settings.MaxTurns. So the number of a turn alone says whether it is a
// summary: every prompt can be cut again from rows that know nothing else.

// IsSummary reports whether the turn with this number, from 0, is a summary.
func (h History) IsSummary(turn int) bool { return h.Summary > 0 && turn%(h.Summary+1) == h.Summary }

// latestSummary returns the number of the latest summary among the first turns, or −1.
func (h History) latestSummary(turns int) int {
	if h.Summary == 0 {
		return -1
	}
	return turns/(h.Summary+1)*(h.Summary+1) - 1
}

// Ordinary counts those of the first turns that are not summaries.
func (h History) Ordinary(turns int) int {
	if h.Summary == 0 {
		return turns
	}
	return turns - turns/(h.Summary+1)
}

// All counts the turns of an episode with the given number of ordinary ones, from 1. An episode does not end with a
// summary that it could still use.
func (h History) All(ordinary int) int {
	if h.Summary == 0 {
		return ordinary
	}
	return ordinary + (ordinary-1)/h.Summary
}

// Summarizing is a protocol whose policies write summaries: the fixed strings around them are tokens too.
type Summarizing struct{ protocol.Protocol }

// Added lists the fixed strings of the protocol, then those around summaries.
func (s Summarizing) Added() []string {
	return distinct(append(s.Protocol.Added(), protocol.Asks(s.Protocol)...))
}

// checkSummary refuses settings with which no summary can be written.
func (s Settings) checkSummary() error {
	h := s.History
	if h.Summary == 0 && s.SummaryTokens == 0 {
		return nil
	}
	switch {
	case h.Summary < 1 || s.SummaryTokens < 1:
		return fmt.Errorf("check rollout settings: a summary after %d turns in %d tokens: both must be at least 1",
			h.Summary, s.SummaryTokens)
	case !s.protocol().Spec().Summaries:
		return fmt.Errorf("check rollout settings: protocol %s cannot ask for a summary", s.protocol().Spec().Name)
	case h.Turns > 0 || h.Tokens > 0:
		return errors.New("check rollout settings: a prompt with a summary holds all turns after it, and a history " +
			"of turns or tokens limits them")
	}
	return nil
}

// hasAllTurns reports whether the episode has had all its ordinary turns.
func (s Settings) hasAllTurns(e *Episode) bool { return e.History.Ordinary(len(e.Turns)) >= s.MaxTurns }

// IsSummary reports whether a turn of the episode is a summary.
func (e *Episode) IsSummary(turn int) bool { return e.History.IsSummary(turn) }

// limit is the most tokens of the next response.
func (s Settings) limit(e *Episode) int {
	if e.IsSummary(len(e.Turns)) {
		return s.SummaryTokens
	}
	return s.MaxTurnTokens
}

// absorbSummary appends a summary. It is text and nothing else: calls, actions and answers in it do not count. One that
// was cut at its limit, or that is empty, is what the next prompts hold.
func (l *Loop) absorbSummary(ctx context.Context, e *Episode, t Turn) {
	e.Turns = append(e.Turns, t)
	e.Context, e.Observation = nil, ""
	// Where the context has ended, the stage ends, and nothing broke.
	if err := l.setContextAfterSummary(ctx, e); err != nil && ctx.Err() == nil {
		e.exclude(Reason("environment", err.Error()))
	}
}

// setContextAfterSummary sets the context of the turn after a summary.
func (l *Loop) setContextAfterSummary(ctx context.Context, e *Episode) error {
	text := ""
	if l.settings.Environment != nil {
		var err error
		if text, err = l.render(ctx, e); err != nil {
			return err
		}
	} else {
		v := protocol.View{Task: e.Task.Text, Tools: l.prompted, Turn: len(e.Turns), Rounds: e.rounds()}
		text = protocol.AfterSummary(l.protocol, v)
	}
	l.setContext(e, text)
	return nil
}

// setContext sets the text of the next context.
func (l *Loop) setContext(e *Episode, text string) {
	e.Observation = text
	e.Context = l.tok.Encode(text)
	l.stopIfFull(e)
}

// summary returns the text of the latest summary without the end of its turn, or "".
func (e *Episode) summary() string {
	s := e.History.latestSummary(len(e.Turns))
	if s < 0 {
		return ""
	}
	return strings.TrimSuffix(e.Turns[s].Text, e.spec().EndOfTurn)
}

// scriptedSummary returns the summary that a script writes: as many of its latest actions, or of the latest results of
// calls, as fit.
func (l *Loop) scriptedSummary(e *Episode) Turn {
	end := e.spec().EndOfTurn
	turn := l.scripted(end)
	var told []string
	for k := len(e.Turns) - 1; k >= 0; k-- {
		told = slices.Concat(e.Turns[k].events(), told)
		longer := l.scripted(strings.Join(told, "\n") + end)
		if len(longer.Response) > l.settings.SummaryTokens {
			break
		}
		turn = longer
	}
	return turn
}

// events lists what happened in a turn: its action, or the results of its calls.
func (t *Turn) events() []string {
	if t.Transition != nil {
		return []string{t.Transition.Action}
	}
	var out []string
	for _, r := range t.Results {
		if text := strings.TrimSpace(cmp.Or(r.Stdout, r.Value, r.Status)); text != "" {
			out = append(out, text)
		}
	}
	return out
}

// firstTurnSinceSummary returns the number of the first turn after the latest summary.
func (e *Episode) firstTurnSinceSummary() int { return e.History.latestSummary(len(e.Turns)) + 1 }
