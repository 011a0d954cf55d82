package rollout

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/schema"
)

// SourceRollout is the source of trajectories that a policy wrote here.
const SourceRollout = "rollout"

// ErrRows says that rows do not fit together: some are missing, doubled, or not what this loop
// makes of the others.
var ErrRows = errors.New("rows do not rebuild an episode")

// PromptRow is the row of one prompt, its first prefix included.
func (l *Loop) PromptRow(step, group int, p env.Problem) schema.PromptRow {
	return schema.PromptRow{
		GroupID: schema.GroupID(step, group), ProblemID: p.ID, Level: int32(p.Level),
		Problem: p.Text, Answer: p.Answer, Expression: p.Expression,
		TokenIDs: l.tok.Encode(protocol.Prompt(p.Text)),
	}
}

// Problem is the problem of a prompt's row.
func Problem(row schema.PromptRow) env.Problem {
	return env.Problem{
		ID: row.ProblemID, Level: int(row.Level), Text: row.Problem,
		Answer: row.Answer, Expression: row.Expression,
	}
}

// Episodes rebuilds the episodes of prompts, samples of each, from the rows committed so far: the
// turns of every generation and the calls of every execution. No rows at all give new episodes.
func (l *Loop) Episodes(prompts []schema.PromptRow, samples int, turns []schema.TurnRow, calls []schema.ToolCallRow) ([]*Episode, error) {
	episodes := make([]*Episode, 0, len(prompts)*samples)
	byID := make(map[string]*Episode, cap(episodes))
	for _, p := range prompts {
		step, group, err := schema.ParseGroupID(p.GroupID)
		if err != nil {
			return nil, err
		}
		for s := range samples {
			id := Identity{Label: LabelSample, Step: step, Group: group, Sample: s}
			e := l.start(id, Problem(p), slices.Clone(p.TokenIDs))
			if byID[e.TrajectoryID] != nil {
				return nil, fmt.Errorf("rebuild %s: two prompts of one group: %w", e.TrajectoryID, ErrRows)
			}
			byID[e.TrajectoryID] = e
			episodes = append(episodes, e)
		}
	}
	return episodes, l.replay(byID, turns, calls)
}

// replay applies rows in the order in which they came to be.
func (l *Loop) replay(byID map[string]*Episode, turns []schema.TurnRow, calls []schema.ToolCallRow) error {
	turns = slices.Clone(turns)
	sort.SliceStable(turns, func(i, j int) bool { return turns[i].Turn < turns[j].Turn })
	results, err := groupCalls(calls)
	if err != nil {
		return err
	}
	for _, row := range turns {
		e := byID[row.TrajectoryID]
		if e == nil {
			return fmt.Errorf("rebuild %s: turn %d without a prompt: %w", row.TrajectoryID, row.Turn, ErrRows)
		}
		if err := l.replayTurn(e, row); err != nil {
			return fmt.Errorf("rebuild %s at turn %d: %w", row.TrajectoryID, row.Turn, err)
		}
		key := callKey{row.TrajectoryID, row.Turn}
		if err := l.replayCalls(e, results[key]); err != nil {
			return fmt.Errorf("rebuild %s at turn %d: %w", row.TrajectoryID, row.Turn, err)
		}
		delete(results, key)
	}
	if len(results) > 0 {
		return fmt.Errorf("rebuild: %d tool results without their turn: %w", len(results), ErrRows)
	}
	return nil
}

type callKey struct {
	trajectory string
	turn       int32
}

// groupCalls collects the verdicts of each turn and checks that none is missing.
func groupCalls(calls []schema.ToolCallRow) (map[callKey][]CallResult, error) {
	calls = slices.Clone(calls)
	sort.SliceStable(calls, func(i, j int) bool { return calls[i].Call < calls[j].Call })
	results := make(map[callKey][]CallResult)
	for _, c := range calls {
		key := callKey{c.TrajectoryID, c.Turn}
		if int(c.Call) != len(results[key]) {
			return nil, fmt.Errorf("rebuild %s: call %d of turn %d is missing or doubled: %w", c.TrajectoryID, c.Call, c.Turn, ErrRows)
		}
		results[key] = append(results[key], CallResult{
			Status: c.Status, ExitCode: c.ExitCode, Stdout: c.Stdout, Stderr: c.Stderr, Value: c.Value, Body: c.Response,
			Excluded: given(c.Excluded),
		})
	}
	return results, nil
}

func (l *Loop) replayTurn(e *Episode, row schema.TurnRow) error {
	n := int(row.ContextTokens)
	switch {
	case !e.AwaitsResponse() || int(row.Turn) != len(e.Turns):
		return fmt.Errorf("no response was awaited: %w", ErrRows)
	case row.Excluded != nil && slices.Equal(row.TokenIDs, e.Context):
		e.excludeTurn(*row.Excluded, row.PolicyVersion)
		return nil
	case n < 0 || n >= len(row.TokenIDs) || !slices.Equal(row.TokenIDs[:n], e.Context):
		return fmt.Errorf("its context is another: %w", ErrRows)
	case len(row.LogProbs) != len(row.TokenIDs) || len(row.Entropies) != len(row.TokenIDs):
		return fmt.Errorf("log-probabilities or entropies are missing: %w", ErrRows)
	}
	if err := l.tok.Check(row.TokenIDs); err != nil {
		return err
	}
	l.absorb(e, Turn{
		Response: slices.Clone(row.TokenIDs[n:]), LogProbs: slices.Clone(row.LogProbs[n:]),
		Entropies: slices.Clone(row.Entropies[n:]), Finish: policy.Finish(row.Finish),
		PolicyVersion: row.PolicyVersion,
	})
	return nil
}

