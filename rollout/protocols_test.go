package rollout

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env/calc"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

// calc's teacher writes in every protocol with tools: calls that run, calls that break, and answers. The parser finds
// all of them, and the tokens that carry loss are exactly the responses.
func TestDemonstrationsInEveryProtocol(t *testing.T) {
	for _, p := range protocol.All {
		spec := p.Spec()
		if !spec.Tools {
			continue
		}
		t.Run(spec.Name, func(t *testing.T) {
			tok, err := TokenizerOf(p, calc.Declaration)
			require.NoError(t, err)
			with := settings
			with.Protocol, with.MaxTokens = p, 256
			l, err := NewLoop(with, tok, 5)
			require.NoError(t, err)
			all, err := demonstrated(t, l, box(&python{}), taught(calc.DefaultNoise(), 2, 3), 0, 400)
			require.NoError(t, err)
			right, ran, undecoded, tokens := 0, 0, 0, 0
			for i, d := range all {
				require.Equal(t, FinishAnswered, d.Episode.Finish, "demonstration %d: %s", i, d.Episode.Text())
				tokens = max(tokens, len(d.Tokens))
				written := ""
				for j, m := range d.Mask {
					if m == 1 {
						written += tok.Decode(d.Tokens[j : j+1])
					}
				}
				for _, turn := range d.Episode.Turns {
					require.True(t, spec.Ends(turn.Text))
					require.Equal(t, turn.Text, written[:len(turn.Text)])
					written = written[len(turn.Text):]
					for k, c := range turn.Parsed.Calls {
						if c.Error != "" {
							undecoded++
						} else if !turn.Results[k].Failed() {
							ran++
						}
					}
				}
				require.Empty(t, written)
				if d.Right {
					right++
				}
			}
			require.InDelta(t, 0.33, float64(right)/float64(len(all)), 0.08)
			require.Greater(t, ran, 200)
			require.Positive(t, undecoded)
			require.Less(t, tokens, 200, "prompts and tags are tokens")
		})
	}
}
