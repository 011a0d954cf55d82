package rollout

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/schema"
)

// SourceRollout is the source of trajectories that a policy of this run wrote.
const SourceRollout = "rollout"

// ErrRows says that rows do not fit together: rows are missing or duplicate, or differ from the rows that this loop
// would make.
var ErrRows = errors.New("rows do not rebuild an episode")

// PromptRow returns the row of one prompt, including its first prefix.
func (l *Loop) PromptRow(ctx context.Context, step, group int, task env.Task) (schema.PromptRow, error) {
	task, _, _, prompt, err := l.open(ctx, task)
	return schema.PromptRow{
		GroupID: schema.GroupID(step, group), ProblemID: task.ID, Level: int32(task.Level),
		Problem: task.Text, Answer: task.Answer, Expression: task.Spec, TokenIDs: prompt, Part: nullable(task.Part),
	}, err
}

// Task returns the task that a prompt's row holds.
func Task(row schema.PromptRow) env.Task {
	return env.Task{
		ID: row.ProblemID, Level: int(row.Level), Text: row.Problem,
		Answer: row.Answer, Spec: row.Expression, Part: textOrEmpty(row.Part),
	}
}

// Rows holds the rows that shards have committed for their episodes: the turns of every generation, the calls of every
// execution and the transitions of every step.
type Rows struct {
	Turns       []schema.TurnRow
	Branches    []schema.BranchRow // of trees: one for each turn
	Calls       []schema.ToolCallRow
	Transitions []schema.TransitionRow
}

// Episodes rebuilds the episodes of the prompts, with the given number of samples for each prompt, from the committed
// rows. Without rows, the episodes are new. With a tree, a prompt begins with one episode; the tree starts the others.
func (l *Loop) Episodes(ctx context.Context, prompts []schema.PromptRow, samples int, rows Rows) ([]*Episode, error) {
	episodes := make([]*Episode, 0, len(prompts)*samples)
	byID := make(map[string]*Episode, cap(episodes))
	if l.trees != nil {
		samples = 1
	}
	for _, p := range prompts {
		step, group, err := schema.ParseGroupID(p.GroupID)
		if err != nil {
			return nil, err
		}
		for s := range samples {
			id := Identity{Label: LabelSample, Step: step, Group: group, Sample: s}
			e := l.start(id, Task(p), slices.Clone(p.TokenIDs))
			if byID[e.TrajectoryID] != nil {
				return nil, fmt.Errorf("rebuild %s: two prompts of one group: %w", e.TrajectoryID, ErrRows)
			}
			if l.trees != nil {
				l.trees.root(e, p.TokenIDs)
			}
			byID[e.TrajectoryID] = e
			episodes = append(episodes, e)
		}
	}
	return l.Advance(ctx, episodes, rows)
}

// Advance applies rows that were committed after the present state of the episodes, in the order of their creation. It
// returns the episodes, with those that the rows of a tree have started. After an error, the episodes are in a state
// that was never committed.
func (l *Loop) Advance(ctx context.Context, episodes []*Episode, rows Rows) ([]*Episode, error) {
	all := &advancing{loop: l, episodes: episodes, forks: forks(rows.Branches)}
	err := all.apply(ctx, rows)
	return inOrder(all.episodes), err
}

// advancing is one call of Advance.
type advancing struct {
	loop     *Loop
	episodes []*Episode
	byID     map[string]*Episode
	forks    map[callKey]*schema.BranchRow
	// The results of turns that are not absorbed yet.
	results map[callKey][]CallResult
	steps   map[callKey]*Transition
}

