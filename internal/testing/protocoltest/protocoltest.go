// Package protocoltest holds the conformance suite of protocols. It tests the contract of protocol.Protocol.
package protocoltest

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

// Moves of scripts. A protocol can write those of its kind and no others.
var (
	actions = []env.Move{{Action: "up"}, {Thought: "the box is below", Action: "go to shelf 1"}}
	calls   = []env.Move{{Code: "print(12+3)"}, {Code: "print(", Broken: true},
		{Thought: "I add.", Code: "x = \"a < b\"\nif x:\n    print(x)"}}
	answers = []env.Move{{Answer: "15"}, {Answer: ""}, {Answer: `\frac{1}{2}`},
		{Thought: "The sum is known.", Answer: "-15"}}
)

// moves returns the moves that a protocol can write, and others.
func moves(spec protocol.Spec) (can, cannot []env.Move) {
	switch {
	case spec.Acts:
		return actions, slices.Concat(calls, answers)
	case spec.Tools:
		return slices.Concat(calls, answers), actions
	}
	return answers, slices.Concat(calls, actions)
}

// search is a tool other than Python, which a protocol may be able to call.
var search = protocol.Tool{Name: "search", Description: "Finds pages.",
	Parameters: json.RawMessage(
		`{"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}`)}

// Run runs the conformance suite on a protocol.
func Run(t *testing.T, p protocol.Protocol) {
	t.Helper()
	spec := p.Spec()
	for _, text := range []string{spec.Name, spec.Doc, spec.Form, spec.EndOfTurn} {
		require.NotEmpty(t, text)
	}
	require.True(t, len(spec.Tags) > 0 || !spec.Acts && !spec.Tools, "responses have tags")
	require.False(t, spec.Acts && spec.Tools, "a protocol acts or calls tools")
	require.NotEqual(t, spec.Acts, spec.Answer != "", "a protocol acts, or says where its answers are")
	s := newSuite(t, p)
	t.Run("marks", s.marks)
	t.Run("moves", s.moves)
	t.Run("hostile moves", s.hostileMoves)
	t.Run("contexts", s.contexts)
	t.Run("text from outside", s.outside)
	t.Run("responses", s.responses)
	if spec.Summaries {
		t.Run("summaries", func(t *testing.T) { s.summaries(t, p) })
	}
}

// suite is the protocol under test, with the tokenizer that its own policy would have.
type suite struct {
	p     protocol.Protocol
	spec  protocol.Spec
	tok   *tokenizer.Tokenizer
	stops []int32
}

func newSuite(t testing.TB, p protocol.Protocol) *suite {
	t.Helper()
	tok, err := tokenizer.New(p.Added())
	require.NoError(t, err)
	s := &suite{p: p, spec: p.Spec(), tok: tok}
	for _, text := range append([]string{s.spec.EndOfTurn}, s.spec.Stops...) {
		stop, ok := tok.ID(text)
		require.True(t, ok, "the stop %q is no token", text)
		s.stops = append(s.stops, stop)
	}
	return s
}

// marks checks that the marks can be guarded against, and that they cover stops and tags.
func (s *suite) marks(t *testing.T) {
	if len(s.spec.Marks) == 0 {
		t.Skip("the protocol has no marks")
	}
	for _, m := range s.spec.Marks {
		require.GreaterOrEqual(t, len(m), 2, "%q", m)
		for i := range len(m) {
			require.True(t, m[i] > ' ' && m[i] < 0x7f, "%q", m)
		}
	}
	covered := func(text string) bool {
		return slices.ContainsFunc(s.spec.Marks, func(m string) bool { return strings.Contains(text, m) })
	}
	for _, stop := range append([]string{s.spec.EndOfTurn}, s.spec.Stops...) {
		require.True(t, covered(stop), "no mark covers the stop %q", stop)
	}
	if s.spec.Acts {
		return // only responses are parsed, and text from outside never enters them
	}
	for _, tag := range s.spec.Tags {
		require.True(t, covered("<"+tag+">"), "no mark covers the tag %q", tag)
	}
}

