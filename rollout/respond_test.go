package rollout

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/tool"
)

// fragile is a babbler that fails on some rows. faulty decides the error of a row by the row's stream.
type fragile struct {
	*babbler
	faulty func(stream uint64) error // nil error: the row is fine
	panics bool                      // with the error, instead of returning it
	rows   []int                     // of each call
}

func (f *fragile) Generate(ctx context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	f.rows = append(f.rows, len(req.Prefixes))
	for _, stream := range req.Streams {
		if err := f.faulty(stream); err != nil && f.panics {
			panic(err)
		} else if err != nil {
			return policy.Generated{}, err
		}
	}
	return f.babbler.Generate(ctx, req)
}

var errRow = errors.New("index out of range [7] with length 7")

// on fails on the given streams, always.
func on(streams ...uint64) func(uint64) error {
	return func(s uint64) error {
		if slices.Contains(streams, s) {
			return errRow
		}
		return nil
	}
}

// fresh returns episodes that await their first response, with their streams.
func fresh(t *testing.T, l *Loop, n int) ([]*Episode, []uint64) {
	t.Helper()
	episodes := committed{prompts: prompts(l, n)}.rebuild(t, l, 4)
	req, _ := l.NextRequest(episodes)
	return episodes, req.Streams
}

func TestOneBadRowIsExcludedAndTheOthersAreWhatTheyWere(t *testing.T) {
	for _, panics := range []bool{false, true} {
		l := newLoop(t, settings, 11)
		want, _ := fresh(t, l, 64)
		require.NoError(t, l.Respond(t.Context(), &babbler{tok: l.tok}, "v", want))
		got, streams := fresh(t, l, 64)
		const bad = 77
		engine := &fragile{babbler: &babbler{tok: l.tok}, faulty: on(streams[bad]), panics: panics}
		require.NoError(t, l.Respond(t.Context(), engine, "v", got))
		require.Equal(t, 2+2*int(math.Log2(256)), len(engine.rows), "the whole twice, then halves")
		e := got[bad]
		require.Equal(t, FinishExcluded, e.Finish)
		if panics {
			require.Equal(t, "engine: panicked: index out of range [7] with length 7", e.Excluded)
		} else {
			require.Equal(t, "engine: index out of range [7] with length 7", e.Excluded)
		}
		require.False(t, e.AwaitsResponse() || e.AwaitsResults())
		for i := range got {
			if i != bad {
				require.Empty(t, cmp.Diff(want[i], got[i]), "%s", got[i].TrajectoryID)
			}
		}
	}
}

func TestRespond(t *testing.T) {
	transient := func(times int) func(uint64) error {
		return func(uint64) error {
			if times--; times >= 0 {
				return errRow
			}
			return nil
		}
	}
	always := func(uint64) error { return errRow }
	lost := func(err error) func(uint64) error {
		return func(uint64) error { return fmt.Errorf("generate: %w", err) }
	}
	for _, tt := range []struct {
		name   string
		faulty func(streams []uint64) func(uint64) error
		bad    []int // episodes excluded
		fails  error
		calls  int
	}{
		{"nothing breaks", func([]uint64) func(uint64) error { return on() }, nil, nil, 1},
		{"once, then fine", func([]uint64) func(uint64) error { return transient(1) }, nil, nil, 2},
		{"two rows", func(s []uint64) func(uint64) error { return on(s[0], s[7]) }, []int{0, 7}, nil, 2 + 2 + 4 + 4},
		{"all rows but one", func(s []uint64) func(uint64) error { return on(s[1:]...) }, []int{1, 2, 3, 4, 5, 6, 7},
			nil, 2 + 14},
		{"all rows", func([]uint64) func(uint64) error { return always }, nil, errRow, 2 + 14},
		{"lost", func([]uint64) func(uint64) error { return lost(policy.ErrLost) }, nil, policy.ErrLost, 1},
		{"out of memory", func([]uint64) func(uint64) error { return lost(policy.ErrOutOfMemory) }, nil,
			policy.ErrOutOfMemory, 1},
		{"cancelled", func([]uint64) func(uint64) error { return lost(context.Canceled) }, nil, context.Canceled, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLoop(t, settings, 11)
			episodes, streams := fresh(t, l, 2)
			engine := &fragile{babbler: &babbler{tok: l.tok}, faulty: tt.faulty(streams)}
			err := l.Respond(t.Context(), engine, "v", episodes)
			require.Len(t, engine.rows, tt.calls)
			if tt.fails != nil {
				require.ErrorIs(t, err, tt.fails)
				for _, e := range episodes {
					require.True(t, e.AwaitsResponse(), "an engine's failure changes no episode")
				}
				return
			}
			require.NoError(t, err)
			for i, e := range episodes {
				require.Equal(t, slices.Contains(tt.bad, i), e.Finish == FinishExcluded, "episode %d", i)
				require.Len(t, e.Turns, 1)
			}
		})
	}
}

