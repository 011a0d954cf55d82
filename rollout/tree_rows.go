package rollout

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rollout/branch"
	"github.com/ropewalk/ropewalk/schema"
)

// Round writes the next turn of every episode that awaits one, as Respond does. With a tree it also starts the samples
// that the trees want, before and after. It returns all episodes, and those that have a new turn. After an error the
// episodes are unusable.
func (l *Loop) Round(ctx context.Context, sampler policy.Sampler, version string, episodes []*Episode) (all,
	wrote []*Episode, err error) {
	return l.RoundBy(episodes, func(all []*Episode) error { return l.Respond(ctx, sampler, version, all) })
}

// RoundBy is Round with other responses: respond gives one to each of the episodes that awaits one. It is called once
// more for the branches, if there are any, with the others.
func (l *Loop) RoundBy(episodes []*Episode, respond func(all []*Episode) error) (all, wrote []*Episode, err error) {
	if all, err = l.Grow(episodes); err != nil {
		return nil, nil, err
	}
	wrote = AwaitingResponses(all)
	if len(wrote) == 0 {
		return all, nil, nil
	}
	if err := respond(all); err != nil || l.trees == nil {
		return all, wrote, err
	}
	branches, err := l.trees.decide(all, wrote)
	if err != nil {
		return nil, nil, err
	}
	if len(branches) > 0 {
		// Episodes that await their next turn already, after a summary, write it in the next round.
		now := append(slices.DeleteFunc(slices.Clone(all), (*Episode).AwaitsResponse), branches...)
		if err := respond(now); err != nil {
			return nil, nil, err
		}
		all, wrote = append(all, branches...), append(wrote, branches...)
	}
	all, err = l.Grow(all)
	return all, wrote, err
}

// inOrder puts the episodes of trees in the order of their samples. Others keep their order.
func inOrder(episodes []*Episode) []*Episode {
	if len(episodes) > 0 && episodes[0].Node != nil {
		slices.SortStableFunc(episodes, func(a, b *Episode) int {
			return cmp.Or(a.Step-b.Step, a.Group-b.Group, a.Sample-b.Sample)
		})
	}
	return episodes
}

// AwaitingResults returns the episodes whose last response's calls, or action, have no results yet.
func AwaitingResults(episodes []*Episode) []*Episode {
	return filtered(episodes, (*Episode).AwaitsResults)
}

// filtered returns the episodes of which something holds, in their order.
func filtered(episodes []*Episode, holds func(*Episode) bool) []*Episode {
	return slices.DeleteFunc(slices.Clone(episodes), func(e *Episode) bool { return !holds(e) })
}

// LastCallRows returns the rows of the calls in the last turns of episodes.
func LastCallRows(episodes []*Episode) (rows []schema.ToolCallRow) {
	for _, e := range episodes {
		rows = append(rows, ToolCallRows([]*Episode{e}, len(e.Turns)-1)...)
	}
	return rows
}

// LastTransitionRows returns the rows of the transitions of the last turns of episodes.
func LastTransitionRows(episodes []*Episode) (rows []schema.TransitionRow, err error) {
	for _, e := range episodes {
		own, err := TransitionRows([]*Episode{e}, len(e.Turns)-1)
		if err != nil {
			return nil, err
		}
		rows = append(rows, own...)
	}
	return rows, nil
}

// AwaitingResponses returns the episodes that await a response.
func AwaitingResponses(episodes []*Episode) []*Episode {
	return filtered(episodes, (*Episode).AwaitsResponse)
}

// entropy returns the entropy of a response's first tokens in nats.
func (t *Tree) entropy(top [][]float32) (float64, error) {
	wide := make([][]float64, len(top))
	for i, position := range top {
		wide[i] = make([]float64, len(position))
		for k, v := range position {
			wide[i][k] = float64(v)
		}
	}
	return t.Entropy.Segment(wide)
}

// checkTop checks what a tree needs of a response of n tokens.
func (t *Tree) checkTop(top [][]float32, n int) error {
	if want := min(n, t.positions()); len(top) != want {
		return fmt.Errorf("likeliest tokens at %d of its first %d tokens", len(top), want)
	}
	_, err := t.entropy(top)
	return err
}

// positions is the number of tokens of a response whose entropies count.
func (t *Tree) positions() int {
	return cmp.Or(t.Entropy.Positions, branch.DefaultPositions)
}

