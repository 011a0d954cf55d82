package rollout

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rollout/branch"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/tool"
)

// treeOf is a tree of eight leaves that branches at every second decision.
func treeOf(change func(*Tree)) *Tree {
	t := &Tree{Leaves: 8, Roots: 3, Rule: branch.PaperRule, Monitor: true,
		Split: branch.Budget{Total: 8, Sensitivity: 0.2, KeepBranch: true}}
	if change != nil {
		change(t)
	}
	return t
}

// waysToGrow are the ways in which a tree can grow.
var waysToGrow = map[string]func(*Tree){
	"aepo":         nil,
	"counted":      func(t *Tree) { t.CountMonitor = true },
	"unmonitored":  func(t *Tree) { t.Monitor = false },
	"arpo":         func(t *Tree) { t.Monitor, t.Rule = false, branch.DefaultARPO },
	"several":      func(t *Tree) { t.Rule = branch.Rule{Threshold: 0.1, Copies: 3} },
	"never":        func(t *Tree) { t.Rule = branch.Rule{Threshold: 1} },
	"mean entropy": func(t *Tree) { t.Entropy = branch.TopK{Mode: branch.MeanTail, Positions: 4, Width: 5} },
}

// grown is a rollout with trees, and the rows that its stages have committed.
type grown struct {
	loop     *Loop
	prompts  []schema.PromptRow
	episodes []*Episode
	rows     Rows
	rounds   int
	half     bool // the turns of a round are committed, and their results are not
}

// grow rolls groups out to their ends. After every half round, check is called.
func grow(t *testing.T, tree *Tree, engine policy.Sampler, groups int, check func(*grown)) *grown {
	t.Helper()
	g := planted(t, tree, groups)
	g.toEnd(t, engine, box(new(python)), nil, check)
	return g
}

// planted is a rollout before its first turn.
func planted(t *testing.T, tree *Tree, groups int) *grown {
	t.Helper()
	s := settings
	s.Tree = tree
	g := &grown{loop: newLoop(t, s, 11)}
	g.prompts = prompts(g.loop, groups)
	g.episodes = g.rebuilt(t)
	return g
}

// rebuilt rebuilds the episodes from what is committed.
func (g *grown) rebuilt(t *testing.T) []*Episode {
	t.Helper()
	episodes, err := g.loop.Episodes(t.Context(), g.prompts, 8, g.rows)
	require.NoError(t, err)
	return episodes
}

// toEnd goes on round by round, as the stages do. With a flow, it takes the turns and results from there.
func (g *grown) toEnd(t *testing.T, engine policy.Sampler, tools tool.Toolbox, f *Flow, check func(*grown)) {
	t.Helper()
	for open := true; open; g.rounds++ {
		if !g.half {
			g.respond(t, engine, f)
			check(g)
		}
		g.half = false
		calling := AwaitingResults(g.episodes)
		run := func() ([]tool.Outcome, []CallRef, error) {
			return g.loop.RunCalls(t.Context(), tools, tool.Scope{}, g.episodes, nil)
		}
		if f != nil {
			_, _, verdicts, err := f.Results(t.Context(), g.episodes)
			require.NoError(t, err)
			run = func() ([]tool.Outcome, []CallRef, error) {
				return f.RunLeft(t.Context(), tools, g.episodes, verdicts, nil)
			}
		}
		outcomes, _, err := run()
		require.NoError(t, err)
		require.NoError(t, g.loop.AbsorbOutcomes(g.episodes, outcomes))
		g.rows.Calls = append(g.rows.Calls, LastCallRows(calling)...)
		check(g)
		g.episodes, err = g.loop.Grow(g.episodes)
		require.NoError(t, err)
		open = active(g.episodes) > 0
	}
}

