package rollout

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/calc"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/schema"
)

// prompts returns the rows of n training prompts.
func prompts(l *Loop, n int) []schema.PromptRow {
	rows := make([]schema.PromptRow, n)
	for i := range rows {
		rows[i], _ = l.PromptRow(context.Background(), 4, i, calc.Training(1, 4, i, calc.EqualShares(2, 3, 4)))
	}
	return rows
}

// feed makes an episode's policy write one text.
func feed(t *testing.T, l *Loop, e *Episode, text string, finish policy.Finish) {
	t.Helper()
	one := []*Episode{e}
	_, rows := l.NextRequest(one)
	ids := l.tok.Encode(text)
	zeros := [][]float32{make([]float32, len(ids))}
	g := policy.Generated{Tokens: [][]int32{ids}, LogProbs: zeros, Entropies: zeros, Finish: []policy.Finish{finish}}
	if err := l.Absorb(t.Context(), one, rows, g, "v"); err != nil {
		t.Fatal(err)
	}
}

// runCalls answers the pending calls of an episode.
func runCalls(t *testing.T, l *Loop, e *Episode) {
	t.Helper()
	one := []*Episode{e}
	if err := callsOf(new(python)).answer(t.Context(), l, one); err != nil {
		t.Fatal(err)
	}
}

var problem = env.Task{ID: "p", Level: 2, Text: "What is 12 + 3?", Answer: "15", Spec: "12+3"}

func start(l *Loop) *Episode {
	return l.Start(Identity{Label: LabelSample, Step: 1, Group: 2, Sample: 3}, problem)
}

func TestHowEpisodesEnd(t *testing.T) {
	call := protocol.CallResponse("print(12+3)")
	for name, c := range map[string]struct {
		settings  Settings
		responses []string
		finish    policy.Finish // of the last response
		want      Finish
		turns     int
	}{
		"answer at once": {settings, []string{protocol.AnswerResponse("15")}, policy.FinishStop, FinishAnswered, 1},
		"call, answer": {settings, []string{call, protocol.AnswerResponse("15")}, policy.FinishStop,
			FinishAnswered, 2},
		"answer without box": {settings, []string{"<answer>15</answer><|im_end|>"}, policy.FinishStop, FinishAnswered,
			1},
		"neither":      {settings, []string{"</reason><|im_end|>"}, policy.FinishStop, FinishNoAction, 1},
		"always calls": {settings, []string{call, call, call}, policy.FinishStop, FinishMaxTurns, 3},
		"unfinished":   {settings, []string{call, call[:20]}, policy.FinishLength, FinishLength, 2},
		"calls and answers": {settings, []string{"<answer>1</answer>" + call, protocol.AnswerResponse("15")},
			policy.FinishStop, FinishAnswered, 2},
		"one turn allowed": {Settings{MaxTurns: 1, MaxTurnTokens: 48, MaxTokens: 192}, []string{call},
			policy.FinishStop, FinishMaxTurns, 1},
	} {
		l := newLoop(t, c.settings, 1)
		e := start(l)
		for i, r := range c.responses {
			finish := policy.FinishStop
			if i == len(c.responses)-1 {
				finish = c.finish
			}
			feed(t, l, e, r, finish)
			if e.AwaitsResults() {
				runCalls(t, l, e)
			}
		}
		if e.Finish != c.want || len(e.Turns) != c.turns {
			t.Errorf("%s: %d turns, finish %q; want %d, %q", name, len(e.Turns), e.Finish, c.turns, c.want)
		}
		if e.AwaitsResponse() || e.AwaitsResults() {
			t.Errorf("%s: still awaits something", name)
		}
	}
}

