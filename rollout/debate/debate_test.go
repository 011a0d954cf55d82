package debate

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// round reads proposals from a text such as "a b -", where a dash abstains.
func round(text string) []Proposal {
	var out []Proposal
	for _, word := range strings.Fields(text) {
		if word == "-" {
			out = append(out, Proposal{Abstained: true})
		} else {
			out = append(out, Proposal{Candidate: word})
		}
	}
	return out
}

func rounds(texts ...string) (out [][]Proposal) {
	for _, t := range texts {
		out = append(out, round(t))
	}
	return out
}

// Worked by hand from S25: a candidate needs more than N/2 of all agents, those that abstain included.
func TestMajority(t *testing.T) {
	for text, want := range map[string]int{
		"a": 0, "a a a": 0, "b a a": 1, "a b a": 0, "a b c": -1, "a a - - -": -1, "a a - - a": 0, "- - -": -1,
		"c b b a b": 1, "a a b b c": -1, "-": -1,
	} {
		agent, ok := Majority(round(text))
		require.Equal(t, want >= 0, ok, text)
		if ok {
			require.Equal(t, want, agent, text)
		}
	}
}

func TestUniqueAndAgreement(t *testing.T) {
	require.Equal(t, []string{"b", "a"}, Unique(round("b a - b a")))
	require.Nil(t, Unique(round("- -")))
	require.InDelta(t, 2.0/5, Agreement(round("b a - b a")), 1e-12)
	require.Zero(t, Agreement(round("- - -")))
	require.Zero(t, Agreement(nil))
}

func TestJudge(t *testing.T) {
	r := Rules{Agents: 3, Rounds: 2}
	second := func(n int) int { return min(1, n-1) }
	for _, c := range []struct {
		rounds [][]Proposal
		want   Verdict
	}{
		{rounds("a b a"), Verdict{Decided: true}},
		{rounds("a b c"), Verdict{}},
		{rounds("a b c", "a - c"), Verdict{}},
		{rounds("a b c", "c b b"), Verdict{Decided: true, Agent: 1}},
		{rounds("a b c", "a b c", "a b b"), Verdict{Decided: true, Agent: 1}},
		{rounds("a b c", "a b c", "- b c"), Verdict{Decided: true, Agent: 2, Drawn: true}},
		{rounds("a b c", "a b c", "- - -"), Verdict{Decided: true, Agent: 1, Drawn: true}},
	} {
		got, err := r.Judge(c.rounds, second)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%v", c.rounds)
	}
}

func TestJudgeRefusesWhatIsNoDebate(t *testing.T) {
	r := Rules{Agents: 3, Rounds: 1}
	for text, faulty := range map[string][][]Proposal{
		"has 0 rounds":                      nil,
		"has 3 rounds, want 1 to 2":         rounds("a b c", "a b c", "a b c"),
		"round 0 has 2 proposals":           rounds("a b"),
		"went on after the majority of rou": rounds("a a c", "a b c"),
	} {
		_, err := r.Judge(faulty, nil)
		require.ErrorContains(t, err, text)
	}
	require.ErrorContains(t, Rules{Agents: 4}.Validate(), "must be odd")
	require.ErrorContains(t, Rules{Agents: -1}.Validate(), "must be odd")
	require.ErrorContains(t, Rules{Agents: 3, Rounds: -1}.Validate(), "must not be negative")
}

// The property of the rule, against a slow count: a debate ends at the first round in which some candidate has more
// than half of the votes, and after the last round always, with a proposal of that round.
func TestDebatesEndAtTheFirstMajority(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	drawn := 0
	for range 5000 {
		r := Rules{Agents: 1 + 2*random.IntN(4), Rounds: random.IntN(4)}
		var so [][]Proposal
		for t0 := 0; ; t0++ {
			now := make([]Proposal, r.Agents)
			for i := range now {
				if n := random.IntN(5); n == 4 {
					now[i].Abstained = true
				} else {
					now[i].Candidate = strconv.Itoa(n)
				}
			}
			so = append(so, now)
			v, err := r.Judge(so, random.IntN)
			require.NoError(t, err)
			require.Equal(t, slowMajority(now) || t0 == r.Rounds, v.Decided)
			require.Equal(t, v.Decided && !slowMajority(now), v.Drawn)
			if !v.Decided {
				continue
			}
			if v.Drawn {
				drawn++
			}
			require.True(t, !now[v.Agent].Abstained || len(Unique(now)) == 0)
			break
		}
	}
	require.Greater(t, drawn, 100)
}

func slowMajority(round []Proposal) bool {
	for _, p := range round {
		n := 0
		for _, q := range round {
			if !p.Abstained && !q.Abstained && q.Candidate == p.Candidate {
				n++
			}
		}
		if n > len(round)/2 {
			return true
		}
	}
	return false
}
