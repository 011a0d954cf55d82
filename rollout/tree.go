package rollout

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/rollout/branch"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/tool"
)

// Trees of samples (AEPO §3.1, ARPO §3.2). The samples of a prompt are the leaves of a tree. Some start at the prompt
// (roots), others in the middle of another sample, directly after a tool result (branches). A group passes through
// three phases:
//
//	monitor ── its entropies ──▶ roots and their branches ── all have ended, leaves are missing ──▶ further roots
//
// Each round writes one turn of every open sample. A sample that had a tool result before the turn may branch: the
// first tokens of the turn say how uncertain the policy was after the result. The branches start from the same result
// and write their first turn in the same round. The tokens that decided stay with the sample that wrote them.
//
// The state of a tree follows from its episodes, so it is rebuilt from rows like them. Samples of a group are numbered
// in the order in which they start. The draws of a turn, and of a decision, depend on (run seed, step, group, sample,
// turn). A group decides in the order of its samples, so batches and shards have no influence.
//
// Departures from AEPO: entropies are those of the samples' own turns, not of separate probes; a decision follows every
// tool result of every sample, not that of one selected sample; the budget is split by entropies of the same
// scale as those that decide.

// Tree says how the samples of a prompt branch.
type Tree struct {
	Leaves int // samples of a prompt
	Roots  int // roots without a monitor, or if the monitor says nothing
	Rule   branch.Decider
	// Entropy measures a response's first tokens. Its vocabulary is that of the loop.
	Entropy branch.TopK
	// Monitor samples one trajectory first, whose entropies divide the leaves between roots and branches.
	Monitor bool
	// CountMonitor makes the monitor the first root. Otherwise it is no leaf, and its calls are all that is left of it.
	CountMonitor bool
	// WithRoot includes the monitor's first response in the mean entropy after tool results.
	WithRoot bool
	Split    branch.Budget // its total is Leaves
	// Stateful names tools that keep state for each episode, in addition to those whose specification says so. Before
	// a branch's first call of such a tool, the calls before the branch run again, and must end as they did.
	Stateful []string
}

// labelBranch names the random stream of decisions.
const labelBranch = "branch"

// validate names what no tree can have.
func (t *Tree) validate() error {
	switch {
	case t.Leaves < 1 || t.Roots < 1 || t.Roots > t.Leaves:
		return fmt.Errorf("a tree of %d leaves from %d roots", t.Leaves, t.Roots)
	case t.Rule == nil:
		return errors.New("a tree has no rule")
	}
	if err := t.Entropy.Validate(); err != nil {
		return err
	}
	if t.Monitor {
		if err := t.Split.Validate(); err != nil {
			return err
		}
	}
	return t.Rule.Validate()
}

// Node is the place of an episode in its tree.
type Node struct {
	Role   string // of schema.BranchRow
	Parent string // trajectory that a branch starts in
	From   int    // a branch's first own turn
	Streak int    // decisions in a row that opened a branch
	// Lost is set if a branch's tools could not be brought to the state of the turn that it starts from. It is no leaf.
	Lost   bool
	prompt []int32
}

// Fork is what a tree knows of a turn.
type Fork struct {
	Entropy  *float64         // nats; nil without a response
	Decision *branch.Decision // nil if nothing was decided
	drawn    bool             // whether the decision had a budget
}

// leaf reports whether the episode is one of the samples of its group. Without a tree, each is.
func (e *Episode) leaf() bool {
	return e.Node == nil || e.Node.Role != schema.RoleMonitor && !e.Node.Lost
}

// Leaves returns the episodes that are samples of their groups, in the given order.
func Leaves(episodes []*Episode) []*Episode { return filtered(episodes, (*Episode).leaf) }

// trees grow the samples of groups.
type trees struct {
	*Tree
	tools   []tool.Spec
	runSeed uint64
	// start begins an episode at the prompt of its group.
	start func(id Identity, task env.Task, prompt []int32) *Episode
}

