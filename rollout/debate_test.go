package rollout

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/rollout/debate"
)

func said(texts ...string) []Contribution {
	out := make([]Contribution, len(texts))
	for i, text := range texts {
		out[i] = Contribution{Proposal: debate.Proposal{Candidate: text, Abstained: text == ""},
			Reasoning: "because of " + text}
	}
	return out
}

// S26: the first round reads the task alone, the second the candidates of the first, each once, and the third also the
// reasoning of the second. The constraints of the aggressive variant are in every prompt.
func TestWhatDebatersRead(t *testing.T) {
	s := DebateSettings{Rules: debate.Rules{Agents: 3, Rounds: 3}, Aggressive: true}
	plain, d := &Debated{}, &Debated{aggressive: s.constraints(4)}
	require.Empty(t, plain.nextPrompt(true))
	require.Contains(t, d.nextPrompt(true), "within 4 turns")
	require.NoError(t, d.judge(s, said("7", " 8", ""), 1))
	require.False(t, d.Verdict.Decided)
	text := d.nextPrompt(true)
	require.Contains(t, text, "1. 7\n2. 8\n")
	require.NotContains(t, text, "because of")
	require.Contains(t, text, "within 4 turns")
	require.NoError(t, d.judge(s, said("9", "8", "7"), 1))
	require.Contains(t, d.nextPrompt(true), "Agent 2 thinks: because of 8\n")
	require.NotContains(t, d.nextPrompt(false), "because of")
	require.NoError(t, d.judge(s, said("9", " 7 ", "7"), 1))
	require.Equal(t, debate.Verdict{Decided: true, Agent: 1}, d.Verdict)
	require.Equal(t, " 7 ", d.Winner().Candidate)
	require.Error(t, d.judge(s, said("9", "7", "7"), 1), "it is over")
}

func TestShortenedKeepsCharactersWhole(t *testing.T) {
	require.Equal(t, "ab", shortened(" ab \n", 2))
	require.Equal(t, "aé…", shortened("aéé", 3))
	require.Equal(t, "a…", shortened("aéé", 2))
}

// The same seed holds the same debates, whatever other debates are held next to them, and every episode has a number of
// its own.
func TestDebatesFollowFromTheSeed(t *testing.T) {
	l := newLoop(t, Settings{MaxTurns: 2, MaxTurnTokens: 48, MaxTokens: 900, Temperature: 1}, 3)
	agents := &Debates{DebateSettings{Rules: debate.Rules{Agents: 3, Rounds: 2}}, l, &babbler{tok: l.tok}, "v"}
	hold := func(groups ...int) map[int]string {
		var ids []Identity
		var tasks []env.Task
		for _, g := range groups {
			ids = append(ids, Identity{Label: LabelDebate, Step: 1, Group: g, Sample: 1})
			tasks = append(tasks, env.Task{ID: "p", Text: "What is 2 + 3?", Answer: "5"})
		}
		debates, err := agents.Answers(t.Context(), callsOf(new(python)), ids, tasks, nil)
		require.NoError(t, err)
		out, seen := map[int]string{}, map[string]bool{}
		for _, d := range debates {
			var text strings.Builder
			for _, round := range d.Rounds {
				for _, c := range round {
					require.False(t, seen[c.Episode.TrajectoryID], c.Episode.TrajectoryID)
					seen[c.Episode.TrajectoryID] = true
					require.Equal(t, "What is 2 + 3?", c.Episode.Task.Text, "graders see the question alone")
					fmt.Fprintf(&text, "%s %q %v\n", c.Episode.TrajectoryID, c.Candidate, c.Abstained)
				}
			}
			fmt.Fprint(&text, d.Verdict)
			out[d.Group] = text.String()
			require.Same(t, d.Winner().Episode, d.Decides)
		}
		return out
	}
	together := hold(0, 1, 2, 3, 4, 5)
	require.Equal(t, together[4], hold(4)[4])
	require.Equal(t, together, hold(0, 1, 2, 3, 4, 5))
	all := strings.Join([]string{together[0], together[1], together[2], together[3]}, "\n")
	require.Contains(t, all, "00001/0000/009", "debate 1 begins after the nine episodes of debate 0")
}
