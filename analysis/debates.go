package analysis

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env/environments"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/rl/words"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/rollout/debate"
	"github.com/ropewalk/ropewalk/schema"
)

// Debates says how the debates of an evaluation went, one for each answer, or for each action of an episode.
type Debates struct {
	Agents int           `json:"agents"`
	Rounds []DebateRound `json:"rounds"`
	// Drawn counts the debates that ended without a majority, so that a candidate was drawn.
	Drawn int `json:"drawn"`
}

// DebateRound is one round of all debates that reached it.
type DebateRound struct {
	Debates int `json:"debates"`
	// Agreement is the mean share of the agents that propose the most frequent candidate.
	Agreement float64 `json:"agreement"`
	Decided   int     `json:"decided"` // debates that ended here with a majority
}

// Debating is what a recipe says about debates.
type Debating struct {
	Seed        uint64 `json:"seed"`
	Environment struct {
		Name string `json:"name"`
	} `json:"environment"`
	Evaluation struct {
		Debate *struct {
			Agents int `json:"agents"`
			Rounds int `json:"rounds"`
		} `json:"debate"`
	} `json:"evaluation"`
}

// same is the text that equal candidates have in common.
func (d Debating) same(candidate string) string {
	if of, _ := environments.Named(d.Environment.Name); of.Golds {
		return words.Normalize(candidate)
	}
	return strings.TrimSpace(candidate)
}

// heldDebate is one debate as the record holds it.
type heldDebate struct {
	at        schema.EvaluationDebateRow // its first row
	proposals [][]debate.Proposal
	chosen    []schema.EvaluationDebateRow
}

// collect groups the rows of debates, in canonical order, by debate and round.
func (d Debating) collect(rows []schema.EvaluationDebateRow) (out []*heldDebate, err error) {
	schema.Sort(rows)
	for _, r := range rows {
		last := len(out) - 1
		if last < 0 || !out[last].holds(r) {
			out, last = append(out, &heldDebate{at: r}), last+1
		}
		h := out[last]
		if int(r.Round) == len(h.proposals) {
			h.proposals = append(h.proposals, nil)
		}
		if int(r.Round) != len(h.proposals)-1 || int(r.Agent) != len(h.proposals[r.Round]) {
			return nil, fmt.Errorf("%s: the proposal of agent %d in round %d comes before others", h, r.Agent, r.Round)
		}
		p := debate.Proposal{Abstained: r.Abstained}
		if !r.Abstained {
			p.Candidate = d.same(r.Candidate)
		}
		h.proposals[r.Round] = append(h.proposals[r.Round], p)
		if r.Chosen {
			h.chosen = append(h.chosen, r)
		}
	}
	return out, nil
}

// holds reports whether a proposal belongs to the debate.
func (h *heldDebate) holds(r schema.EvaluationDebateRow) bool {
	return h.at.GroupID == r.GroupID && h.at.Sample == r.Sample && h.at.Turn == r.Turn
}

func (h *heldDebate) String() string {
	return fmt.Sprintf("debate %d of %s about turn %d", h.at.Sample, h.at.GroupID, h.at.Turn)
}

// replay decides a recorded debate again and compares the outcome with the record's.
func (d Debating) replay(h *heldDebate) error {
	step, group, err := schema.ParseGroupID(h.at.GroupID)
	if err != nil {
		return err
	}
	rules := debate.Rules{Agents: d.Evaluation.Debate.Agents, Rounds: d.Evaluation.Debate.Rounds}
	got, err := rules.Judge(h.proposals, rollout.DebateDraw(d.Seed, step, group, int(h.at.Sample), int(h.at.Turn)))
	if err != nil {
		return fmt.Errorf("%s: %w", h, err)
	}
	switch {
	case !got.Decided:
		return fmt.Errorf("%s: it ended after round %d, where no majority had decided it", h, len(h.proposals)-1)
	case len(h.chosen) != 1:
		return fmt.Errorf("%s: %d proposals were chosen, want 1", h, len(h.chosen))
	}
	c := h.chosen[0]
	if int(c.Round) != len(h.proposals)-1 || int(c.Agent) != got.Agent || c.Drawn != got.Drawn {
		return fmt.Errorf("%s: agent %d of round %d was chosen, but its proposals give agent %d of round %d", h,
			c.Agent, c.Round, got.Agent, len(h.proposals)-1)
	}
	return nil
}

// Replay decides all debates again. It returns how they went.
func (d Debating) Replay(rows []schema.EvaluationDebateRow) (*Debates, error) {
	if d.Evaluation.Debate == nil {
		return nil, fmt.Errorf("the recipe has no evaluation.debate")
	}
	held, err := d.collect(rows)
	if err != nil {
		return nil, err
	}
	out := &Debates{Agents: d.Evaluation.Debate.Agents}
	for _, h := range held {
		if err := d.replay(h); err != nil {
			return nil, err
		}
		for t, round := range h.proposals {
			if t == len(out.Rounds) {
				out.Rounds = append(out.Rounds, DebateRound{})
			}
			out.Rounds[t].Debates++
			out.Rounds[t].Agreement += debate.Agreement(round)
		}
		if h.chosen[0].Drawn {
			out.Drawn++
		} else {
			out.Rounds[len(h.proposals)-1].Decided++
		}
	}
	for t := range out.Rounds {
		out.Rounds[t].Agreement /= float64(out.Rounds[t].Debates)
	}
	return out, nil
}

// debates reads the debates of an evaluation; nil if it has none.
func (v *Visible) debates(ctx context.Context, m schema.Manifest) (*Debates, error) {
	if len(m.ShardsOf(schema.EvaluationDebates)) == 0 {
		return nil, nil
	}
	var d Debating
	if err := v.Recipe(ctx, &d); err != nil {
		return nil, err
	}
	rows, err := rowsIn[schema.EvaluationDebateRow](ctx, v.record, m)
	if err != nil {
		return nil, err
	}
	out, err := d.Replay(rows)
	if err != nil {
		return nil, fmt.Errorf("%w: the debates of %s: %w", commit.ErrDamaged, m.ManifestKey(), err)
	}
	return out, nil
}

// lines describe the debates, a round a line.
func (d *Debates) lines() (lines []string) {
	if d == nil {
		return nil
	}
	for t, r := range d.Rounds {
		lines = append(lines, fmt.Sprintf("%-12s %d debates of %d agents, agreement %.1f%%, %d decided",
			fmt.Sprintf("round %d", t), r.Debates, d.Agents, 100*r.Agreement, r.Decided))
	}
	return append(lines, fmt.Sprintf("%-12s %d of %d debates, without a majority", "drawn", d.Drawn, d.total()))
}

// total counts the debates.
func (d *Debates) total() int {
	if len(d.Rounds) == 0 {
		return 0
	}
	return slices.MaxFunc(d.Rounds, func(a, b DebateRound) int { return a.Debates - b.Debates }).Debates
}