// An observation is appended only if at least one more token fits after it.
func TestBudgetStopsWithoutAppending(t *testing.T) {
	call := protocol.CallResponse("print(12+3)")
	roomy := newLoop(t, settings, 1)
	e := start(roomy)
	feed(t, roomy, e, call, policy.FinishStop)
	before := e.Tokens()
	runCalls(t, roomy, e)
	observation := len(e.Context)
	for _, c := range []struct {
		max  int
		fits bool
	}{{before + observation + 1, true}, {before + observation, false}, {before + 1, false}} {
		s := settings
		s.MaxTokens = c.max
		l := newLoop(t, s, 1)
		e := start(l)
		feed(t, l, e, call, policy.FinishStop)
		runCalls(t, l, e)
		if fits := e.Finish == ""; fits != c.fits {
			t.Errorf("of %d tokens: finish %q", c.max, e.Finish)
		}
		if !c.fits && (e.Tokens() != before || e.Finish != FinishLength || e.Counts().ToolCalls != 1) {
			t.Errorf("of %d tokens: %d used, finish %q, %+v", c.max, e.Tokens(), e.Finish, e.Counts())
		}
		if c.fits {
			if req, _ := l.NextRequest([]*Episode{e}); req.MaxTokens[0] != 1 {
				t.Errorf("a budget of %d is left, want 1", req.MaxTokens[0])
			}
		}
	}
	s := settings
	s.MaxTokens = 5
	if e := start(newLoop(t, s, 1)); e.Finish != FinishLength || e.Tokens() != 0 {
		t.Errorf("a prompt over the budget: finish %q, %d tokens", e.Finish, e.Tokens())
	}
}

func TestToolErrorsAreCountedByVerdict(t *testing.T) {
	l := newLoop(t, Settings{MaxTurns: 3, MaxTurnTokens: 400, MaxTokens: 2000}, 1)
	e := start(l)
	unknown := `<tool_call>{"name": "other", "arguments": {}}</tool_call>`
	printsError := protocol.Call("x=1;x+=1;print(x)", "")
	feed(t, l, e, protocol.BrokenCall("1")+unknown+printsError+protocol.Call("print(z)", "")+protocol.EndOfTurn,
		policy.FinishStop)
	runCalls(t, l, e)
	if got, want := e.Counts(), (Counts{ToolCalls: 4, ToolErrors: 3}); got.ToolCalls != want.ToolCalls ||
		got.ToolErrors != want.ToolErrors {
		t.Errorf("counts %+v, want %+v", got, want)
	}
	var statuses []string
	for _, r := range ToolCallRows([]*Episode{e}, 0) {
		statuses = append(statuses, r.Status)
	}
	if d := cmp.Diff([]string{"decode_error", "unknown_tool", "ok", "runtime_error"}, statuses); d != "" {
		t.Errorf("statuses (-want +got):\n%s", d)
	}
	if n := strings.Count(e.Observation, "<|im_start|>user"); n != 1 {
		t.Errorf("four tool messages take %d user turns", n)
	}
}

func TestAbsorbRefusesWhatDoesNotFit(t *testing.T) {
	l := newLoop(t, settings, 1)
	stop := []policy.Finish{policy.FinishStop}
	one := [][]float32{{0}}
	for name, g := range map[string]policy.Generated{
		"no rows": {},
		"no tokens": {Tokens: [][]int32{{}}, LogProbs: [][]float32{{}}, Entropies: [][]float32{{}},
			Finish: stop},
		"no log-probabilities": {Tokens: [][]int32{{1}}, LogProbs: [][]float32{{}}, Entropies: one, Finish: stop},
		"unknown token":        {Tokens: [][]int32{{1 << 20}}, LogProbs: one, Entropies: one, Finish: stop},
	} {
		e := start(l)
		if err := l.Absorb(t.Context(), []*Episode{e}, []int{0}, g, "v"); err == nil || len(e.Turns) != 0 {
			t.Errorf("%s: absorbed (%v)", name, err)
		}
	}
	e := start(l)
	feed(t, l, e, protocol.CallResponse("print(1)"), policy.FinishStop)
	if err := l.AbsorbOutcomes([]*Episode{e}, nil); err == nil {
		t.Error("a missing tool result was accepted")
	}
}

// A prompt that leaves no room for a token ends its episode before a turn, and the engine is not asked about it.
func TestAPromptLongerThanTheContext(t *testing.T) {
	short := settings
	short.MaxTokens = 400
	l := newLoop(t, short, 7)
	rows := prompts(l, 3)
	task := calc.Training(1, 4, 1, calc.EqualShares(2, 3, 4))
	task.Text = strings.Repeat("one more word ", 100)
	var err error
	rows[1], err = l.PromptRow(t.Context(), 4, 1, task)
	require.NoError(t, err)
	episodes, err := l.Episodes(t.Context(), rows, 2, Rows{})
	require.NoError(t, err)
	require.NoError(t, l.Respond(t.Context(), &babbler{tok: l.tok}, "v", episodes))
	for i, e := range episodes {
		if i/2 == 1 {
			require.Equal(t, FinishLength, e.Finish)
			require.Empty(t, e.Turns)
			continue
		}
		require.Len(t, e.Turns, 1)
	}
}

