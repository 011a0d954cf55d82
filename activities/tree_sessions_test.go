package activities

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/episodes"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/zygotetest"
	"github.com/ropewalk/ropewalk/schema"
)

// treeRoom makes every decision of a tree open a branch, as long as there are some left.
var treeRoom = []string{"rollout.tree={rule: arpo, roots: 2, threshold: 1}", "rollout.samples_per_prompt=5"}

// branchedNotebooks rolls a script out with trees and returns the rows of all turns and calls, and the leaves.
func branchedNotebooks(t *testing.T, script ...[]string) (branches []schema.BranchRow, calls []schema.ToolCallRow,
	leaves []schema.TrajectoryRow) {
	engine := &scripted{script: script}
	b := &notebookBench{stepBench: stepWith(t, engine, nil, slices.Concat(notebookRoom, treeRoom)...), engine: engine}
	b.on(zygotetest.Sessions(t), 0)
	var last schema.Ref
	for open := true; open; {
		turn := len(b.turns)
		out, err := do(b.stepBench, episodes.GenerateRollouts{Worker: b.deps}.Execute, api.GenerateInput{Scope: b.scope,
			Past: api.Past{Last: last}, Prompts: b.prompts, Policy: b.policy, Turn: turn})
		require.NoError(t, err)
		last, b.turns = out.Manifest, append(b.turns, out.Manifest)
		if out.Calls > 0 {
			done, err := do(b.stepBench, episodes.ExecuteToolCalls{Worker: b.deps}.Execute,
				api.ToolsInput{Scope: b.scope, Past: api.Past{Last: last}, Prompts: b.prompts, Turn: turn})
			require.NoError(t, err)
			last, b.tools = done.Manifest, append(b.tools, done.Manifest)
		}
		require.Less(t, turn, 10)
		open = out.Calls > 0 || out.Open > 0
	}
	done, err := do(b.stepBench, episodes.AssembleTrajectories{Worker: b.deps}.Execute,
		api.AssembleInput{Scope: b.scope, Past: api.Past{Last: last}, Prompts: b.prompts})
	require.NoError(t, err)
	return rowsAt[schema.BranchRow](b.stepBench, b.turns...), rowsAt[schema.ToolCallRow](b.stepBench, b.tools...),
		rowsAt[schema.TrajectoryRow](b.stepBench, done.Manifest)
}

// A branch's interpreter has the variables of its parent: the cells before it have run again and ended as the record
// says.
func TestBranchesContinueInSessions(t *testing.T) {
	branches, calls, leaves := branchedNotebooks(t, []string{"x = [ROW]\nx"}, []string{"x.append(2)\nlen(x)"},
		[]string{"x.append(3)\nlen(x)"})
	lineage := schema.LineageOf(branches)
	require.Len(t, lineage, 3*2)
	for _, c := range calls {
		require.Nil(t, c.Excluded)
		if c.Turn > 0 {
			require.Equal(t, map[int32]string{1: "2", 2: "3"}[c.Turn], c.Value, "a cell runs once in each path")
		}
	}
	require.Len(t, leaves, 5*2)
	for _, l := range leaves {
		require.Nil(t, l.Excluded)
		require.EqualValues(t, 3, l.ToolCalls)
	}
}

// If the cells before a branch end differently when they run again, the branch is given up, and another root takes its
// place, not another branch. The trajectory that it branched from goes on.
func TestBranchesThatCannotContinueAreReplaced(t *testing.T) {
	branches, calls, leaves := branchedNotebooks(t, []string{"import os\nx = os.urandom(8)\nx"}, []string{"x"},
		[]string{"x"})
	given := map[string]bool{}
	for _, c := range calls {
		if c.Excluded != nil {
			require.Equal(t, "sandbox: session lost: cell 1 had another value when run again", *c.Excluded)
			given[c.TrajectoryID] = true
		}
	}
	lineage := schema.LineageOf(branches)
	require.Len(t, given, 3*2, "as many branches as a group may have, each opened once")
	require.Len(t, leaves, 5*2)
	roles := map[string]string{}
	for _, b := range branches {
		roles[b.TrajectoryID] = b.Role
	}
	for _, l := range leaves {
		require.Nil(t, l.Excluded)
		require.False(t, given[l.TrajectoryID])
		require.Equal(t, schema.RoleRoot, roles[l.TrajectoryID])
	}
	for id := range given {
		require.Contains(t, lineage, id, "only branches are given up")
	}
}