// replayCalls absorbs committed verdicts; none means that the execution has not happened yet.
func (l *Loop) replayCalls(e *Episode, verdicts []CallResult) error {
	if len(verdicts) == 0 {
		return nil
	}
	if !e.AwaitsResults() || len(verdicts) != len(e.Turns[len(e.Turns)-1].Parsed.Calls) {
		return fmt.Errorf("%d results for a response that made other calls: %w", len(verdicts), ErrRows)
	}
	l.absorbResults(e, verdicts)
	return nil
}

// TurnRows returns the rows of one turn, of the episodes that have it, in the order of episodes.
func TurnRows(episodes []*Episode, turn int) []schema.TurnRow {
	var rows []schema.TurnRow
	for _, e := range episodes {
		if turn < len(e.Turns) {
			rows = append(rows, e.turnRow(turn))
		}
	}
	return rows
}

func (e *Episode) turnRow(turn int) schema.TurnRow {
	t := &e.Turns[turn]
	n := len(t.Context)
	row := schema.TurnRow{
		GroupID: e.GroupID, TrajectoryID: e.TrajectoryID, Turn: int32(turn), ContextTokens: int32(n),
		TokenIDs: slices.Concat(t.Context, t.Response), LossMask: t.mask(),
		LogProbs:    append(make([]float32, n, n+len(t.LogProbs)), t.LogProbs...),
		Entropies:   append(make([]float32, n, n+len(t.Entropies)), t.Entropies...),
		Observation: t.Observation, Response: t.Text, Finish: string(t.Finish),
		ToolCalls: int32(len(t.Parsed.Calls)), Answered: t.Parsed.AnswerTags > 0,
		AnchorHash: e.anchorHash(turn), PolicyVersion: t.PolicyVersion, Excluded: nullable(t.Excluded),
	}
	if t.Excluded == "" {
		row.ParsedCalls, row.Wrapped = new(int32(t.parsedCalls())), new(protocol.Wrapped(t.Text))
	}
	return row
}

// anchorHash is the digest of what the policy saw before a turn: 16 hexadecimal digits.
func (e *Episode) anchorHash(turn int) string {
	h := sha256.New()
	for _, id := range e.seen(turn, e.Turns[turn].Context) {
		h.Write(binary.LittleEndian.AppendUint32(nil, uint32(id)))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// ToolCallRows returns the rows of one turn's calls that have verdicts, in the order of episodes
// and calls.
func ToolCallRows(episodes []*Episode, turn int) []schema.ToolCallRow {
	var rows []schema.ToolCallRow
	for _, e := range episodes {
		if turn >= len(e.Turns) {
			continue
		}
		for i, r := range e.Turns[turn].Results {
			c := e.Turns[turn].Parsed.Calls[i]
			rows = append(rows, schema.ToolCallRow{
				GroupID: e.GroupID, TrajectoryID: e.TrajectoryID, Turn: int32(turn), Call: int32(i),
				Name: c.Name, Arguments: c.Arguments, Code: c.Code, Stdin: c.Stdin,
				Status: r.Status, ExitCode: r.ExitCode, Stdout: r.Stdout, Stderr: r.Stderr,
				Value: r.Value, Response: r.Body, Excluded: nullable(r.Excluded),
			})
		}
	}
	return rows
}

// TrajectoryRow is the row of a finished episode. Of an excluded one it counts what there is.
func TrajectoryRow(e *Episode) schema.TrajectoryRow {
	counts := e.Counts()
	answer, has := e.Answer()
	row := schema.TrajectoryRow{
		GroupID: e.GroupID, TrajectoryID: e.TrajectoryID, ProblemID: e.Problem.ID, Level: int32(e.Problem.Level),
		Source: SourceRollout, Turns: int32(len(e.Turns)), ToolCalls: int32(counts.ToolCalls),
		ToolErrors: int32(counts.ToolErrors), AnswerTags: int32(counts.AnswerTags),
		Tokens: int32(e.Tokens()), ResponseTokens: int32(counts.ResponseTokens), Finish: string(e.Finish),
		FinalAnswer: answer, HasAnswer: has, Gold: e.Problem.Answer, Text: e.Text(),
		Excluded: nullable(e.Excluded),
	}
	if len(e.Turns) > 0 {
		row.PolicyVersion = e.Turns[len(e.Turns)-1].PolicyVersion
	}
	if e.Excluded == "" {
		e.facts(&row)
	}
	return row
}

// facts fills in what rewards and filters read of the turns.
func (e *Episode) facts(row *schema.TrajectoryRow) {
	row.BegunCalls, row.ParsedCalls = new(int32), new(int32)
	row.ToolTurns, row.MalformedTurns, row.VoidTurns = new(int32), new(int32), new(int32)
	for i := range e.Turns {
		t := &e.Turns[i]
		parsed := t.parsedCalls()
		*row.BegunCalls += int32(len(t.Parsed.Calls))
		*row.ParsedCalls += int32(parsed)
		if parsed > 0 {
			*row.ToolTurns++
		} else if t.Parsed.AnswerTags == 0 {
			*row.VoidTurns++
		}
		if !protocol.Wrapped(t.Text) {
			*row.MalformedTurns++
		}
	}
}
