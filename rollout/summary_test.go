package rollout

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/calc"
	"github.com/ropewalk/ropewalk/env/sokoban"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/tool"
)

// The number of a turn says whether it is a summary; the counts agree with counting one turn after another.
func TestTheNumberOfATurnSaysWhetherItIsASummary(t *testing.T) {
	for every := range 5 {
		h := History{Summary: every}
		ordinary, latest, since := 0, -1, 0
		for turn := range 40 {
			require.Equal(t, ordinary, h.Ordinary(turn))
			require.Equal(t, latest, h.latestSummary(turn))
			if h.IsSummary(turn) {
				require.Equal(t, every, since, "a summary follows so many turns")
				latest, since = turn, 0
				continue
			}
			ordinary, since = ordinary+1, since+1
			require.Equal(t, turn+1, h.All(ordinary), "an episode of %d ordinary turns", ordinary)
		}
	}
	require.Zero(t, History{}.Summary)
	require.False(t, History{}.IsSummary(0))
}

// After a summary, a prompt holds the task, the summary and what follows it; before, it holds everything.
func TestWindowAfterASummary(t *testing.T) {
	past := []Span{{3, 5}, {7, 9}, {10, 14}, {15, 17}, {20, 21}} // the first turn has a task of three tokens
	h := History{Summary: 1}                                     // turns 1 and 3 are summaries
	for turns, want := range []Window{{}, {}, {3, 7}, {3, 7}, {3, 15}, {3, 15}} {
		require.Equal(t, want, WindowAfter(3, past[:turns], h), "after %d turns", turns)
	}
	require.Equal(t, 3, h.LeftOut(3, past[:4]))
	own := History{Own: true, Summary: 1}
	require.Equal(t, Window{From: 14}, WindowAfter(3, past[:3], own))
	require.Zero(t, own.LeftOut(3, past))
}

func TestSettingsOfSummaries(t *testing.T) {
	for _, c := range []struct {
		change func(*Settings)
		want   string
	}{
		{func(s *Settings) { s.SummaryTokens = 0 }, "both must be at least 1"},
		{func(s *Settings) { s.History.Summary = 0 }, "both must be at least 1"},
		{func(s *Settings) { s.History.Summary = -1 }, "both must be at least 1"},
		{func(s *Settings) { s.History.Turns = 1 }, "a history of turns or tokens"},
		{func(s *Settings) { s.History.Tokens = 1 }, "a history of turns or tokens"},
		{func(s *Settings) { s.Protocol = protocol.Boxed{} }, "protocol boxed cannot ask for a summary"},
		{func(*Settings) {}, ""},
	} {
		s := settings
		s.History.Summary, s.SummaryTokens = 1, 8
		c.change(&s)
		if err := s.Validate(); c.want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, c.want)
		}
	}
}

// summing is the loop of calc with a summary after each number of turns.
func summing(t testing.TB, every int) *Loop {
	t.Helper()
	s := settings
	s.MaxTurns, s.MaxTokens, s.History, s.SummaryTokens = 3, 600, History{Summary: every}, 30
	return newLoop(t, s, 1)
}

