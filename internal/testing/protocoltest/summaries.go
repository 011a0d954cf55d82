package protocoltest

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

// summaries checks what a protocol asks for a summary with.
func (s *suite) summaries(t *testing.T, p protocol.Protocol) {
	var added []string
	for _, text := range append(p.Added(), protocol.Asks(p)...) {
		if !strings.Contains("\x00"+strings.Join(added, "\x00")+"\x00", "\x00"+text+"\x00") {
			added = append(added, text)
		}
	}
	tok, err := tokenizer.New(added)
	require.NoError(t, err, "the fixed strings are tokens")
	for _, text := range protocol.Asks(p) {
		_, ok := tok.ID(text)
		require.True(t, ok)
	}
	if s.spec.Acts {
		s.toldAgain(t, p)
		return
	}
	last := protocol.Round{Calls: []env.ToolCall{{Code: "1"}}, Bodies: []string{"a body"}}
	for _, end := range append([]string{s.spec.EndOfTurn}, s.spec.Stops...) {
		last.Response = "a response" + end
		asked := protocol.AskSummary(p, protocol.View{Task: "1+1", Turn: 1, Rounds: []protocol.Round{last}})
		require.Contains(t, asked, "a body", "the summary can tell of the latest results")
		asks := protocol.Asks(p)
		require.True(t, strings.HasSuffix(asked, asks[0]) || strings.HasSuffix(asked, asks[1]), "%q", asked)
		turns := strings.Count(asked, s.spec.EndOfTurn) + 1 // the response may have ended the first one
		if end != s.spec.EndOfTurn {
			turns--
		}
		require.Equal(t, 2, turns, "the policy's turn has ended, and the user's too: %q", asked)
	}
	for _, told := range []string{"", "what I did", s.spec.EndOfTurn, "what I did" + s.spec.EndOfTurn} {
		v := protocol.View{Task: "1+1", Turn: 2, Rounds: []protocol.Round{last, {Response: told}}}
		text := told + protocol.AfterSummary(p, v)
		require.Equal(t, 2, strings.Count(text, s.spec.EndOfTurn), "%q", text)
		require.True(t, strings.HasSuffix(text, s.spec.Opening))
		require.NotContains(t, text, "a body")
	}
}

// toldAgain checks that whole prompts hold the summary, whatever it is, as text.
func (s *suite) toldAgain(t *testing.T, p protocol.Protocol) {
	v := acted("#_@√#", "#@$.#")
	asked := protocol.AskSummary(p, v)
	require.Contains(t, asked, "#@$.#")
	require.NotContains(t, asked, "admissible")
	v.Summary = "I pushed."
	want, tokens := s.count(p.Context(v))
	require.Contains(t, p.Context(v), protocol.Asks(p)[0]+"I pushed.")
	require.Contains(t, protocol.AskSummary(p, v), protocol.Asks(p)[0]+"I pushed.")
	rng := rand.New(rand.NewPCG(5, 5))
	for range 500 {
		v.Summary = s.hostile(rng) + "."
		got, marked := s.count(p.Context(v))
		require.Equal(t, want, got, "%q", v.Summary)
		require.Equal(t, tokens, marked, "%q", v.Summary)
	}
}