func (a *advancing) apply(ctx context.Context, rows Rows) (err error) {
	turns := slices.Clone(rows.Turns)
	sort.SliceStable(turns, func(i, j int) bool { return turns[i].Turn < turns[j].Turn })
	if a.results, err = groupCalls(rows.Calls); err != nil {
		return err
	}
	if a.steps, err = groupTransitions(rows.Transitions); err != nil {
		return err
	}
	a.byID = make(map[string]*Episode, len(a.episodes))
	for _, e := range a.episodes {
		a.byID[e.TrajectoryID] = e
		key := callKey{e.TrajectoryID, int32(len(e.Turns) - 1)} // the turn that the episode already has
		if err := a.replayResults(ctx, e, key); err != nil {
			return fmt.Errorf("rebuild %s at turn %d: %w", e.TrajectoryID, key.turn, err)
		}
	}
	for _, row := range turns {
		key := callKey{row.TrajectoryID, row.Turn}
		e, err := a.episode(key)
		if err == nil {
			err = a.loop.replayTurn(ctx, e, row)
		}
		if err == nil {
			e.restored(a.forks[key])
			err = a.replayResults(ctx, e, key)
		}
		if err != nil {
			return fmt.Errorf("rebuild %s at turn %d: %w", row.TrajectoryID, row.Turn, err)
		}
	}
	if len(a.results) > 0 {
		return fmt.Errorf("rebuild: %d tool results without their turn: %w", len(a.results), ErrRows)
	}
	if len(a.steps) > 0 {
		return fmt.Errorf("rebuild: %d transitions without their turn: %w", len(a.steps), ErrRows)
	}
	return nil
}

// replayResults absorbs the committed results of a turn: those of its calls, or of its action.
func (a *advancing) replayResults(ctx context.Context, e *Episode, key callKey) error {
	if err := a.loop.replayCalls(e, a.results[key]); err != nil {
		return err
	}
	delete(a.results, key)
	return a.loop.replayTransition(ctx, e, a.steps, key)
}

// episode returns the episode of a committed turn. A tree's may begin with the turn.
func (a *advancing) episode(key callKey) (*Episode, error) {
	if e := a.byID[key.trajectory]; e != nil {
		return e, nil
	}
	of := a.forks[key]
	if of == nil || a.loop.trees == nil {
		return nil, fmt.Errorf("there is no prompt: %w", ErrRows)
	}
	e, err := a.loop.trees.startCommitted(of, a.byID)
	if err == nil {
		a.byID[key.trajectory], a.episodes = e, append(a.episodes, e)
	}
	return e, err
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
			return nil, fmt.Errorf("rebuild %s: call %d of turn %d is missing or doubled: %w", c.TrajectoryID, c.Call,
				c.Turn, ErrRows)
		}
		results[key] = append(results[key], CallResult{
			Status: c.Status, ExitCode: c.ExitCode, Stdout: c.Stdout, Stderr: c.Stderr, Value: c.Value,
			Body:     c.Response,
			Excluded: textOrEmpty(c.Excluded),
		})
	}
	return results, nil
}

func (l *Loop) replayTurn(ctx context.Context, e *Episode, row schema.TurnRow) error {
	n := int(row.ContextTokens)
	switch {
	case !e.AwaitsResponse() || int(row.Turn) != len(e.Turns):
		return fmt.Errorf("no response was awaited: %w", ErrRows)
	case row.Excluded != nil && slices.Equal(row.TokenIDs, e.Context):
		e.excludeTurn(*row.Excluded, row.PolicyVersion)
		return nil
	case n < 0 || n >= len(row.TokenIDs) || !slices.Equal(row.TokenIDs[:n], e.Context):
		return fmt.Errorf("its context is another: %w", ErrRows)
	case !coversTokens(row.LogProbs, row) || !coversTokens(row.Entropies, row) ||
		row.LogProbs == nil && row.Entropies != nil:
		return fmt.Errorf("log-probabilities or entropies are missing: %w", ErrRows)
	}
	if err := l.tok.Check(row.TokenIDs); err != nil {
		return err
	}
	l.absorb(ctx, e, Turn{
		Response: slices.Clone(row.TokenIDs[n:]), LogProbs: withoutContext(n, row.LogProbs),
		Entropies: withoutContext(n, row.Entropies), Finish: policy.Finish(row.Finish),
		PolicyVersion: row.PolicyVersion,
	})
	return nil
}