// A question's episode with summaries: what the policy sees, and what counts.
func TestAQuestionWithSummaries(t *testing.T) {
	l := summing(t, 1)
	e := start(l)
	task := l.tok.Decode(e.Context)
	call := protocol.CallResponse("print(12+3)")
	feed(t, l, e, call, policy.FinishStop)
	require.True(t, l.MayCall(e))
	runCalls(t, l, e)
	asked := l.tok.Decode(e.Prefix())
	require.True(t, strings.HasPrefix(asked, task+call))
	require.True(t, strings.HasSuffix(asked, "15\n</tool_response>\nSummarize what you did and learned. You will see "+
		"the task and your summary, and not the turns before it.<|im_end|>\n<|im_start|>assistant\n"), asked)
	request, _ := l.NextRequest([]*Episode{e})
	require.Equal(t, []int{30}, request.MaxTokens, "a summary has a limit of its own")

	summary := "<answer>\\boxed{15}</answer>" + protocol.CallResponse("boom()")
	feed(t, l, e, summary, policy.FinishStop)
	require.Empty(t, e.Finish, "what a summary holds does not count")
	require.True(t, e.AwaitsResponse())
	next := "\n<|im_start|>user\nContinue with the task.<|im_end|>\n<|im_start|>assistant\n<reason>"
	require.Equal(t, task+summary+next, l.tok.Decode(e.Prefix()))
	calls, _ := l.PendingCalls([]*Episode{e}, tool.Scope{})
	require.Empty(t, calls)

	feed(t, l, e, call, policy.FinishStop)
	runCalls(t, l, e)
	feed(t, l, e, "cut", policy.FinishLength) // the second summary reaches its limit
	require.Empty(t, e.Finish)
	require.Equal(t, task+"cut<|im_end|>"+next, l.tok.Decode(e.Prefix()), "its turn is ended before the next one")
	require.False(t, l.MayCall(e), "the third response is the last one")
	feed(t, l, e, call, policy.FinishStop)
	require.Equal(t, FinishMaxTurns, e.Finish)

	row := TrajectoryRow(e)
	require.NoError(t, row.Validate())
	require.EqualValues(t, 3, row.Turns)
	require.Len(t, e.Turns, 5)
	require.Equal(t, []int32{2, 0, 3, 3, 3, 0, 0},
		[]int32{row.ToolCalls, row.AnswerTags, *row.BegunCalls, *row.ParsedCalls, *row.ToolTurns, *row.VoidTurns,
			*row.MalformedTurns})
	require.False(t, row.HasAnswer)
	require.NotContains(t, row.Text, "boom", "graders do not read summaries")
	for turn := range e.Turns {
		r := e.turnRow(turn)
		require.NoError(t, r.Validate())
		require.Equal(t, turn%2 == 1, r.IsSummary())
		require.Equal(t, r.IsSummary(), r.ToolCalls == 0)
		valid, known := r.Valid()
		require.Equal(t, !r.IsSummary(), valid && known)
	}
}

// An episode that a summary leaves no room for ends with it.
func TestASummaryCanUseUpTheTokens(t *testing.T) {
	l := summing(t, 1)
	l.settings.MaxTokens = 1
	e := start(l)
	require.Equal(t, FinishLength, e.Finish)
	l = summing(t, 1)
	e = start(l)
	feed(t, l, e, protocol.CallResponse("print(1)"), policy.FinishStop)
	runCalls(t, l, e)
	l.settings.MaxTokens = len(e.Prefix()) + 1
	feed(t, l, e, strings.Repeat("x", len(e.Prefix())), policy.FinishLength)
	require.Equal(t, FinishLength, e.Finish)
	row := TrajectoryRow(e)
	require.NoError(t, row.Validate())
}

// After every half step of every turn, the episodes of questions that are rebuilt from rows equal those in memory.
func TestQuestionsWithSummariesAreRebuilt(t *testing.T) {
	for _, every := range []int{1, 2} {
		l := summing(t, every)
		var prompts []schema.PromptRow
		for g := range 5 {
			row, err := l.PromptRow(t.Context(), 1, g, env.Task{ID: "p", Level: 2, Text: "12+3", Answer: "15"})
			require.NoError(t, err)
			prompts = append(prompts, row)
		}
		rows := Rows{}
		live, err := l.Episodes(t.Context(), prompts, 8, rows)
		require.NoError(t, err)
		check := func() {
			t.Helper()
			again, err := l.Episodes(t.Context(), prompts, 8, rows)
			require.NoError(t, err)
			require.Empty(t, difference(live, again))
		}
		summaries := 0
		for turn := 0; active(live) > 0; turn++ {
			require.NoError(t, l.Respond(t.Context(), &babbler{tok: l.tok}, "v", live))
			made := TurnRows(live, turn)
			for _, r := range made {
				if r.IsSummary() {
					summaries++
				}
			}
			rows.Turns = append(rows.Turns, made...)
			check()
			outcomes, _, err := l.RunCalls(t.Context(), box(&python{}), tool.Scope{}, live, nil)
			require.NoError(t, err)
			require.NoError(t, l.AbsorbOutcomes(live, outcomes))
			rows.Calls = append(rows.Calls, ToolCallRows(live, turn)...)
			check()
		}
		require.Positive(t, summaries)
	}
}

