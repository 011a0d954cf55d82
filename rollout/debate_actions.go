package rollout

import (
	"context"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rollout/debate"
)

// Actions runs interactive episodes to their ends. At each turn of an episode the agents debate its action; the
// response of the chosen agent becomes the turn. record gets every debate when it has ended, and progress the number of
// finished episodes.
func (s *Debates) Actions(ctx context.Context, episodes []*Episode, record func(*Debated),
	progress func(done, total int)) error {
	for active(episodes) > 0 {
		var held []*Debated
		for _, e := range episodes {
			if e.AwaitsResponse() {
				held = append(held, &Debated{Identity: e.Identity, At: len(e.Turns), Decides: e,
					aggressive: s.constraints(s.Loop.settings.MaxTurns - len(e.Turns))})
			}
		}
		if err := s.holdTurn(ctx, held); err != nil {
			return err
		}
		for _, d := range held {
			record(d)
			s.takeTurn(ctx, d)
		}
		if err := s.Loop.Step(ctx, episodes); err != nil {
			return err
		}
		if progress != nil {
			progress(len(episodes)-active(episodes), len(episodes))
		}
	}
	return nil
}

// takeTurn makes the chosen response the next turn of the debated episode.
func (s *Debates) takeTurn(ctx context.Context, d *Debated) {
	e, turn := d.Decides, d.Winner().Turn
	if len(turn.Response) == 0 { // no agent's prompt left room for a response
		e.Context, e.Observation, e.Finish = nil, "", FinishLength
		return
	}
	e.Context, e.Observation = turn.Context, turn.Observation
	turn.Context, turn.Observation = nil, ""
	s.Loop.absorb(ctx, e, turn)
}

// holdTurn holds one debate for each episode, round by round, until all are decided.
func (s *Debates) holdTurn(ctx context.Context, held []*Debated) error {
	for open := held; len(open) > 0; {
		said, err := s.propose(ctx, open)
		if err != nil {
			return err
		}
		var undecided []*Debated
		for i, d := range open {
			if err := d.judge(s.DebateSettings, said[i], s.Loop.runSeed); err != nil {
				return err
			}
			if !d.Verdict.Decided {
				undecided = append(undecided, d)
			}
		}
		open = undecided
	}
	return nil
}

// propose has every agent of every open debate write a response.
func (s *Debates) propose(ctx context.Context, open []*Debated) ([][]Contribution, error) {
	l := s.Loop
	request := policy.GenerateRequest{Role: policy.RolePolicy, Temperature: l.settings.Temperature,
		Truncation: l.settings.Truncation, Stop: l.stops, Evaluation: l.settings.Evaluation}
	type seat struct{ debate, agent int }
	var seats []seat
	out := make([][]Contribution, len(open))
	for i, d := range open {
		prompt, text, err := s.prompt(ctx, d)
		if err != nil {
			return nil, err
		}
		out[i] = make([]Contribution, s.Agents)
		for agent := range out[i] {
			c := &out[i][agent]
			c.Abstained, c.Turn = true, Turn{Context: prompt, Observation: text, PolicyVersion: s.Version}
			if len(prompt) >= l.settings.MaxTokens {
				continue
			}
			seats = append(seats, seat{i, agent})
			request.Prefixes = append(request.Prefixes, prompt)
			request.Streams = append(request.Streams, seed.Derive(LabelDebate, l.runSeed, uint64(d.Step),
				uint64(d.Group), uint64(d.Sample), uint64(d.At), uint64(len(d.Rounds)), uint64(agent)))
			request.MaxTokens = append(request.MaxTokens,
				min(l.settings.MaxTurnTokens, l.settings.MaxTokens-len(prompt)))
		}
	}
	for first := 0; first < len(seats); first += batchEpisodes {
		last := min(first+batchEpisodes, len(seats))
		got, err := generate(ctx, s.Sampler, part(request, first, last))
		if err != nil {
			return nil, fmt.Errorf("generate the proposals of %d agents: %w", last-first, err)
		}
		if err := l.checkResponses(got, last-first); err != nil {
			return nil, err
		}
		for j, at := range seats[first:last] {
			c := &out[at.debate][at.agent]
			c.Turn.Response, c.Turn.Finish = got.Tokens[j], got.Finish[j]
			c.Turn.LogProbs, c.Turn.Entropies = valuesOf(got.LogProbs, j), valuesOf(got.Entropies, j)
			s.parse(c)
		}
	}
	return out, nil
}

// parse reads an agent's action from its response. A response without an action proposes nothing.
func (s *Debates) parse(c *Contribution) {
	l := s.Loop
	c.Turn.Text = strings.ToValidUTF8(l.tok.Decode(c.Turn.Response), "\uFFFD")
	parsed := l.protocol.Parse(c.Turn.Text, l.prompted)
	if action := strings.TrimSpace(parsed.Action); action != "" {
		c.Proposal = debate.Proposal{Candidate: action}
	}
	if c.Reasoning = parsed.Reasoning; c.Reasoning == "" {
		c.Reasoning = strings.TrimSuffix(c.Turn.Text, l.protocol.Spec().EndOfTurn)
	}
}

// prompt returns what an agent reads in the next round of a debate: the first of the prompts with and without the
// others' reasoning that leaves room for a response.
func (s *Debates) prompt(ctx context.Context, d *Debated) (prompt []int32, text string, err error) {
	e := d.Decides
	if d.nextPrompt(true) == "" {
		return e.Context, e.Observation, nil
	}
	for _, reasoning := range []bool{true, false} {
		if text, err = s.Loop.renderWith(ctx, e, d.nextPrompt(reasoning)); err != nil {
			return nil, "", err
		}
		if prompt = s.Loop.tok.Encode(text); s.roomFor(len(prompt)) {
			break
		}
	}
	return prompt, text, nil
}
