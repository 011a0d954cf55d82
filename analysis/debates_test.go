package analysis

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// proposals are the rows of debates of three agents with up to two rounds about questions with several golds; a round
// is a text such as "a b -".
func proposals(sample int, chosen [2]int, drawn bool, rounds ...string) (rows []schema.EvaluationDebateRow) {
	for t, round := range rounds {
		for agent, word := range strings.Fields(round) {
			r := schema.EvaluationDebateRow{GroupID: schema.GroupID(4, 2), Sample: int32(sample), Round: int32(t),
				Agent: int32(agent), Candidate: word}
			if word == "-" {
				r.Candidate, r.Abstained = "", true
			}
			r.Chosen = t == chosen[0] && agent == chosen[1]
			r.Drawn = r.Chosen && drawn
			rows = append(rows, r)
		}
	}
	return rows
}

func debatesOf(t *testing.T) Debating {
	t.Helper()
	var d Debating
	require.NoError(t, json.Unmarshal([]byte(`{"seed": 5, "environment": {"name": "search_qa"},
		"evaluation": {"debate": {"agents": 3, "rounds": 1}}}`), &d))
	return d
}

func TestDebatesAreDecidedAgain(t *testing.T) {
	d := debatesOf(t)
	last := rollout.DebateDraw(5, 4, 2, 1, 0)(3)
	rows := append(proposals(0, [2]int{0, 0}, false, "Owl the b"),
		proposals(1, [2]int{1, last}, true, "a b c", "x y z")...)
	rows[1].Candidate = "the owl" // the same words as "Owl"
	got, err := d.Replay(rows)
	require.NoError(t, err)
	require.Equal(t, &Debates{Agents: 3, Drawn: 1, Rounds: []DebateRound{
		{Debates: 2, Agreement: (2.0/3 + 1.0/3) / 2, Decided: 1}, {Debates: 1, Agreement: 1.0 / 3}}}, got)
	require.Contains(t, strings.Join(got.lines(), "\n"), "1 of 2 debates, without a majority")
}

// Every change of a recorded debate that its proposals do not bear out is found.
func TestChangedDebatesAreFaults(t *testing.T) {
	d := debatesOf(t)
	draw := rollout.DebateDraw(5, 4, 2, 0, 0)(3)
	for text, rows := range map[string][]schema.EvaluationDebateRow{
		"its proposals give agent 0 of round 0": proposals(0, [2]int{0, 1}, false, "a a b"),
		"its proposals give agent":              proposals(0, [2]int{1, (draw + 1) % 3}, true, "a b c", "a b c"),
		"0 proposals were chosen":               proposals(0, [2]int{5, 5}, false, "a a b"),
		"where no majority had decided it":      proposals(0, [2]int{0, 0}, false, "a b c"),
		"went on after the majority of round 0": proposals(0, [2]int{1, 0}, false, "a a c", "a a c"),
		"has 2 proposals, want 3":               proposals(0, [2]int{0, 0}, false, "a a"),
		"comes before others":                   proposals(0, [2]int{0, 0}, false, "a a b")[1:],
	} {
		_, err := d.Replay(rows)
		require.ErrorContains(t, err, text)
	}
	d.Evaluation.Debate = nil
	_, err := d.Replay(proposals(0, [2]int{0, 0}, false, "a a b"))
	require.ErrorContains(t, err, "the recipe has no evaluation.debate")
}
