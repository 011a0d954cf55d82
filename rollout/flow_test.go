package rollout

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/tool"
)

// single asks a sampler for one row.
func single(s policy.Sampler) func(context.Context, policy.BatchRow) (policy.Generated, error) {
	return func(ctx context.Context, row policy.BatchRow) (policy.Generated, error) {
		return s.Generate(ctx, policy.GenerateRequest{Prefixes: [][]int32{row.Prefix}, Streams: []uint64{row.Stream},
			MaxTokens: []int{row.MaxTokens}, Temperature: row.Temperature, Stop: row.Stop})
	}
}

// batches takes episodes to their ends turn by turn. With a flow, it takes the turns from there.
func batches(t *testing.T, l *Loop, f *Flow, s policy.Sampler, box tool.Toolbox, episodes []*Episode) (rows Rows) {
	t.Helper()
	ctx := t.Context()
	for turn := 0; active(episodes) > 0; turn++ {
		wrote := AwaitingResponses(episodes)
		if f != nil {
			_, err := f.Respond(ctx, "v", wrote)
			require.NoError(t, err)
		}
		var left []*Episode
		for _, e := range wrote {
			if len(e.Turns) == turn {
				left = append(left, e)
			}
		}
		require.NoError(t, l.RespondLeft(ctx, s, "v", left, episodes, len(left) < len(wrote)))
		rows.Turns = append(rows.Turns, TurnRows(episodes, turn)...)
		acting := AwaitingResults(episodes)
		run := func() ([]tool.Outcome, []CallRef, error) { return l.RunCalls(ctx, box, tool.Scope{}, episodes, nil) }
		if f != nil {
			_, _, verdicts, err := f.Results(ctx, episodes)
			require.NoError(t, err)
			run = func() ([]tool.Outcome, []CallRef, error) { return f.RunLeft(ctx, box, episodes, verdicts, nil) }
		}
		if l.settings.Environment != nil {
			left := AwaitingResults(episodes)
			require.NoError(t, l.StepLeft(ctx, left, len(left) < len(acting)))
			made, err := TransitionRows(episodes, turn)
			require.NoError(t, err)
			rows.Transitions = append(rows.Transitions, made...)
			continue
		}
		outcomes, _, err := run()
		require.NoError(t, err)
		require.NoError(t, l.AbsorbOutcomes(episodes, outcomes))
		rows.Calls = append(rows.Calls, ToolCallRows(episodes, turn)...)
	}
	return rows
}

// cracked breaks on some calls.
type cracked struct {
	python
	codes []string
}

func (b *cracked) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	results, err := b.python.Run(ctx, calls)
	broken := make(sandbox.CallErrors, len(calls))
	for i, c := range calls {
		if slices.Contains(b.codes, c.Code) {
			broken[i] = errBroken
		}
	}
	if err == nil && errors.Join(broken...) != nil {
		err = broken
	}
	return results, err
}

// Whatever a flow has done ahead, and whatever it had to leave, the rows are those of a rollout turn by turn.
func TestFlowGivesTheTurnsOfARolloutTurnByTurn(t *testing.T) {
	bad := map[string]func(uint64) error{
		"":       func(uint64) error { return nil },
		"engine": func(s uint64) error { return map[bool]error{true: errRow}[s%7 == 0] },
	}
	for name, faulty := range bad {
		for _, codes := range [][]string{nil, {"print(1//0)"}, {"print(1//0)", "x=1", "7*6"}} {
			l := newLoop(t, settings, 11)
			engine := func() policy.Sampler {
				return &stateless{fragile{babbler: &babbler{tok: l.tok}, faulty: faulty}}
			}
			want, _ := fresh(t, l, 32)
			rows := batches(t, l, nil, engine(), box(&cracked{codes: codes}), want)
			require.NotEmpty(t, rows.Calls)

			own, _ := fresh(t, l, 32)
			tools := &cracked{codes: codes}
			f := l.NewFlow(t.Context(), own, FlowOptions{Version: "v", Respond: single(engine()),
				Box: tool.Sharing(box(tools))})
			got, _ := fresh(t, l, 32)
			require.Equal(t, rows, batches(t, l, f, engine(), box(tools), got), "%s, breaks on %v", name, codes)
			require.Empty(t, cmp.Diff(want, got))
			f.Wait()
			f.Close()
			state := f.State()
			require.Equal(t, len(got), state.Episodes)
			if name == "" && codes == nil {
				require.Equal(t, len(got), state.Finished)
				require.EqualValues(t, len(rows.Turns), state.Turns)
				require.Empty(t, cmp.Diff(want, own), "the flow had left nothing")
			} else {
				require.Less(t, state.Finished, len(got))
			}
			require.Zero(t, state.Calls)
		}
	}
}

// stateless is a fragile babbler that several goroutines may ask.
type stateless struct{ fragile }

func (s *stateless) Generate(ctx context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	one := fragile{babbler: &babbler{tok: s.tok}, faulty: s.faulty}
	return one.Generate(ctx, req)
}