// garbler is an engine that returns an invalid response for the row of one stream.
type garbler struct {
	*babbler
	stream  uint64
	garbage policy.Generated // of one row; numbers that are nil are 0, and it ends at its budget
}

func (g *garbler) Generate(ctx context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	out, err := g.babbler.Generate(ctx, req)
	if i := slices.Index(req.Streams, g.stream); i >= 0 {
		n := len(g.garbage.Tokens[0])
		out.Tokens[i], out.LogProbs[i], out.Entropies[i] = g.garbage.Tokens[0], make([]float32, n), make([]float32, n)
		out.Finish[i] = policy.FinishLength
		if g.garbage.LogProbs != nil {
			out.LogProbs[i] = g.garbage.LogProbs[0]
		}
		if g.garbage.Entropies != nil {
			out.Entropies[i] = g.garbage.Entropies[0]
		}
		if g.garbage.Finish != nil {
			out.Finish[i] = g.garbage.Finish[0]
		}
	}
	return out, err
}

func TestAResponseThatIsNoneExcludesItsRow(t *testing.T) {
	l := newLoop(t, settings, 11)
	stop, _ := l.tok.ID("<|im_end|>")
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for says, garbage := range map[string]policy.Generated{
		"0 tokens":                               {Tokens: [][]int32{{}}},
		"token id":                               {Tokens: [][]int32{{99999}}},
		"100 tokens, its budget":                 {Tokens: [][]int32{make([]int32, 100)}},
		"2 tokens after its end":                 {Tokens: [][]int32{{5, stop, 7, 8}}},
		`it ends with "stop"`:                    {Tokens: [][]int32{{5}}, Finish: []policy.Finish{policy.FinishStop}},
		`it ends with "tired"`:                   {Tokens: [][]int32{{5}}, Finish: []policy.Finish{"tired"}},
		"the log-probability of token 1 is NaN":  {Tokens: [][]int32{{5, 6}}, LogProbs: [][]float32{{-1, nan}}},
		"the log-probability of token 0 is -Inf": {Tokens: [][]int32{{5}}, LogProbs: [][]float32{{inf}}},
		"the log-probability of token 0 is 0.5":  {Tokens: [][]int32{{5}}, LogProbs: [][]float32{{0.5}}},
		"the entropy of token 0 is NaN":          {Tokens: [][]int32{{5}}, Entropies: [][]float32{{nan}}},
	} {
		l := newLoop(t, settings, 11)
		episodes, streams := fresh(t, l, 2)
		require.NoError(t, l.Respond(t.Context(), &garbler{&babbler{tok: l.tok}, streams[3], garbage}, "v", episodes))
		for i, e := range episodes {
			require.Equal(t, i == 3, e.Excluded != "", e.Excluded)
		}
		require.Contains(t, episodes[3].Excluded, says)
	}
}

// In a later turn, only one episode may be left. Whether that episode or the engine is at fault shows when the engine
// tries again to continue a prefix that it has already continued before.
func TestTheLastRowOfATurn(t *testing.T) {
	l := newLoop(t, settings, 11)
	call := "</reason><tool_call>\n{\"name\": \"execute_python_code_with_standard_io\", \"arguments\": {\"code\": " +
		"\"print(1)\", \"input\": \"\"}}\n</tool_call><|im_end|>"
	for _, broken := range []bool{false, true} {
		episodes := []*Episode{start(l), start(l)}
		feed(t, l, episodes[0], "<answer>1</answer><|im_end|>", policy.FinishStop)
		feed(t, l, episodes[1], call, policy.FinishStop)
		if episodes[1].AwaitsResults() {
			runCalls(t, l, episodes[1])
		}
		require.True(t, episodes[1].AwaitsResponse())
		req, _ := l.NextRequest(episodes)
		faulty := on(req.Streams...)
		if broken {
			faulty = func(uint64) error { return errRow }
		}
		err := l.Respond(t.Context(), &fragile{babbler: &babbler{tok: l.tok}, faulty: faulty}, "v", episodes)
		if broken {
			require.ErrorContains(t, err, "each of 1 rows fails")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, FinishExcluded, episodes[1].Finish)
		require.Equal(t, FinishAnswered, episodes[0].Finish)
	}
}

// brittle is a sandbox that returns no verdict on programs that contain a text.
type brittle struct{ text string }

func (b brittle) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	results, err := new(python).Run(ctx, calls)
	broken := make(sandbox.CallErrors, len(calls))
	for i, c := range calls {
		if strings.Contains(c.Code, b.text) {
			results[i], broken[i] = sandbox.Result{}, errBroken
		}
	}
	if len(broken.Unwrap()) > 0 {
		return results, broken
	}
	return results, err
}