// moves parses what the protocol writes. The last token of a response must be a stop, and no other may be one.
func (s *suite) moves(t *testing.T) {
	can, cannot := moves(s.spec)
	for _, m := range can {
		text, ok := s.p.Write(m)
		require.True(t, ok, "%+v", m)
		s.written(t, m, text, nil)
	}
	for _, m := range cannot {
		if m.Answer == "" && !m.IsCall() && m.Action == "" {
			continue // an empty answer is an empty move
		}
		_, ok := s.p.Write(m)
		require.False(t, ok, "%+v is not one of the protocol's moves", m)
	}
	call := env.Move{Thought: "I look.", Tool: "search", Arguments: `{"query": "capital of France"}`}
	if text, ok := s.p.Write(call); ok {
		s.written(t, call, text, []protocol.Tool{search})
	}
}

// written checks that a response is a move.
func (s *suite) written(t *testing.T, m env.Move, text string, tools []protocol.Tool) {
	t.Helper()
	ids := s.tok.Encode(text)
	for i, id := range ids {
		require.Equal(t, i == len(ids)-1, slices.Contains(s.stops, id), "token %d of %d of %q", i, len(ids), text)
	}
	got := s.p.Parse(text, tools)
	require.Equal(t, m.Thought, got.Reasoning, "%q", text)
	require.Equal(t, m.Action, got.Action, "%q", text)
	require.True(t, m.Broken || got.WellFormed, "%q", text)
	switch {
	case m.Broken:
		require.Len(t, got.Calls, 1)
		require.Equal(t, env.CallDecodeError, got.Calls[0].Error)
		require.NotEmpty(t, s.p.Body(protocol.Limit{}, got.Calls[0], nil))
	case m.IsCall():
		require.Len(t, got.Calls, 1, "%q", text)
		call := got.Calls[0]
		require.Empty(t, call.Error, "%q: %s", text, call.Message)
		if m.Tool == "" {
			require.Equal(t, strings.TrimSpace(m.Code), strings.TrimSpace(call.Code))
		} else {
			require.Equal(t, m.Tool, call.Name)
			require.JSONEq(t, m.Arguments, call.Arguments)
			require.Empty(t, call.Code)
		}
		require.Contains(t, s.p.Body(protocol.Limit{}, call, &protocol.Result{Output: "15"}), "15")
		require.Contains(t, s.p.Body(protocol.Limit{}, call, &protocol.Result{Errors: "no such name", Failed: true}),
			"no such name")
		for _, nothing := range []protocol.Result{{}, {Failed: true, Reason: "killed"}} {
			require.NotEmpty(t, s.p.Body(protocol.Limit{}, call, &nothing))
		}
	case m.Action == "":
		require.Empty(t, got.Calls, "%q", text)
		require.Equal(t, strings.TrimSpace(m.Answer), got.Answer)
		require.True(t, got.HasAnswer)
		require.Equal(t, 1, got.AnswerTags)
	}
}

// hostileMoves checks that a script's text that the protocol cannot express is refused, and never another move.
func (s *suite) hostileMoves(t *testing.T) {
	if len(s.spec.Marks) == 0 || s.spec.Acts {
		t.Skip("the protocol writes every text as it is")
	}
	rng := rand.New(rand.NewPCG(3, 3))
	refused := 0
	for range 2000 {
		m := env.Move{Thought: s.hostile(rng)}
		if rng.IntN(2) == 0 {
			m.Code = "print(1)\n" + s.hostile(rng)
		} else {
			m.Answer = s.hostile(rng)
		}
		text, ok := s.p.Write(m)
		if !ok {
			refused++
			continue
		}
		s.written(t, m, text, nil)
	}
	require.Positive(t, refused)
}