// Grow starts the samples that the groups' trees want now, and returns all episodes in order. Without a tree it returns
// the episodes.
func (l *Loop) Grow(episodes []*Episode) ([]*Episode, error) {
	if l.trees == nil {
		return episodes, nil
	}
	for _, group := range byGroup(episodes) {
		for {
			started, err := l.trees.startSamples(group)
			if err != nil {
				return nil, err
			}
			if len(started) == 0 {
				break
			}
			group, episodes = append(group, started...), append(episodes, started...)
		}
	}
	return inOrder(episodes), nil
}

// byGroup returns the episodes of each group in the order of their samples; the groups keep their order.
func byGroup(episodes []*Episode) (groups [][]*Episode) {
	at := map[string]int{}
	for _, e := range episodes {
		i, known := at[e.GroupID]
		if !known {
			i = len(groups)
			at[e.GroupID], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], e)
	}
	for _, g := range groups {
		slices.SortStableFunc(g, func(a, b *Episode) int { return a.Sample - b.Sample })
	}
	return groups
}

// counts are those of a group's tree.
type counts struct {
	roots, leaves int
	lost          int  // branches that were given up
	open          bool // an episode has not ended
}

func countsOf(group []*Episode) (c counts) {
	for _, e := range group {
		c.open = c.open || e.Finish == ""
		if e.leaf() {
			c.leaves++
		}
		if e.Node.Lost {
			c.lost++
		}
		if e.Node.Role == schema.RoleRoot {
			c.roots++
		}
	}
	return c
}

// startSamples returns the samples that a group starts now.
func (t *trees) startSamples(group []*Episode) ([]*Episode, error) {
	c := countsOf(group)
	roots := t.Roots
	if t.Monitor {
		if group[0].Finish == "" {
			return nil, nil
		}
		var err error
		if roots, err = t.split(group[0]); err != nil {
			return nil, err
		}
	}
	n := max(roots-c.roots, 0)
	if n == 0 && !c.open {
		n = t.Leaves - c.leaves
	}
	n = min(n, t.Leaves-c.leaves)
	var out []*Episode
	for i := range max(n, 0) {
		out = append(out, t.startSample(group[0], len(group)+i, schema.RoleRoot))
	}
	return out, nil
}

// startSample starts another sample at the prompt of a group.
func (t *trees) startSample(first *Episode, sample int, role string) *Episode {
	id := first.Identity
	id.Sample = sample
	e := t.start(id, first.Task, slices.Clone(first.Node.prompt))
	e.Node = &Node{Role: role, prompt: first.Node.prompt}
	return e
}

// root makes an episode the first of its group's tree.
func (t *trees) root(e *Episode, prompt []int32) {
	e.Node = &Node{Role: schema.RoleRoot, prompt: prompt}
	if t.Monitor && !t.CountMonitor {
		e.Node.Role = schema.RoleMonitor
	}
}

// split divides the leaves between roots and branches by the monitor's entropies. A monitor that called no tool says
// nothing.
func (t *trees) split(monitor *Episode) (roots int, err error) {
	var first *float64
	var later []float64
	for k, turn := range monitor.Turns {
		if turn.Fork == nil || turn.Fork.Entropy == nil {
			continue
		}
		h := t.Entropy.Normalise(*turn.Fork.Entropy)
		switch {
		case k == 0:
			first = &h
		case monitor.follows(k):
			later = append(later, h)
		}
	}
	if first == nil {
		return t.Roots, nil
	}
	mean, ok := branch.ToolAverage(*first, later, t.WithRoot)
	if !ok || len(later) == 0 {
		return t.Roots, nil
	}
	roots, _, err = t.Split.Split(*first, mean)
	return roots, err
}

// follows reports whether a turn directly follows the result of a tool, or of an action. A summary follows none.
func (e *Episode) follows(turn int) bool {
	if turn == 0 || e.IsSummary(turn) {
		return false
	}
	before := &e.Turns[turn-1]
	return before.Transition != nil || len(before.Results) > 0
}

