package rollout

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rollout/debate"
)

// Debates between agents of one policy (ARLArena App. E). Where tasks are questions, each agent runs an episode of its
// own in each round and its answer is its candidate; the debate decides on one of the episodes. In an interactive
// environment the agents debate each action of one episode, so that a debate is held at each turn. Package
// rollout/debate decides; this file says what the agents read.
//
// Departures: the paper prints no prompts, so the words are our own. Where the reasoning of the others does not fit
// into the agent's budget of tokens, it is left out, and an agent whose prompt does not fit at all abstains.

// LabelDebate is the label of the random streams of debating agents.
const LabelDebate = "debate"

// DebateSettings describe debates.
type DebateSettings struct {
	debate.Rules
	// Aggressive adds the constraints of the aggressive variant (App. E.2) to every prompt.
	Aggressive bool
	// Same returns a text that equal candidates have in common; nil compares candidates without surrounding spaces.
	Same func(candidate string) string
}

// Debates are held by agents of one policy.
type Debates struct {
	DebateSettings
	Loop    *Loop
	Sampler policy.Sampler
	Version string // identifies the policy that the sampler has
}

// Contribution is one agent's proposal in one round, and how it was made.
type Contribution struct {
	debate.Proposal
	Reasoning string
	// Episode is the agent's own episode, where answers are debated.
	Episode *Episode
	// Turn is the proposed turn, where actions are debated; it has no response if the prompt did not fit.
	Turn Turn
}

// Debated is one debate: its rounds, and how it ended.
type Debated struct {
	Identity            // of the debate, or of the episode whose actions are debated
	At         int      // the turn whose action was debated; 0 for an answer
	Decides    *Episode // the episode that was chosen, or whose action was
	Rounds     [][]Contribution
	Verdict    debate.Verdict
	proposals  [][]debate.Proposal
	aggressive string // the constraints that every agent reads; "" if there are none
}

// Winner is the contribution that the debate ended with.
func (d *Debated) Winner() *Contribution { return &d.Rounds[len(d.Rounds)-1][d.Verdict.Agent] }

// judge adds a round and decides whether it is the last one.
func (d *Debated) judge(s DebateSettings, round []Contribution, runSeed uint64) (err error) {
	proposals := make([]debate.Proposal, len(round))
	for i, c := range round {
		proposals[i] = c.Proposal
		if !c.Abstained {
			proposals[i].Candidate = s.canonical(c.Candidate)
		}
	}
	d.Rounds, d.proposals = append(d.Rounds, round), append(d.proposals, proposals)
	d.Verdict, err = s.Judge(d.proposals, DebateDraw(runSeed, d.Step, d.Group, d.Sample, d.At))
	if err != nil {
		return fmt.Errorf("debate %d of group %d: %w", d.Sample, d.Group, err)
	}
	return nil
}

// DebateDraw returns the draw of a debate that ends without a majority.
func DebateDraw(runSeed uint64, step, group, sample, turn int) func(n int) int {
	return seed.Rand("debate/draw", runSeed, uint64(step), uint64(group), uint64(sample), uint64(turn)).IntN
}

func (s DebateSettings) canonical(candidate string) string {
	if s.Same != nil {
		return s.Same(candidate)
	}
	return strings.TrimSpace(candidate)
}

// reasoningBytes bounds what an agent reads of another's reasoning.
const reasoningBytes = 600

// nextPrompt returns what the agents of the next round read after the task: nothing in the first round of a debate that
// is not aggressive. The reasoning of the first round is not shown (R⁽⁰⁾ = ∅).
func (d *Debated) nextPrompt(reasoning bool) string {
	var b strings.Builder
	if n := len(d.Rounds); n > 0 {
		b.WriteString("Other agents work on this task too, and most of them do not agree yet. They propose:\n")
		if len(debate.Unique(d.proposals[n-1])) == 0 {
			b.WriteString("(nothing)\n")
		}
		seen := map[string]bool{}
		for i, c := range d.Rounds[n-1] {
			if p := d.proposals[n-1][i]; !p.Abstained && !seen[p.Candidate] {
				seen[p.Candidate] = true
				fmt.Fprintf(&b, "%d. %s\n", len(seen), strings.TrimSpace(c.Candidate))
			}
		}
		if n > 1 && reasoning {
			for i, c := range d.Rounds[n-1] {
				if text := shortened(c.Reasoning, reasoningBytes); text != "" {
					fmt.Fprintf(&b, "Agent %d thinks: %s\n", i+1, text)
				}
			}
		}
		b.WriteString("Agree with one of the proposals, or make a better one.")
	}
	if d.aggressive != "" {
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		b.WriteString(d.aggressive)
	}
	return b.String()
}

// constraints are the principles of the aggressive variant: bounded exploration, temporal efficiency, incentive
// awareness and pragmatic optimisation. left is how many turns the agent still has.
func (s DebateSettings) constraints(left int) string {
	if !s.Aggressive {
		return ""
	}
	return fmt.Sprintf("You must finish within %d turns, and should finish as early as you can. A partial result "+
		"earns a part of the reward: take the best result that you can get instead of searching for a perfect one.",
		left)
}

// shortened cuts a text to the given number of bytes, at the end of a character.
func shortened(text string, most int) string {
	text = strings.TrimSpace(text)
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