// hostile returns a text made of the protocol's own strings and of beginnings of them.
func (s *suite) hostile(rng *rand.Rand) string {
	pieces := append([]string{"<", "|", "<|", "</", ">", "`", "``", "\\", "\\boxed{", "{", "}", "\xff", "漢", "\n", " ",
		"x", s.spec.EndOfTurn, "<|im_start|>assistant\n"}, s.spec.Stops...)
	pieces = append(pieces, s.spec.Marks...)
	for _, tag := range s.spec.Tags {
		pieces = append(pieces, "<"+tag+">", "</"+tag+">", tag)
	}
	text := ""
	for range rng.IntN(7) {
		piece := pieces[rng.IntN(len(pieces))]
		if rng.IntN(4) == 0 {
			piece = piece[:rng.IntN(len(piece)+1)]
		}
		text += piece
	}
	return text
}

// contexts checks that contexts include what they are rendered from, and that a context after a stop that does not end
// the turn goes on with the same turn.
func (s *suite) contexts(t *testing.T) {
	first := s.p.Context(protocol.View{Instruction: "push", Task: "What is 1+1?", Observation: "#@$.#",
		Admissible: []string{"up"}})
	require.Contains(t, first, "What is 1+1?")
	if s.spec.Acts {
		s.acting(t)
		return
	}
	two := protocol.Round{Response: "a response" + s.spec.EndOfTurn, Calls: []env.ToolCall{{Code: "1"}, {Code: "2"}},
		Bodies: []string{"first body", "second body"}}
	v := protocol.View{Task: "What is 1+1?", Turn: 1, Rounds: []protocol.Round{two}}
	text := s.p.Context(v)
	require.Equal(t, text, s.p.Context(v))
	require.Contains(t, text, "first body")
	require.Less(t, strings.Index(text, "first body"), strings.Index(text, "second body"))
	require.Equal(t, s.spec.Whole, strings.Contains(text, "What is 1+1?"), "the task is in each whole prompt alone")
	one := protocol.Round{Calls: two.Calls[:1], Bodies: two.Bodies[:1]}
	for _, stop := range s.spec.Stops {
		one.Response = "a response" + stop
		v.Turn, v.Rounds = 2, []protocol.Round{two, one}
		after := s.p.Context(v)
		require.Contains(t, after, "first body")
		if !s.spec.Whole {
			require.NotContains(t, after, "second body", "only the last round is new")
		}
	}
}

// acting checks the contexts of a protocol of actions.
func (s *suite) acting(t *testing.T) {
	v := acted("#_@√#", "#@$.#")
	text := s.p.Context(v)
	require.Equal(t, text, s.p.Context(v))
	for _, want := range []string{"push", "#_@√#", "'up', 'left'", "#@$.#", "right", "already taken 3 step(s)",
		"most recent 2", "step 4", "[Observation 2: ", "Action 3: "} {
		require.Contains(t, text, want)
	}
}

func acted(seen, before string) protocol.View {
	return protocol.View{Instruction: "push", Task: "What is 1+1?", Turn: 3, Observation: seen,
		Admissible: []string{"up", "left"},
		Past: []protocol.Exchange{
			{Observation: before, Action: "right"},
			{Observation: "#_@√ #", Action: "still"},
		}}
}

// outside checks that no text of a task, a tool or an environment brings a mark into a context, whatever it holds: as
// text, and in the tokens.
func (s *suite) outside(t *testing.T) {
	if len(s.spec.Marks) == 0 {
		t.Skip("the protocol has no marks")
	}
	render := s.conversation
	if s.spec.Acts {
		render = s.played
	}
	text := render("plain")
	want, tokens := s.count(text)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		hostile := s.hostile(rng) + "." // a body is not empty
		got, marked := s.count(render(hostile))
		require.Equal(t, want, got, "%q", hostile)
		require.Equal(t, tokens, marked, "%q", hostile)
	}
}

// count returns how often a text holds each mark, and how many of its tokens hold one.
func (s *suite) count(text string) (marks []int, tokens int) {
	for _, m := range s.spec.Marks {
		marks = append(marks, strings.Count(text, m))
	}
	for _, piece := range s.tok.Pieces(s.tok.Encode(text)) {
		if slices.ContainsFunc(s.spec.Marks, func(m string) bool { return strings.Contains(piece, m) }) {
			tokens++
		}
	}
	return marks, tokens
}