// respond writes the turns of a round.
func (g *grown) respond(t *testing.T, engine policy.Sampler, f *Flow) {
	t.Helper()
	all, wrote, err := g.loop.RoundBy(g.episodes, func(all []*Episode) (err error) {
		asking := AwaitingResponses(all)
		left := asking
		if f != nil {
			if left, _, err = f.Respond(t.Context(), "v", asking); err != nil {
				return err
			}
		}
		return g.loop.RespondLeft(t.Context(), engine, "v", left, all, len(left) < len(asking))
	})
	require.NoError(t, err)
	g.episodes = all
	g.rows.Turns = append(g.rows.Turns, LastTurnRows(wrote)...)
	g.rows.Branches = append(g.rows.Branches, BranchRows(wrote)...)
}

// sameEpisodes ignores what has no influence on what comes next.
var sameEpisodes = cmp.Options{cmp.AllowUnexported(Node{}, Fork{}), cmpopts.EquateEmpty()}

// difference compares episodes one by one. cmp walks through equal ones, too, which takes minutes under the race
// detector.
func difference(want, got []*Episode, options ...cmp.Option) string {
	if len(want) != len(got) {
		return fmt.Sprintf("%d episodes, got %d", len(want), len(got))
	}
	for i, e := range want {
		if reflect.DeepEqual(e, got[i]) {
			continue
		}
		if d := cmp.Diff(e, got[i], options...); d != "" {
			return d
		}
	}
	return ""
}

// The state of a tree follows from rows: rebuilt after every half round, from nothing and from the state a round
// before, it equals the state in memory.
func TestTreesAreRebuiltFromRows(t *testing.T) {
	for name, change := range waysToGrow {
		t.Run(name, func(t *testing.T) {
			engine := &babbler{tok: newLoop(t, settings, 11).tok}
			grow(t, treeOf(change), engine, 12, func(g *grown) {
				again, err := g.loop.Episodes(t.Context(), g.prompts, 8, g.rows)
				require.NoError(t, err)
				again, err = g.loop.Grow(again)
				require.NoError(t, err)
				live, err := g.loop.Grow(slices.Clone(g.episodes))
				require.NoError(t, err)
				if d := difference(live, again, sameEpisodes); d != "" {
					t.Fatalf("round %d (-memory +rows):\n%s", g.rounds, d)
				}
			})
		})
	}
}

// Every group has as many leaves as it was asked for, in three phases at most. Branches share their parents' turns, and
// the rows of the turns are valid and there once.
func TestTreesHaveTheirLeaves(t *testing.T) {
	for name, change := range waysToGrow {
		t.Run(name, func(t *testing.T) {
			engine := &babbler{tok: newLoop(t, settings, 11).tok}
			g := grow(t, treeOf(change), engine, 30, func(*grown) {})
			require.LessOrEqual(t, g.rounds, 3*settings.MaxTurns)
			leaves := map[string]int{}
			branches, monitors := 0, 0
			byID := map[string]*Episode{}
			for _, e := range g.episodes {
				byID[e.TrajectoryID] = e
			}
			for _, e := range Leaves(g.episodes) {
				leaves[e.GroupID]++
				require.NoError(t, TrajectoryRow(e).Validate())
			}
			for _, e := range g.episodes {
				require.NotEmpty(t, e.Finish)
				switch e.Node.Role {
				case schema.RoleMonitor:
					monitors++
					require.Zero(t, e.Sample)
				case schema.RoleBranch:
					branches++
					parent := byID[e.Node.Parent]
					require.Less(t, parent.Sample, e.Sample)
					require.Equal(t, parent.Turns[:e.Node.From], e.Turns[:e.Node.From])
					require.Equal(t, parent.Turns[e.Node.From].Context, e.Turns[e.Node.From].Context)
					require.NotEmpty(t, e.Turns[e.Node.From-1].Results, "it starts at the result of a call")
				}
			}
			require.Len(t, leaves, 30)
			for group, n := range leaves {
				require.Equal(t, 8, n, group)
			}
			require.Equal(t, name == "never", branches == 0)
			require.Equal(t, treeOf(change).Monitor && !treeOf(change).CountMonitor, monitors > 0)
			seen := map[string]bool{}
			for i, r := range g.rows.Turns {
				require.NoError(t, r.Validate())
				require.NoError(t, g.rows.Branches[i].Validate())
				key := fmt.Sprint(r.TrajectoryID, r.Turn)
				require.False(t, seen[key], "a turn is stored once")
				seen[key] = true
			}
			checkInherited(t, g)
		})
	}
}