func TestFlowOfInteractiveEpisodes(t *testing.T) {
	l := actingLoop(t, rooms(t), 2)
	begin := func() []*Episode {
		var prompts []schema.PromptRow
		for g := range 6 {
			task, err := rooms(t).Task(t.Context(), env.Draw{Split: env.Train, Seed: 1, Step: 1, Index: g})
			require.NoError(t, err)
			row, err := l.PromptRow(t.Context(), 1, g, task)
			require.NoError(t, err)
			prompts = append(prompts, row)
		}
		episodes, err := l.Episodes(prompts, 4, Rows{})
		require.NoError(t, err)
		return episodes
	}
	want := begin()
	rows := batches(t, l, nil, mover{l: l}, nil, want)
	f := l.NewFlow(t.Context(), begin(), FlowOptions{Version: "v", Respond: single(mover{l: l})})
	defer f.Close()
	got := begin()
	require.Equal(t, rows, batches(t, l, f, mover{l: l}, nil, got))
	require.Empty(t, cmp.Diff(want, got))
	require.Equal(t, len(got), f.State().Finished)
}

// A flow that ended anywhere goes on from what it has kept: no kept turn is generated again, and no kept call runs
// again.
func TestFlowsResumeFromWhatTheyKept(t *testing.T) {
	l := newLoop(t, settings, 11)
	want, _ := fresh(t, l, 16)
	rows := batches(t, l, nil, &babbler{tok: l.tok}, box(&python{}), want)
	for _, most := range []int64{1, 20, 64, 70, 100} {
		ctx, stop := context.WithCancel(t.Context())
		var asked atomic.Int64
		own, _ := fresh(t, l, 16)
		f := l.NewFlow(ctx, own, FlowOptions{Version: "v", Box: box(&python{}),
			Respond: func(ctx context.Context, row policy.BatchRow) (policy.Generated, error) {
				if asked.Add(1) > most {
					return policy.Generated{}, errRow
				}
				return single(&stateless{fragile{babbler: &babbler{tok: l.tok}, faulty: on()}})(ctx, row)
			}})
		f.Wait()
		stop()
		mark := FlowMark{}
		kept, err := f.Unsaved(mark, 0, 0)
		require.NoError(t, err)
		require.Len(t, kept.Turns, int(min(most, int64(len(rows.Turns)))))
		again, err := f.Unsaved(mark, 0, 0)
		require.NoError(t, err)
		require.Zero(t, again.size())

		resumed, _ := fresh(t, l, 16)
		resumed, err = l.Resume(resumed, []Rows{{}, kept})
		require.NoError(t, err)
		turns, calls := 0, 0
		for _, e := range resumed {
			turns += len(e.Turns)
			for _, turn := range e.Turns {
				calls += len(turn.Results)
			}
		}
		require.Equal(t, len(kept.Turns), turns)
		require.Equal(t, len(kept.Calls), calls)
		var more atomic.Int64
		g := l.NewFlow(t.Context(), resumed, FlowOptions{Version: "v", Box: box(&python{}),
			Respond: func(ctx context.Context, row policy.BatchRow) (policy.Generated, error) {
				more.Add(1)
				return single(&stateless{fragile{babbler: &babbler{tok: l.tok}, faulty: on()}})(ctx, row)
			}})
		got, _ := fresh(t, l, 16)
		require.Equal(t, rows, batches(t, l, g, &babbler{tok: l.tok}, box(&python{}), got))
		require.EqualValues(t, len(rows.Turns)-len(kept.Turns), more.Load())
		g.Close()
	}
}

// Rows of a flow count only where they continue what is committed, and never next to another flow's.
func TestResumeTakesRowsThatContinue(t *testing.T) {
	l := newLoop(t, settings, 11)
	live, _ := fresh(t, l, 16)
	rows := batches(t, l, nil, &babbler{tok: l.tok}, box(&python{}), live)
	long := 0
	for i, e := range live {
		if len(e.Turns) > len(live[long].Turns) {
			long = i
		}
	}
	require.Greater(t, len(live[long].Turns), 1)
	own := *rows.byTrajectory()[live[long].TrajectoryID]

	short := Rows{Turns: own.Turns[:1]}
	gap := Rows{Turns: own.Turns[1:]}
	other := Rows{Turns: append([]schema.TurnRow{own.Turns[0]}, own.Turns[1:]...), Calls: own.Calls}
	episodes, _ := fresh(t, l, 16)
	episodes, err := l.Resume(episodes, []Rows{gap, short, own})
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(live[long], episodes[long]))

	// Another worker has committed another first turn.
	changed := other
	changed.Turns = append([]schema.TurnRow(nil), other.Turns...)
	changed.Turns[0].TokenIDs = append([]int32{5}, changed.Turns[0].TokenIDs...)
	changed.Turns[0].ContextTokens++
	changed.Turns[0].TokenIDs = changed.Turns[0].TokenIDs[:len(changed.Turns[0].TokenIDs)-1]
	committed, _ := fresh(t, l, 16)
	committed, err = l.Advance(committed, Rows{Turns: rows.Turns[:len(live)]})
	require.NoError(t, err)
	before := len(committed[long].Turns)
	committed, err = l.Resume(committed, []Rows{changed})
	require.NoError(t, err)
	require.Len(t, committed[long].Turns, before)
}
