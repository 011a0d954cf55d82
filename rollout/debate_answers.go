package rollout

import (
	"context"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/rollout/debate"
)

// Answers holds one debate for each of the identities about the answer to its question; tasks are by identity.
// The sample of an identity numbers the debate. Episode (k·(T+1) + round)·N + agent of a group is that of an agent in
// debate k. progress gets the number of debates that have ended.
func (s *Debates) Answers(ctx context.Context, tools Tools, ids []Identity, tasks []env.Task,
	progress func(done, total int)) ([]*Debated, error) {
	out := make([]*Debated, len(ids))
	for i, id := range ids {
		out[i] = &Debated{Identity: id, aggressive: s.constraints(s.Loop.settings.MaxTurns)}
	}
	open := make([]int, len(ids))
	for i := range open {
		open[i] = i
	}
	for round := 0; len(open) > 0; round++ {
		var episodes []*Episode
		for _, i := range open {
			for agent := range s.Agents {
				id := ids[i]
				id.Label = LabelDebate
				id.Sample = (id.Sample*(s.Rounds+1)+round)*s.Agents + agent
				episodes = append(episodes, s.debater(id, tasks[i], out[i]))
			}
		}
		if err := s.Loop.RunEpisodes(ctx, s.Sampler, tools, s.Version, episodes, nil); err != nil {
			return nil, err
		}
		var undecided []int
		for j, i := range open {
			said := make([]Contribution, s.Agents)
			for agent := range said {
				said[agent] = contributionOf(episodes[j*s.Agents+agent], tasks[i])
			}
			if err := out[i].judge(s.DebateSettings, said, s.Loop.runSeed); err != nil {
				return nil, err
			}
			if out[i].Verdict.Decided {
				out[i].Decides = out[i].Winner().Episode
			} else {
				undecided = append(undecided, i)
			}
		}
		open = undecided
		if progress != nil {
			progress(len(ids)-len(open), len(ids))
		}
	}
	return out, nil
}

// debater begins an agent's episode of a debate. The first prompt that leaves room for a response is taken: with the
// others' reasoning, or without it.
func (s *Debates) debater(id Identity, task env.Task, d *Debated) *Episode {
	var e *Episode
	for _, reasoning := range []bool{true, false} {
		asked := task
		if text := d.nextPrompt(reasoning); text != "" {
			asked.Text = strings.TrimRight(task.Text, "\n") + "\n\n" + text
		}
		if e = s.Loop.Start(id, asked); s.roomFor(len(e.Context)) {
			break
		}
	}
	return e
}

// roomFor reports whether a prompt of the given length leaves room for a whole response.
func (s *Debates) roomFor(prompt int) bool {
	most := s.Loop.settings
	return prompt > 0 && prompt+most.MaxTurnTokens <= most.MaxTokens
}

// contributionOf reads what an agent proposes from its finished episode, whose task is again the question itself.
func contributionOf(e *Episode, task env.Task) Contribution {
	e.Task = task
	answer, has := e.Answer()
	c := Contribution{Proposal: debate.Proposal{Candidate: answer, Abstained: !has}, Episode: e}
	if !has {
		c.Candidate = ""
	}
	if n := len(e.Turns); n > 0 {
		last := e.Turns[n-1]
		if c.Reasoning = last.Parsed.Reasoning; c.Reasoning == "" {
			c.Reasoning = strings.TrimSuffix(last.Text, e.spec().EndOfTurn)
		}
	}
	return c
}