// checkInherited compares the rows of whole trajectories with the episodes.
func checkInherited(t *testing.T, g *grown) {
	t.Helper()
	turns := map[string][]schema.TurnRow{}
	for _, r := range schema.Inherit(g.rows.Turns, g.rows.Branches) {
		turns[r.TrajectoryID] = append(turns[r.TrajectoryID], r)
	}
	calls := map[string]int{}
	for _, r := range schema.Inherit(g.rows.Calls, g.rows.Branches) {
		calls[r.TrajectoryID]++
	}
	lineage := schema.LineageOf(g.rows.Branches)
	for _, e := range g.episodes {
		own := turns[e.TrajectoryID]
		slices.SortFunc(own, func(a, b schema.TurnRow) int { return int(a.Turn - b.Turn) })
		require.Len(t, own, len(e.Turns))
		results := 0
		for k := range e.Turns {
			require.Equal(t, e.turnRow(k), own[k])
			results += len(e.Turns[k].Results)
			owner := e
			for owner.Node.Role == schema.RoleBranch && k < owner.Node.From {
				owner = g.find(owner.Node.Parent)
			}
			require.Equal(t, owner.TrajectoryID, lineage.Owner(e.TrajectoryID, int32(k)))
		}
		require.Equal(t, results, calls[e.TrajectoryID])
	}
}

func (g *grown) find(id string) *Episode {
	return g.episodes[slices.IndexFunc(g.episodes, func(e *Episode) bool { return e.TrajectoryID == id })]
}

// A group's tree does not depend on the groups that are rolled out with it.
func TestTreesDoNotDependOnTheBatch(t *testing.T) {
	engine := &babbler{tok: newLoop(t, settings, 11).tok}
	all := grow(t, treeOf(nil), engine, 12, func(*grown) {})
	s := settings
	s.Tree = treeOf(nil)
	l := newLoop(t, s, 11)
	for i := range 12 {
		episodes, err := l.Episodes(t.Context(), all.prompts[i:i+1], 8, Rows{})
		require.NoError(t, err)
		for active(episodes) > 0 {
			episodes, _, err = l.Round(t.Context(), engine, "v", episodes)
			require.NoError(t, err)
			require.NoError(t, callsOf(new(python)).answer(t.Context(), l, episodes))
			episodes, err = l.Grow(episodes)
			require.NoError(t, err)
		}
		var want []*Episode
		for _, e := range all.episodes {
			if e.Group == episodes[0].Group {
				want = append(want, e)
			}
		}
		require.Empty(t, difference(want, episodes, sameEpisodes))
	}
}

// A response whose likeliest tokens are missing, or that have log-probabilities above 0, is the engine's fault.
func TestTreesNeedTheLikeliestTokens(t *testing.T) {
	s := settings
	s.Tree = treeOf(nil)
	l := newLoop(t, s, 11)
	for name, top := range map[string][][][]float32{
		"none": nil, "no position": {{}}, "one above 0": {{{0.5}}},
	} {
		e, err := l.Episodes(t.Context(), prompts(l, 1), 8, Rows{})
		require.NoError(t, err)
		g := policy.Generated{Tokens: [][]int32{{l.stops[0]}}, Finish: []policy.Finish{policy.FinishStop}, Top: top}
		require.Error(t, l.Absorb(t.Context(), e, []int{0}, g, "v"), name)
	}
	for name, bad := range map[string]func(*Tree){
		"no rule": func(t *Tree) { t.Rule = nil }, "too many roots": func(t *Tree) { t.Roots = 9 },
		"an estimator": func(t *Tree) { t.Entropy.Mode = "x" }, "no leaves": func(t *Tree) { t.Leaves = 0 },
		"the rule": func(t *Tree) { t.Rule = branch.Rule{Threshold: 2} },
		"rounding": func(t *Tree) { t.Split.Rounding = "up" },
	} {
		s.Tree = treeOf(bad)
		_, err := NewLoop(s, l.tok, 1)
		require.Error(t, err, name)
	}
}