// coversTokens reports whether a row's list has a value for each token, or is not there: samplers may give none.
func coversTokens(values []float32, row schema.TurnRow) bool {
	return values == nil || len(values) == len(row.TokenIDs)
}

// withContext returns a response's values after a zero for each of n tokens of context; nil if the sampler gave none.
func withContext(n int, values []float32) []float32 {
	if values == nil {
		return nil
	}
	return append(make([]float32, n, n+len(values)), values...)
}

// withoutContext is the inverse of withContext.
func withoutContext(n int, values []float32) []float32 {
	if values == nil {
		return nil
	}
	return slices.Clone(values[n:])
}

// replayCalls absorbs committed verdicts. An empty list means that the calls have not run yet.
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

// TurnRows returns the rows of one turn for the episodes that have it, in the order of the episodes.
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
		LogProbs:    withContext(n, t.LogProbs),
		Entropies:   withContext(n, t.Entropies),
		Observation: t.Observation, Response: t.Text, Finish: string(t.Finish),
		Answered:   t.Parsed.AnswerTags > 0,
		AnchorHash: e.anchorHash(turn), PolicyVersion: t.PolicyVersion, Excluded: nullable(t.Excluded),
	}
	if e.IsSummary(turn) {
		row.Summary = new(true)
	}
	if m := t.Parsed.Message; m != nil {
		row.Content, row.Reasoning = &m.Content, m.Reasoning
	}
	if t.Excluded == "" {
		calls, parsed := e.countCalls(turn)
		row.ToolCalls, row.ParsedCalls, row.Wrapped = int32(calls), new(int32(parsed)), new(t.Parsed.WellFormed)
	}
	return row
}

// anchorHash is the digest, in 16 hexadecimal digits, of the tokens that the policy saw before a turn.
func (e *Episode) anchorHash(turn int) string { return anchorOf(e.seen(turn, e.Turns[turn].Context)) }

func anchorOf(prefix []int32) string {
	h := sha256.New()
	for _, id := range prefix {
		h.Write(binary.LittleEndian.AppendUint32(nil, uint32(id)))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// ToolCallRows returns the rows of one turn's calls that have verdicts, in the order of the episodes and calls.
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

// TrajectoryRow returns the row of a finished episode. For an excluded episode, it counts the turns that exist.
// Summaries count in no column but the tokens.
func TrajectoryRow(e *Episode) schema.TrajectoryRow {
	counts := e.Counts()
	answer, has := e.Answer()
	row := schema.TrajectoryRow{
		GroupID: e.GroupID, TrajectoryID: e.TrajectoryID, ProblemID: e.Task.ID, Level: int32(e.Task.Level),
		Source: SourceRollout, Turns: int32(e.History.Ordinary(len(e.Turns))), ToolCalls: int32(counts.ToolCalls),
		ToolErrors: int32(counts.ToolErrors), AnswerTags: int32(counts.AnswerTags),
		Tokens: int32(e.Tokens()), ResponseTokens: int32(counts.ResponseTokens), Finish: string(e.Finish),
		FinalAnswer: answer, HasAnswer: has, Gold: e.Task.Answer, Text: e.Text(),
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

// facts sets the columns that rewards and filters read, from the turns.
func (e *Episode) facts(row *schema.TrajectoryRow) {
	row.BegunCalls, row.ParsedCalls = new(int32), new(int32)
	row.ToolTurns, row.MalformedTurns, row.VoidTurns = new(int32), new(int32), new(int32)
	row.OpenCalls = new(int32)
	for i := range e.Turns {
		if e.IsSummary(i) {
			continue
		}
		t := &e.Turns[i]
		calls, parsed := e.countCalls(i)
		*row.BegunCalls += int32(calls)
		*row.ParsedCalls += int32(parsed)
		*row.OpenCalls += int32(t.Parsed.OpenCalls)
		if parsed > 0 {
			*row.ToolTurns++
		} else if t.Parsed.AnswerTags == 0 {
			*row.VoidTurns++
		}
		if !t.Parsed.WellFormed {
			*row.MalformedTurns++
		}
	}
}
