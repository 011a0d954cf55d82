package evaluate

import (
	"context"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/activities/verdict"
	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rl/words"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/rollout/debate"
	"github.com/ropewalk/ropewalk/schema"
)

// debate has the agents of a recipe debate the answers to the measurement's problems, or the actions of their episodes.
// Each sample of a problem is a debate.
func (m *measurement) debate(ctx context.Context, sampler policy.Sampler) error {
	p := m.passes()[0]
	loop, err := m.w.Worker.Recipes.LoopWith(m.recipe, p.Sampling, m.tokens)
	if err != nil {
		return err
	}
	of := m.recipe.Evaluation.Debate
	agents := &rollout.Debates{DebateSettings: rollout.DebateSettings{
		Rules: debate.Rules{Agents: of.Agents, Rounds: of.Rounds}, Aggressive: of.Aggressive,
	}, Loop: loop, Sampler: sampler, Version: m.in.Policy.Digest}
	if m.recipe.Environment.Declaration().Golds {
		agents.Same = words.Normalize
	}
	var ids []rollout.Identity
	var tasks []env.Task
	for g, task := range m.problems {
		for k := range p.samples {
			ids, tasks = append(ids, m.identity(rollout.LabelDebate, g, k)), append(tasks, task)
		}
	}
	report := func(n, _ int) { m.w.Progress.Set(n, m.total) }
	if m.recipe.Environment.Declaration().Interactive {
		return m.debateActions(ctx, agents, ids, tasks, report)
	}
	debates, err := agents.Answers(ctx, m.tools(0), ids, tasks, report)
	if err != nil {
		return err
	}
	// Rows of turns and of trajectories are in the order of their ids, round by round and agent by agent.
	var all, decided []*rollout.Episode
	costs := make([]cost, len(debates))
	for i, d := range debates {
		for _, round := range d.Rounds {
			for _, c := range round {
				all = append(all, c.Episode)
				costs[i].add(c.Episode)
			}
		}
		decided = append(decided, d.Decides)
	}
	if err := m.found.add(all, 0); err != nil {
		return err
	}
	for _, d := range debates {
		m.found.debated(d, m.in.Policy.Digest)
	}
	return m.decide(ctx, decided, ids, costs)
}

// debateActions is debate in an interactive environment.
func (m *measurement) debateActions(ctx context.Context, agents *rollout.Debates, ids []rollout.Identity,
	tasks []env.Task, report func(done, total int)) error {
	episodes, at := make([]*rollout.Episode, len(ids)), map[*rollout.Episode]int{}
	for i, id := range ids {
		e, err := agents.Loop.Begin(ctx, id, tasks[i])
		if err != nil {
			return err
		}
		episodes[i], at[e] = e, i
	}
	costs := make([]cost, len(ids))
	record := func(d *rollout.Debated) {
		for _, round := range d.Rounds {
			for _, c := range round {
				costs[at[d.Decides]].tokens += int32(len(c.Turn.Context) + len(c.Turn.Response))
				costs[at[d.Decides]].written += int32(len(c.Turn.Response))
			}
		}
		m.found.debated(d, m.in.Policy.Digest)
	}
	if err := agents.Actions(ctx, episodes, record, report); err != nil {
		return err
	}
	for i, e := range episodes {
		c := rollout.TrajectoryRow(e)
		costs[i].calls, costs[i].errors = c.ToolCalls, c.ToolErrors
	}
	if err := m.found.add(episodes, 0); err != nil {
		return err
	}
	return m.decide(ctx, episodes, ids, costs)
}

// cost is what all agents of a debate have used.
type cost struct{ tokens, written, calls, errors int32 }

func (c *cost) add(e *rollout.Episode) {
	t := rollout.TrajectoryRow(e)
	c.tokens, c.written = c.tokens+t.Tokens, c.written+t.ResponseTokens
	c.calls, c.errors = c.calls+t.ToolCalls, c.errors+t.ToolErrors
}

// decide adds a row for each debate: the outcome of the episode that it decided on, and the costs of all agents.
func (m *measurement) decide(ctx context.Context, episodes []*rollout.Episode, ids []rollout.Identity,
	costs []cost) error {
	if broken := slices.IndexFunc(episodes, func(e *rollout.Episode) bool { return e.Excluded != "" }); broken >= 0 {
		return fmt.Errorf("debate %s: %s", episodes[broken].TrajectoryID, episodes[broken].Excluded)
	}
	correct, err := verdict.Correct(ctx, m.w, m.in, episodes)
	if err != nil {
		return err
	}
	for i, e := range episodes {
		row := m.found.row(m.in, e, ids[i].Sample, false, correct[i])
		row.Tokens, row.ResponseTokens = costs[i].tokens, &costs[i].written
		row.ToolCalls, row.ToolErrors = costs[i].calls, costs[i].errors
		if err := m.complete(&row, e); err != nil {
			return err
		}
		m.found.rows = append(m.found.rows, row)
	}
	return nil
}

// debated adds the proposals of a debate that has ended.
func (h *heldOut) debated(d *rollout.Debated, version string) {
	for round, said := range d.Rounds {
		for agent, c := range said {
			row := schema.EvaluationDebateRow{
				GroupID: schema.GroupID(d.Step, d.Group), Sample: int32(d.Sample), Turn: int32(d.At),
				Round: int32(round), Agent: int32(agent), TrajectoryID: d.Decides.TrajectoryID, Candidate: c.Candidate,
				Abstained: c.Abstained, PolicyVersion: version,
				Chosen: round == len(d.Rounds)-1 && agent == d.Verdict.Agent,
			}
			row.Drawn = row.Chosen && d.Verdict.Drawn
			if c.Episode != nil {
				row.TrajectoryID = c.Episode.TrajectoryID
			} else {
				read, text := int32(len(c.Turn.Context)), c.Turn.Text
				row.Response, row.ContextTokens = &text, &read
				row.TokenIDs = slices.Concat(c.Turn.Context, c.Turn.Response)
				row.LogProbs = c.Turn.LogProbs
			}
			h.debates = append(h.debates, row)
		}
	}
}