func TestStreamsDependOnCoordinatesAlone(t *testing.T) {
	l := newLoop(t, settings, 7)
	rows := prompts(l, 6)
	all, err := l.Episodes(t.Context(), rows, 4, Rows{})
	if err != nil {
		t.Fatal(err)
	}
	part, err := l.Episodes(t.Context(), rows[3:], 4, Rows{})
	if err != nil {
		t.Fatal(err)
	}
	whole, _ := l.NextRequest(all)
	shard, _ := l.NextRequest(part)
	if d := cmp.Diff(whole.Streams[12:], shard.Streams); d != "" {
		t.Errorf("streams depend on the batch (-whole +shard):\n%s", d)
	}
	seen := map[uint64]bool{}
	for _, s := range whole.Streams {
		if seen[s] {
			t.Fatal("two samples share a stream")
		}
		seen[s] = true
	}
	other, _ := newLoop(t, settings, 8).NextRequest(all)
	if other.Streams[0] == whole.Streams[0] {
		t.Error("the run's seed does not matter")
	}
}

func TestRunEpisodesIsTheStagedLoop(t *testing.T) {
	l := newLoop(t, settings, 3)
	rows := prompts(l, 80)
	staged, err := l.Episodes(t.Context(), rows, 4, Rows{})
	if err != nil {
		t.Fatal(err)
	}
	engine := &babbler{tok: l.tok}
	for active(staged) > 0 {
		if err := l.advance(t.Context(), engine, callsOf(new(python)), "v", staged); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := l.Episodes(t.Context(), rows, 4, Rows{})
	if err != nil {
		t.Fatal(err)
	}
	last := 0
	progress := func(done, total int) {
		if done < last || total != len(whole) {
			t.Errorf("progress went from %d to %d of %d", last, done, total)
		}
		last = done
	}
	engine = &babbler{tok: l.tok}
	if err := l.RunEpisodes(t.Context(), serial{engine, make(chan struct{}, 1)}, callsOf(&python{}), "v", whole,
		progress); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(staged, whole); d != "" {
		t.Errorf("episodes (-staged +interleaved):\n%s", d)
	}
	if last != len(whole) {
		t.Errorf("progress ended at %d of %d", last, len(whole))
	}
	ends := map[Finish]int{}
	for _, e := range whole {
		ends[e.Finish]++
	}
	for _, f := range []Finish{FinishAnswered, FinishNoAction, FinishMaxTurns, FinishLength} {
		if ends[f] == 0 {
			t.Errorf("no episode ended as %s: %v", f, ends)
		}
	}
}

func TestBreakageStopsARun(t *testing.T) {
	l := newLoop(t, settings, 3)
	episodes, err := l.Episodes(t.Context(), prompts(l, 8), 2, Rows{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.RunEpisodes(t.Context(), &babbler{tok: l.tok, failAfter: 2}, callsOf(new(python)), "v", episodes,
		nil); !errors.Is(err, policy.ErrLost) {
		t.Errorf("a lost engine gives %v", err)
	}
	episodes, err = l.Episodes(t.Context(), prompts(l, 8), 2, Rows{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.RunEpisodes(t.Context(), &babbler{tok: l.tok}, callsOf(&python{failFrom: 2}), "v", episodes,
		nil); !errors.Is(err, errBroken) {
		t.Errorf("a broken sandbox gives %v", err)
	}
}

func TestSettingsValidate(t *testing.T) {
	for _, change := range []func(*Settings){
		func(s *Settings) { s.MaxTurns = 0 }, func(s *Settings) { s.MaxTurnTokens = 0 },
		func(s *Settings) { s.MaxTokens = -1 }, func(s *Settings) { s.Temperature = -1 },
		func(s *Settings) { s.MaxToolTextBytes = -1 }, func(s *Settings) { s.ToolTextSide = "top" },
	} {
		s := settings
		change(&s)
		if s.Validate() == nil {
			t.Errorf("settings %+v were accepted", s)
		}
	}
	if err := settings.Validate(); err != nil {
		t.Error(err)
	}
}