// decide lets the episodes that have just written a turn branch, in the order of their samples, and returns the
// branches.
func (t *trees) decide(episodes, wrote []*Episode) ([]*Episode, error) {
	written := make(map[*Episode]bool, len(wrote))
	for _, e := range wrote {
		written[e] = true
	}
	var out []*Episode
	for _, group := range byGroup(episodes) {
		c := countsOf(group)
		count, spent := len(group), c.leaves+c.lost
		if t.Monitor && count == 1 {
			continue // the monitor decides how many branches there are
		}
		for _, e := range group {
			if !written[e] || e.Node.Role == schema.RoleMonitor {
				continue
			}
			d, err := t.decideOne(e, t.budget(spent, count))
			if err != nil {
				return nil, err
			}
			for range d {
				out = append(out, e.fork(count))
				count, spent = count+1, spent+1
			}
		}
	}
	return out, nil
}

// budget is how many branches a group may still open after it has spent some of its leaves. A branch that was given up
// stays spent: another one might be lost for the same reason, so a root takes its place. Branches that were given up
// use up numbers of samples; enough of them are left for roots instead of all leaves.
func (t *Tree) budget(spent, samples int) int {
	return max(min(t.Leaves-spent, schema.MaxSamples-t.Leaves-samples), 0)
}

// decideOne decides on the last turn of an episode and returns the number of branches.
func (t *trees) decideOne(e *Episode, budget int) (copies int, err error) {
	turn := len(e.Turns) - 1
	last, root := &e.Turns[turn], e.Turns[0].Fork
	if last.Fork == nil || last.Fork.Entropy == nil || turn == e.Node.From || !e.follows(turn) || root == nil ||
		root.Entropy == nil {
		return 0, nil
	}
	draws := seed.Rand(labelBranch, t.runSeed, uint64(e.Step), uint64(e.Group), uint64(e.Sample), uint64(turn))
	d, chain, err := t.Rule.Decide(t.Entropy, branch.Chain{Root: *root.Entropy, Streak: e.Node.Streak},
		*last.Fork.Entropy, budget, draws.Float64)
	if err != nil {
		return 0, fmt.Errorf("trajectory %s, turn %d: %w", e.TrajectoryID, turn, err)
	}
	e.Node.Streak = chain.Streak
	last.Fork.Decision, last.Fork.drawn = &d, budget > 0
	return d.Copies, nil
}

// fork starts a branch before the last turn of the episode.
func (e *Episode) fork(sample int) *Episode { return e.forkAt(sample, len(e.Turns)-1, e.Node.Streak) }

// forkAt starts a branch before a turn of the episode. It shares the turns before it, and the state after them.
func (e *Episode) forkAt(sample, turn, streak int) *Episode {
	out := &Episode{Identity: e.Identity, GroupID: e.GroupID, Task: e.Task, Turns: slices.Clone(e.Turns[:turn]),
		Context: slices.Clone(e.Turns[turn].Context), Observation: e.Turns[turn].Observation, History: e.History,
		Protocol: e.Protocol}
	out.Sample = sample
	out.TrajectoryID = schema.TrajectoryID(e.Step, e.Group, sample)
	out.Node = &Node{Role: schema.RoleBranch, Parent: e.TrajectoryID, From: turn, Streak: streak,
		prompt: e.Node.prompt}
	for k := turn - 1; k >= 0; k-- {
		if x := e.Turns[k].Transition; x != nil {
			out.State, out.Seen = slices.Clone(x.State), x.Seen
			break
		}
	}
	return out
}

// giveUp gives up a branch whose first own call of a tool with a state has no verdict: the tool could not repeat
// what happened before the branch. A root takes its place.
func (t *trees) giveUp(e *Episode) {
	if t == nil || e.Node == nil || e.Node.Role != schema.RoleBranch {
		return
	}
	stateful := func(turn *Turn, broken bool) bool {
		for i, r := range turn.Results {
			called, known := tool.Find(t.tools, turn.Parsed.Calls[i].Name)
			keeps := called.Stateful || slices.Contains(t.Stateful, called.Name)
			if known && keeps && turn.Parsed.Calls[i].Error == "" && (r.Excluded != "") == broken {
				return true
			}
		}
		return false
	}
	last := len(e.Turns) - 1
	for k := e.Node.From; k < last; k++ {
		if stateful(&e.Turns[k], false) {
			return // it has had its state
		}
	}
	inherits := false
	for k := range e.Node.From {
		inherits = inherits || stateful(&e.Turns[k], false)
	}
	e.Node.Lost = inherits && stateful(&e.Turns[last], true)
}