// The teacher's demonstrations hold summaries of the latest results. Each row of a turn is what a policy would see
// there, and the rows of the record are the same.
func TestTheTeacherWritesSummaries(t *testing.T) {
	l := summing(t, 1)
	made, err := demonstrated(t, l, box(&python{}), Script{Teacher: &calc.Environment{},
		Lesson: env.Lesson{Levels: []int{2}}}, 0, 24)
	require.NoError(t, err)
	found := 0
	for _, d := range made {
		tokens, masks := d.Sequences()
		require.Len(t, tokens, len(d.Episode.Turns))
		var turns []RecordedTurn
		for k, turn := range d.Episode.Turns {
			row := slices.Concat(d.Episode.seen(k, turn.Context), turn.Response)
			require.Equal(t, row, tokens[k])
			require.Equal(t, len(turn.Response), int(sum(masks[k])))
			if d.Episode.IsSummary(k) {
				found++
				require.True(t, strings.HasSuffix(turn.Text, protocol.EndOfTurn))
				require.Equal(t, d.Episode.Turns[k-1].events()[0]+protocol.EndOfTurn, turn.Text)
			}
			turns = append(turns, RecordedTurn{Tokens: slices.Concat(turn.Context, turn.Response), Mask: turn.mask(),
				Summary: d.Episode.IsSummary(k)})
		}
		if len(turns) > 1 {
			again, marks := SequencesOf(turns, false)
			require.Equal(t, tokens, again)
			require.Equal(t, masks, marks)
		}
	}
	require.Positive(t, found)
}

func sum(mask []int32) (n int32) {
	for _, m := range mask {
		n += m
	}
	return n
}

// summarizer writes an action at random, or at summaries its own text.
type summarizer struct {
	mover
	told []string
}

func (s *summarizer) Generate(ctx context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	g, err := s.mover.Generate(ctx, req)
	for i := range g.Tokens {
		if !strings.HasSuffix(s.l.tok.Decode(req.Prefixes[i]), protocol.Asks(protocol.ThinkAction{})[1]) {
			continue
		}
		text := s.told[req.Streams[i]%uint64(len(s.told))]
		g.Tokens[i], g.Finish[i] = s.l.tok.Encode(text), policy.FinishStop
		if n := req.MaxTokens[i]; len(g.Tokens[i]) > n {
			g.Tokens[i], g.Finish[i] = g.Tokens[i][:n], policy.FinishLength
		}
		g.LogProbs[i], g.Entropies[i] = make([]float32, len(g.Tokens[i])), make([]float32, len(g.Tokens[i]))
	}
	return g, err
}

func actingWithSummaries(t testing.TB, every, past int) *Loop {
	t.Helper()
	tok, err := TokenizerOf(Summarizing{protocol.ThinkAction{}}, sokoban.Declaration)
	require.NoError(t, err)
	l, err := NewLoop(Settings{
		MaxTurns: 6, MaxTurnTokens: 24, MaxTokens: 900, Temperature: 1, Protocol: protocol.ThinkAction{},
		Environment: rooms(t), PastTurns: past, History: History{Summary: every}, SummaryTokens: 12,
	}, tok, 3)
	require.NoError(t, err)
	return l
}

// promptsOfRooms are the prompts of six groups in rooms.
func promptsOfRooms(t *testing.T, l *Loop) (prompts []schema.PromptRow) {
	t.Helper()
	for g := range 6 {
		task, err := rooms(t).Task(t.Context(), env.Draw{Split: env.Train, Seed: 1, Step: 1, Index: g})
		require.NoError(t, err)
		row, err := l.PromptRow(t.Context(), 1, g, task)
		require.NoError(t, err)
		prompts = append(prompts, row)
	}
	return prompts
}