// played renders prompts of an interactive environment that shows the text everywhere.
func (s *suite) played(text string) string {
	v := acted(text, text)
	v.Instruction, v.Task, v.Admissible, v.Past[0].Action = text, text, []string{text}, text
	start := protocol.View{Instruction: text, Task: text, Observation: text, Admissible: []string{text}}
	return s.p.Context(start) + s.p.Context(v)
}

// conversation renders the contexts of an episode in which the text is the task, what tools say about themselves, and
// everything that calls return.
func (s *suite) conversation(text string) string {
	named, err := json.Marshal(map[string]string{"type": "object", "title": text})
	if err != nil {
		panic(err) // a string always encodes
	}
	tools := []protocol.Tool{protocol.Python, {Name: "search", Description: text, Parameters: named}}
	out := s.p.Context(protocol.View{Instruction: text, Task: text, Tools: tools})
	limit := protocol.Limit{Bytes: 12}
	printed := text
	if s.spec.RawPrograms {
		printed = "plain"
	}
	ran, failed := env.ToolCall{Code: "1"}, env.ToolCall{Name: "search"}
	refused := env.ToolCall{Error: env.CallUnknownTool, Message: printed}
	round := protocol.Round{Calls: []env.ToolCall{ran, failed, refused, ran}, Bodies: []string{
		s.p.Body(protocol.Limit{}, ran, &protocol.Result{Output: printed, Errors: printed}),
		s.p.Body(protocol.Limit{}, failed, &protocol.Result{Output: text, Errors: text, Failed: true}),
		s.p.Body(protocol.Limit{}, refused, nil),
		s.p.Body(limit, ran, &protocol.Result{Output: printed}),
		s.p.Body(limit, failed, &protocol.Result{Output: text}),
	}}
	for _, end := range append([]string{s.spec.EndOfTurn}, s.spec.Stops...) {
		round.Response = end
		out += s.p.Context(protocol.View{Task: text, Tools: tools, Turn: 1, Rounds: []protocol.Round{round}})
	}
	return out
}

// responses checks that no text from a policy makes a protocol fail.
func (s *suite) responses(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 2000 {
		s.parsed(t, s.hostile(rng)+s.hostile(rng))
		s.parsed(t, s.hostile(rng)+strings.ToUpper(s.hostile(rng)))
	}
}

// parsed checks what holds for every response.
func (s *suite) parsed(t testing.TB, text string) {
	t.Helper()
	for _, tools := range [][]protocol.Tool{nil, {}, {protocol.Python, search}} {
		got := s.p.Parse(text, tools)
		require.Equal(t, got, s.p.Parse(text, tools))
		require.False(t, got.WellFormed && !s.spec.Ends(text), "%q is well formed and does not end", text)
		require.False(t, got.HasAnswer && got.AnswerTags == 0, "%q has an answer and no closed one", text)
		for _, c := range got.Calls {
			require.NotEmpty(t, s.p.Body(protocol.Limit{}, c, nil))
			if c.Error == "" {
				require.True(t, json.Valid([]byte(c.Arguments)), "%q", text)
				require.True(t, tools == nil || len(tools) > 0, "%q calls a tool where there is none", text)
				require.NotEmpty(t, s.p.Body(protocol.Limit{}, c, &protocol.Result{}))
			} else {
				require.NotEmpty(t, c.Message, "%q", text)
			}
		}
	}
}

// Fuzz fuzzes the parser with what the protocol writes, cut off at each place.
func Fuzz(f *testing.F, p protocol.Protocol) {
	s := newSuite(f, p)
	can, _ := moves(s.spec)
	for _, m := range can {
		text, ok := p.Write(m)
		require.True(f, ok, "%+v", m)
		for i := range len(text) + 1 {
			f.Add(text[:i])
		}
	}
	f.Fuzz(func(t *testing.T, text string) { s.parsed(t, text) })
}