// A row that the engine fails on ends its sample, whatever its role. The tree goes on without it, and is rebuilt with
// it.
func TestTreesGoOnWithoutBadRows(t *testing.T) {
	babbling := &babbler{tok: newLoop(t, settings, 11).tok}
	engine := &fragile{babbler: babbling, faulty: func(stream uint64) error {
		if stream%9 == 0 {
			return errRow
		}
		return nil
	}}
	excluded := map[string]int{}
	g := grow(t, treeOf(nil), engine, 30, func(g *grown) {
		again, err := g.loop.Episodes(t.Context(), g.prompts, 8, g.rows)
		require.NoError(t, err)
		again, err = g.loop.Grow(again)
		require.NoError(t, err)
		live, err := g.loop.Grow(slices.Clone(g.episodes))
		require.NoError(t, err)
		require.Empty(t, difference(live, again, sameEpisodes))
	})
	for _, e := range g.episodes {
		if e.Excluded != "" {
			excluded[e.Node.Role]++
		}
	}
	for _, role := range []string{schema.RoleMonitor, schema.RoleRoot, schema.RoleBranch} {
		require.Positive(t, excluded[role], role)
	}
	require.Len(t, Leaves(g.episodes), 8*30)
	for _, r := range g.rows.Branches {
		require.NoError(t, r.Validate())
	}
}

// In an interactive environment, a branch starts in the state after its parent's action. The states of both are rebuilt
// from rows.
func TestTreesOfActions(t *testing.T) {
	s := actingLoop(t, rooms(t), 2).settings
	s.Tree = treeOf(nil)
	l, err := NewLoop(s, actingLoop(t, rooms(t), 2).tok, 3)
	require.NoError(t, err)
	prompts := promptsOfRooms(t, l)
	rows := Rows{}
	live, err := l.Episodes(t.Context(), prompts, 8, rows)
	require.NoError(t, err)
	for {
		var wrote []*Episode
		live, wrote, err = l.Round(t.Context(), mover{l: l}, "v", live)
		require.NoError(t, err)
		if len(wrote) == 0 {
			break
		}
		rows.Turns = append(rows.Turns, LastTurnRows(wrote)...)
		rows.Branches = append(rows.Branches, BranchRows(wrote)...)
		acting := AwaitingResults(live)
		require.NoError(t, l.Step(t.Context(), live))
		made, err := LastTransitionRows(acting)
		require.NoError(t, err)
		rows.Transitions = append(rows.Transitions, made...)
		again, err := l.Episodes(t.Context(), prompts, 8, rows)
		require.NoError(t, err)
		for i, e := range again { // new episodes have no state before their first action
			require.Equal(t, live[i].TrajectoryID, e.TrajectoryID)
			require.Equal(t, live[i].State, e.State)
			require.Equal(t, live[i].Context, e.Context)
		}
	}
	leaves := Leaves(live)
	require.Len(t, leaves, 8*6)
	states := map[string]map[int32]string{}
	for _, r := range schema.Inherit(rows.Transitions, rows.Branches) {
		if states[r.TrajectoryID] == nil {
			states[r.TrajectoryID] = map[int32]string{}
		}
		states[r.TrajectoryID][r.Turn] = r.State
	}
	branches := 0
	for _, e := range leaves {
		require.Equal(t, FinishDone, e.Finish)
		require.Len(t, states[e.TrajectoryID], len(e.Turns), "inherited transitions are there")
		if e.Node.Role == schema.RoleBranch {
			branches++
		}
	}
	require.Positive(t, branches)
}