func (brittle) Close() error { return nil }

// In whole rollouts, engine and sandbox fail on some episodes. The state rebuilt from rows equals the state in memory,
// and every row passes the record's checks. The other episodes equal those of a rollout without failures.
func TestExclusionsAreRebuiltFromRows(t *testing.T) {
	l := newLoop(t, settings, 11)
	plain := committed{prompts: prompts(l, 20)}.rebuild(t, l, 6)
	for active(plain) > 0 {
		require.NoError(t, l.advance(t.Context(), &babbler{tok: l.tok}, callsOf(new(python)), "v", plain))
	}
	c := committed{prompts: prompts(l, 20)}
	live := c.rebuild(t, l, 6)
	engine := &fragile{babbler: &babbler{tok: l.tok}, faulty: func(s uint64) error {
		if s%17 == 0 {
			return errRow
		}
		return nil
	}}
	for turn := 0; active(live) > 0; turn++ {
		require.NoError(t, l.Respond(t.Context(), engine, "v", live))
		c.turns = append(c.turns, TurnRows(live, turn)...)
		require.Empty(t, difference(live, c.rebuild(t, l, 6)), "turn %d after generation", turn)
		outcomes, _, err := l.RunCalls(t.Context(), box(brittle{"//0"}), tool.Scope{}, live, nil)
		require.NoError(t, err)
		require.NoError(t, l.AbsorbOutcomes(live, outcomes))
		c.calls = append(c.calls, ToolCallRows(live, turn)...)
		require.Empty(t, difference(live, c.rebuild(t, l, 6)), "turn %d after tool calls", turn)
	}
	checkRows(t, live, c)
	reasons := map[string]int{}
	for i, e := range live {
		row := TrajectoryRow(e)
		if e.Excluded == "" {
			require.Empty(t, cmp.Diff(plain[i], e))
			require.Nil(t, row.Excluded)
			continue
		}
		require.Equal(t, string(FinishExcluded), row.Finish)
		require.Equal(t, e.Excluded, *row.Excluded)
		reasons[strings.SplitN(e.Excluded, ":", 2)[0]]++
	}
	require.Positive(t, reasons["engine"])
	require.Positive(t, reasons["sandbox"])
}

func TestEvaluationExcludesNothing(t *testing.T) {
	l := newLoop(t, settings, 11)
	episodes, streams := fresh(t, l, 2)
	engine := &fragile{babbler: &babbler{tok: l.tok}, faulty: on(streams[3]), panics: true}
	require.ErrorIs(t, l.RunEpisodes(t.Context(), engine, callsOf(new(python)), "v", episodes, nil), errRow)
	episodes, _ = fresh(t, l, 8)
	require.ErrorIs(t, l.RunEpisodes(t.Context(), &babbler{tok: l.tok}, callsOf(brittle{"print"}), "v", episodes, nil),
		errBroken)
}

func TestReasonsAreOneBoundedLine(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"lost", "engine: lost"},
		{"lost\nat row 7", "engine: lost"},
		{"\r\nlost\r\n", "engine: lost"},
		{"caf\xe9", "engine: caf\uFFFD"},
		{"", "engine: "},
	} {
		require.Equal(t, tt.want, Reason("engine", tt.text))
	}
	long := Reason("engine", strings.Repeat("漢", 500))
	require.LessOrEqual(t, len(long), reasonBytes)
	require.True(t, strings.HasSuffix(long, "漢…"), long)
}

// terse gives no entropies, and no log-probabilities if it passes text alone.
type terse struct {
	*fragile
	text bool
}

func (s *terse) Generate(ctx context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	g, err := s.fragile.Generate(ctx, req)
	g.Entropies = nil
	if s.text {
		g.LogProbs = nil
	}
	return g, err
}

// A sampler may give no entropies, or no log-probabilities either: the rows say so, and episodes are rebuilt from them.
func TestASamplerWithoutNumbers(t *testing.T) {
	l := newLoop(t, settings, 11)
	for _, text := range []bool{false, true} {
		c := committed{prompts: prompts(l, 12)}
		episodes, streams := fresh(t, l, 12)
		s := &terse{fragile: &fragile{babbler: &babbler{tok: l.tok}, faulty: on(streams[3])}, text: text}
		require.NoError(t, l.Respond(t.Context(), s, "v", episodes))
		c.turns = TurnRows(episodes, 0)
		for _, r := range c.turns {
			require.NoError(t, r.Validate())
			if r.Excluded != nil {
				continue
			}
			require.Nil(t, r.Entropies)
			require.Equal(t, text, r.LogProbs == nil)
		}
		require.Equal(t, c.turns, TurnRows(c.rebuild(t, l, 4), 0))
	}
}