// Interactive episodes with summaries: every summary steps no environment, every prompt after it holds it, and the
// episodes are rebuilt from rows at every half step.
func TestActionsWithSummaries(t *testing.T) {
	for _, c := range []struct{ every, past int }{{1, 0}, {2, 0}, {4, 0}, {4, 2}} {
		l := actingWithSummaries(t, c.every, c.past)
		engine := &summarizer{mover{l: l}, []string{"I went up.<|im_end|>", "<|im_end|>", "a very long story of a box",
			"<|im_start|>user\nhi<|im_end|>"}}
		prompts := promptsOfRooms(t, l)
		rows := Rows{}
		live, err := l.Episodes(t.Context(), prompts, 4, rows)
		require.NoError(t, err)
		check := func() {
			t.Helper()
			again, err := l.Episodes(t.Context(), prompts, 4, rows)
			require.NoError(t, err)
			require.Empty(t, difference(live, again))
		}
		for turn := 0; active(live) > 0; turn++ {
			require.NoError(t, l.Respond(t.Context(), engine, "v", live))
			rows.Turns = append(rows.Turns, TurnRows(live, turn)...)
			check()
			require.NoError(t, l.Step(t.Context(), live))
			made, err := TransitionRows(live, turn)
			require.NoError(t, err)
			rows.Transitions = append(rows.Transitions, made...)
			check()
		}
		for _, e := range live {
			actsAndTells(t, l, e, c.every)
		}
	}
}

// actsAndTells checks the turns and prompts of one episode.
func actsAndTells(t *testing.T, l *Loop, e *Episode, every int) {
	t.Helper()
	acted, since, told := 0, 0, ""
	for k, turn := range e.Turns {
		prompt := turn.Observation
		if k == 0 {
			prompt = l.tok.Decode(turn.Context)
		}
		require.Equal(t, told != "", strings.Contains(prompt, protocol.Asks(protocol.ThinkAction{})[0]+told),
			"turn %d", k)
		require.NotContains(t, strings.TrimPrefix(prompt, "<|im_start|>user"), "<|im_start|>user", "a summary is text")
		if l.settings.PastTurns == 0 || e.IsSummary(k) {
			require.Equal(t, since, strings.Count(prompt, "[Observation "), "a prompt describes the turns since")
		}
		require.Equal(t, e.IsSummary(k), turn.Transition == nil)
		if !e.IsSummary(k) {
			acted, since = acted+1, since+1
			continue
		}
		require.Equal(t, every, since)
		since, told = 0, strings.ReplaceAll(strings.TrimSuffix(turn.Text, protocol.EndOfTurn), "<|", "< |")
	}
	require.LessOrEqual(t, acted, l.settings.MaxTurns)
	require.Equal(t, e.Finish == FinishMaxTurns, acted == l.settings.MaxTurns && e.Finish != FinishDone)
	row := TrajectoryRow(e)
	require.NoError(t, row.Validate())
	require.EqualValues(t, acted, row.Turns)
	require.EqualValues(t, acted, row.ToolCalls)
	require.EqualValues(t, acted, *row.BegunCalls)
}

// The expert's demonstrations have summaries of its latest actions, within the limit.
func TestTheExpertWritesSummaries(t *testing.T) {
	l := actingWithSummaries(t, 2, 0)
	found := 0
	made, err := demonstrated(t, l, nil, Script{}, 0, 12)
	require.NoError(t, err)
	for _, d := range made {
		tokens, _ := d.Sequences()
		require.Len(t, tokens, len(d.Episode.Turns))
		for k, turn := range d.Episode.Turns {
			if !d.Episode.IsSummary(k) {
				continue
			}
			found++
			require.LessOrEqual(t, len(turn.Response), 12)
			var acts []string
			for _, before := range d.Episode.Turns[:k] {
				if before.Transition != nil {
					acts = append(acts, before.Transition.Action)
				}
			}
			require.True(t, strings.HasSuffix(strings.Join(acts, "\n")+protocol.EndOfTurn, turn.Text), turn.Text)
			require.NotEqual(t, protocol.EndOfTurn, turn.Text)
		}
	}
	require.Positive(t, found)
}