// width is the number of likeliest tokens whose log-probabilities give the entropies.
func (t *Tree) width() int { return cmp.Or(t.Entropy.Width, branch.DefaultWidth) }

// LastTurnRows returns the rows of the last turns of episodes.
func LastTurnRows(episodes []*Episode) []schema.TurnRow {
	rows := make([]schema.TurnRow, len(episodes))
	for i, e := range episodes {
		rows[i] = e.turnRow(len(e.Turns) - 1)
	}
	return rows
}

// BranchRows returns the rows of the last turns of a tree's episodes.
func BranchRows(episodes []*Episode) []schema.BranchRow {
	rows := make([]schema.BranchRow, len(episodes))
	for i, e := range episodes {
		rows[i] = e.branchRow(len(e.Turns) - 1)
	}
	return rows
}

func (e *Episode) branchRow(turn int) schema.BranchRow {
	row := schema.BranchRow{GroupID: e.GroupID, TrajectoryID: e.TrajectoryID, Turn: int32(turn), Role: e.Node.Role,
		Streak: int32(e.Node.Streak)}
	if e.Node.Role == schema.RoleBranch && turn == e.Node.From {
		shared := 0
		for _, t := range e.Turns[:turn] {
			shared += len(t.Context) + len(t.Response)
		}
		row.Parent, row.Shared = new(e.Node.Parent), new(int32(shared))
	}
	f := e.Turns[turn].Fork
	if f == nil {
		return row
	}
	row.Entropy = f.Entropy
	if d := f.Decision; d != nil {
		row.Change, row.Copies = new(d.Change), int32(d.Copies)
		if f.drawn {
			row.Base, row.Probability = new(d.Base), new(d.Probability)
		}
	}
	return row
}

// forks finds the row of each turn of a tree.
func forks(rows []schema.BranchRow) map[callKey]*schema.BranchRow {
	out := make(map[callKey]*schema.BranchRow, len(rows))
	for i, r := range rows {
		out[callKey{r.TrajectoryID, r.Turn}] = &rows[i]
	}
	return out
}

// startCommitted starts the episode of a committed turn: a root, or a branch of an episode that has the turns before.
func (t *trees) startCommitted(of *schema.BranchRow, byID map[string]*Episode) (*Episode, error) {
	step, group, sample, err := schema.ParseTrajectoryID(of.TrajectoryID)
	if err != nil {
		return nil, err
	}
	if of.Parent != nil {
		parent := byID[*of.Parent]
		turn := int(of.Turn)
		if parent == nil || len(parent.Turns) < turn || len(parent.Turns) == turn && parent.Context == nil {
			return nil, fmt.Errorf("its parent %s has not the turns before turn %d: %w", *of.Parent, of.Turn, ErrRows)
		}
		return parent.forkBefore(sample, int(of.Turn), int(of.Streak)), nil
	}
	for _, first := range byID {
		if first.Step == step && first.Group == group && of.Turn == 0 && first.Node != nil {
			return t.startSample(first, sample, of.Role), nil
		}
	}
	return nil, fmt.Errorf("its group has no prompt: %w", ErrRows)
}

// forkBefore is forkAt for an episode that may still await the turn.
func (e *Episode) forkBefore(sample, turn, streak int) *Episode {
	if turn < len(e.Turns) {
		return e.forkAt(sample, turn, streak)
	}
	waiting := *e
	waiting.Turns = append(slices.Clone(e.Turns), Turn{Context: e.Context, Observation: e.Observation})
	return waiting.forkAt(sample, turn, streak)
}

// restored sets what a tree knows of an episode's last turn from its row.
func (e *Episode) restored(row *schema.BranchRow) {
	if row == nil || e.Node == nil {
		return
	}
	e.Node.Streak = int(row.Streak)
	if row.Entropy == nil { // the engine broke
		return
	}
	f := &Fork{Entropy: row.Entropy, drawn: row.Probability != nil}
	if row.Change != nil {
		f.Decision = &branch.Decision{Change: *row.Change, Copies: int(row.Copies)}
		if f.drawn {
			f.Decision.Base, f.Decision.Probability = *row.Base, *row.Probability
		}
	}
	e.Turns[len(e.Turns)-1].Fork = f
}
