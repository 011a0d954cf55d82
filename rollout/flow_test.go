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
func single(s policy.Sampler) func(context.Context, policy.BatchRow) (policy.Generated, string, error) {
	return func(ctx context.Context, row policy.BatchRow) (policy.Generated, string, error) {
		out, err := s.Generate(ctx, policy.GenerateRequest{Prefixes: [][]int32{row.Prefix},
			Streams: []uint64{row.Stream}, MaxTokens: []int{row.MaxTokens}, Temperature: row.Temperature,
			Stop: row.Stop, Top: row.Top, TopTokens: row.TopTokens})
		return out, "v", err
	}
}

// batches takes episodes to their ends turn by turn. With a flow, it takes the turns from there.
func batches(t *testing.T, l *Loop, f *Flow, s policy.Sampler, box tool.Toolbox, episodes []*Episode) (rows Rows) {
	t.Helper()
	ctx := t.Context()
	for turn := 0; active(episodes) > 0; turn++ {
		wrote := AwaitingResponses(episodes)
		if f != nil {
			_, _, err := f.Respond(ctx, "v", wrote)
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
		episodes, err := l.Episodes(t.Context(), prompts, 4, Rows{})
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
			Respond: func(ctx context.Context, row policy.BatchRow) (policy.Generated, string, error) {
				if asked.Add(1) > most {
					return policy.Generated{}, "", errRow
				}
				return single(&stateless{fragile{babbler: &babbler{tok: l.tok}, faulty: on()}})(ctx, row)
			}})
		f.Wait()
		stop()
		kept, beyond, err := f.Unsaved(nil, 0, 0)
		require.NoError(t, err)
		require.Len(t, kept.Turns, int(min(most, int64(len(rows.Turns)))))
		again, beyond, err := f.Unsaved(beyond, 0, 0)
		require.NoError(t, err)
		require.Zero(t, again.size())
		require.Len(t, beyond, len(own))

		resumed, _ := fresh(t, l, 16)
		l.Resume(t.Context(), resumed, []Rows{{}, kept})
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
			Respond: func(ctx context.Context, row policy.BatchRow) (policy.Generated, string, error) {
				more.Add(1)
				return single(&stateless{fragile{babbler: &babbler{tok: l.tok}, faulty: on()}})(ctx, row)
			}})
		got, _ := fresh(t, l, 16)
		require.Equal(t, rows, batches(t, l, g, &babbler{tok: l.tok}, box(&python{}), got))
		require.EqualValues(t, len(rows.Turns)-len(kept.Turns), more.Load())
		g.Close()
	}
}

// A turn has the version that wrote it. Where the committed turns are of another version than the flow's, the flow's
// later ones do not follow them, even if the tokens agree.
func TestFlowsOfSeveralVersions(t *testing.T) {
	l := newLoop(t, settings, 11)
	begin := func() (*Flow, []*Episode) {
		own, first := fresh(t, l, 16)
		f := l.NewFlow(t.Context(), own, FlowOptions{Version: "v", Box: box(&python{}),
			Respond: func(ctx context.Context, row policy.BatchRow) (policy.Generated, string, error) {
				out, version, err := single(&stateless{fragile{babbler: &babbler{tok: l.tok}, faulty: on()}})(ctx, row)
				if !slices.Contains(first, row.Stream) {
					version = "w"
				}
				return out, version, err
			}})
		t.Cleanup(f.Close)
		committed, _ := fresh(t, l, 16)
		return f, committed
	}
	f, committed := begin()
	later := 0
	for _, r := range batches(t, l, f, nil, box(&python{}), committed).Turns {
		require.Equal(t, r.Turn == 0, r.PolicyVersion == "v")
		if r.Turn > 0 {
			later++
		}
	}
	require.Positive(t, later)

	f, committed = begin()
	f.Wait()
	require.NoError(t, l.Respond(t.Context(), &babbler{tok: l.tok}, "u", committed))
	outcomes, _, err := l.RunCalls(t.Context(), box(&python{}), tool.Scope{}, committed, nil)
	require.NoError(t, err)
	require.NoError(t, l.AbsorbOutcomes(committed, outcomes))
	waiting := len(AwaitingResponses(committed))
	require.Positive(t, waiting)
	_, _, err = f.Respond(t.Context(), "v", committed)
	require.NoError(t, err)
	require.Len(t, AwaitingResponses(committed), waiting)
}

// wordy is a sampler that does not repeat what another one has said, although it makes the same calls.
type wordy struct {
	stateless
	token int32
}

func (w *wordy) Generate(ctx context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	g, err := w.stateless.Generate(ctx, req)
	for i, ids := range g.Tokens {
		if len(ids) < req.MaxTokens[i] {
			g.Tokens[i] = append([]int32{w.token}, ids...)
			g.LogProbs[i] = append([]float32{0}, g.LogProbs[i]...)
			g.Entropies[i] = append([]float32{0}, g.Entropies[i]...)
		}
	}
	return g, err
}

// Where another worker has committed other responses, what a flow has done after its own ones does not count, even if
// the results of the calls are the same.
func TestFlowsTurnsFollowTheCommittedOnes(t *testing.T) {
	l := newLoop(t, settings, 11)
	engine := stateless{fragile{babbler: &babbler{tok: l.tok}, faulty: on()}}
	own, _ := fresh(t, l, 32)
	f := l.NewFlow(t.Context(), own, FlowOptions{Version: "v", Respond: single(&engine), Box: box(&python{})})
	defer f.Close()
	f.Wait()
	kept, _, err := f.Unsaved(nil, 1, 1)
	require.NoError(t, err)

	got, _ := fresh(t, l, 32)
	require.NoError(t, l.Respond(t.Context(), &wordy{engine, l.tok.Encode("a")[0]}, "v", got))
	other := func(i int) bool { return !slices.Equal(got[i].Turns[0].Response, own[i].Turns[0].Response) }
	_, ran, _, err := f.Results(t.Context(), got)
	require.NoError(t, err)
	for _, r := range ran {
		require.False(t, other(r.Episode))
	}
	outcomes, _, err := l.RunCalls(t.Context(), box(&python{}), tool.Scope{}, got, nil)
	require.NoError(t, err)
	require.NoError(t, l.AbsorbOutcomes(got, outcomes))
	left := 0
	for i, e := range got {
		if other(i) && e.AwaitsResponse() && len(own[i].Turns) > 1 && slices.Equal(e.Context, own[i].Turns[1].Context) {
			left++
		}
	}
	require.Positive(t, left)
	l.Resume(t.Context(), got, []Rows{kept})
	for i, e := range got {
		require.True(t, !other(i) || len(e.Turns) == 1)
	}
	_, _, err = f.Respond(t.Context(), "v", got)
	require.NoError(t, err)
	for i, e := range got {
		require.True(t, !other(i) || len(e.Turns) == 1)
	}
}
