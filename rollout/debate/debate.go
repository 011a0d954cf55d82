// Package debate decides debates: several agents propose candidates in rounds until a strict majority proposes the
// same one.
//
// Equations, for N agents with the candidates C⁽ᵗ⁾ of round t:
//
//	M(C) = ĉ if |{c ∈ C : c = ĉ}| > N/2, otherwise none             (S25)
//	the agents of round 0 read the task alone                        (S24)
//	those of round t ≥ 1 also read Unique(C⁽ᵗ⁻¹⁾) and the reasoning  (S26)
//	of round t−1, where that of round 0 counts as empty
//
// The debate ends at the first round with a majority. After round T without one, a candidate is drawn at random from
// C⁽ᵀ⁾.
//
// Source: ARLArena (002) App. E.1. Departures: an agent that proposes nothing abstains. It counts among the N and can
// be no one's majority, and it is not drawn as long as another agent has proposed something. Of the agents that propose
// the winning candidate the first one is chosen. The draw is an input, so that it can be repeated.
//
// A *proposal* is what one agent says in one round. A *verdict* says whether a debate has ended after its last
// round, and with which proposal.
package debate

import "fmt"

// Proposal is what one agent proposes in one round. Candidates are equal if their texts are.
type Proposal struct {
	Candidate string
	Abstained bool // it proposes nothing
}

// Rules bound a debate.
type Rules struct {
	Agents int // N, odd
	Rounds int // T, the last round; 0 is the first one
}

// Verdict says whether a debate has ended, and how.
type Verdict struct {
	Decided bool
	Agent   int  // whose proposal of the last round won
	Drawn   bool // it was drawn, because no round had a majority
}

// Validate names the first rule that no debate can follow.
func (r Rules) Validate() error {
	if r.Agents < 1 || r.Agents%2 == 0 {
		return fmt.Errorf("agents: must be odd, so that votes cannot tie, got %d", r.Agents)
	}
	if r.Rounds < 0 {
		return fmt.Errorf("rounds: must not be negative, got %d", r.Rounds)
	}
	return nil
}

// Majority returns the first agent of those whose common candidate more than half of all agents propose.
func Majority(round []Proposal) (agent int, ok bool) {
	counts := count(round)
	for i, p := range round {
		if !p.Abstained && 2*counts[p.Candidate] > len(round) {
			return i, true
		}
	}
	return 0, false
}

func count(round []Proposal) map[string]int {
	counts := map[string]int{}
	for _, p := range round {
		if !p.Abstained {
			counts[p.Candidate]++
		}
	}
	return counts
}

// Unique lists the different candidates of a round in the order of the agents.
func Unique(round []Proposal) (candidates []string) {
	seen := map[string]bool{}
	for _, p := range round {
		if !p.Abstained && !seen[p.Candidate] {
			seen[p.Candidate] = true
			candidates = append(candidates, p.Candidate)
		}
	}
	return candidates
}

// Agreement is the share of all agents that propose the most frequent candidate.
func Agreement(round []Proposal) float64 {
	most := 0
	for _, n := range count(round) {
		most = max(most, n)
	}
	if len(round) == 0 {
		return 0
	}
	return float64(most) / float64(len(round))
}

// Judge decides after the last of the rounds so far. draw returns a number from 0 to n−1; it is called only if the
// debate ends without a majority.
func (r Rules) Judge(rounds [][]Proposal, draw func(n int) int) (Verdict, error) {
	if err := r.Validate(); err != nil {
		return Verdict{}, err
	}
	last := len(rounds) - 1
	if last < 0 || last > r.Rounds {
		return Verdict{}, fmt.Errorf("judge a debate: it has %d rounds, want 1 to %d", len(rounds), r.Rounds+1)
	}
	for t, round := range rounds {
		if len(round) != r.Agents {
			return Verdict{}, fmt.Errorf("judge a debate: round %d has %d proposals, want %d", t, len(round), r.Agents)
		}
		agent, ok := Majority(round)
		switch {
		case ok && t == last:
			return Verdict{Decided: true, Agent: agent}, nil
		case ok:
			return Verdict{}, fmt.Errorf("judge a debate: it went on after the majority of round %d", t)
		}
	}
	if last < r.Rounds {
		return Verdict{}, nil
	}
	return Verdict{Decided: true, Agent: drawProposer(rounds[last], draw), Drawn: true}, nil
}

// drawProposer draws one of the agents that propose something, or of all if none does.
func drawProposer(round []Proposal, draw func(n int) int) int {
	var from []int
	for i, p := range round {
		if !p.Abstained {
			from = append(from, i)
		}
	}
	if len(from) == 0 {
		return draw(len(round))
	}
	return from[draw(len(from))]
}
