package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/rl/diagnose"
)

// treeQuestions are those about the trees of a run with rollout.tree.
var treeQuestions = []Question{
	{"trees", `select count(*) as n from branches where run = RUN`},
	{"tree_tokens", `with made as (
  select step, sum(len(token_ids) - context_tokens) as tokens from turns where run = RUN group by step
), called as (
  select step, count(*) as calls from tool_calls where run = RUN and excluded is null group by step
), leaves as (
  select step, sum(response_tokens) as tokens, sum(tool_calls) as calls from trajectories where run = RUN group by step
)
select step, m.tokens as generated, l.tokens as in_leaves, m.tokens / nullif(l.tokens, 0) as share,
  c.calls as called, l.calls as calls_in_leaves
from made m join leaves l using (step) left join called c using (step) order by step`},
	{"tree_decisions", `select step, corr(change, (copies > 0)::int) as correlation, avg((copies > 0)::int) as branched,
  avg((change > 0)::int) as rising, count(*) as decisions
from branches where run = RUN and probability is not null group by step order by step`},
	{"tree_chains", `select step, group_id, string_agg(copies, ' ' order by turn) as copies,
  string_agg((change > 0)::int, ' ' order by turn) as rising
from branches where run = RUN and change is not null and role <> 'monitor'
group by step, group_id, trajectory_id order by step, group_id, trajectory_id`},
	{"tree_groups", `select step, role, count(distinct trajectory_id) as trajectories
from branches where run = RUN group by step, role order by step, role`},
	{"tree_budget", `with f as (
  select step, group_id, min(trajectory_id) filter (role = 'branch') as branch
  from branches where run = RUN group by all
), n as (
  select step, group_id, count(distinct trajectory_id) filter (role = 'root' and
    (branch is null or trajectory_id < branch)) as roots
  from branches join f using (step, group_id) where run = RUN group by all
)
select roots, count(*) as groups from n group by roots order by roots`},
	{"tree", `with pick as (
  select step, group_id from branches where run = RUN group by all
  order by step desc, count(parent) desc, group_id limit 1
)
select b.step, b.group_id, b.trajectory_id, b.turn, b.role, b.parent, b.copies, b.change, r.success, t.finish
from branches b join pick using (step, group_id)
  left join rewards r on r.run = b.run and r.step = b.step and r.trajectory_id = b.trajectory_id
  left join trajectories t on t.run = b.run and t.step = b.step and t.trajectory_id = b.trajectory_id
where b.run = RUN order by b.trajectory_id, b.turn`},
}

const noTrees = "No tree is committed yet."

// Colours of what trees show.
const (
	colorRising, colorFalling, colorNothing = 4, 1, 12
	colorSolved, colorUnsolved              = 2, 4
)

var treeTokens = figure{
	id: "tree-tokens", title: "Tokens generated and tokens in the leaves", asks: []string{"tree_tokens"},
	empty: noTrees,
	note: "A token that several trajectories share was generated once and is in each of them. Generated tokens " +
		"include those of monitored trajectories that are no leaf.",
	axes:  amounts("tokens of responses"),
	lines: []line{solid("in the leaves", 1, "in_leaves"), solid("generated", 2, "generated")},
	draw: func(d data, f *Figure) error {
		a := d.answers["tree_tokens"]
		f.Note += fmt.Sprintf(" Over all steps, the tokens generated are %s of the leaves', and the tool calls that "+
			"ran are %s of the leaves'.",
			percent(sum(a.column("generated"))/sum(a.column("in_leaves"))),
			percent(sum(a.column("called"))/sum(a.column("calls_in_leaves"))))
		return nil
	},
}

var treeRoles = figure{
	id: "tree-roles", title: "Roots and branches", asks: []string{"tree_groups", "tree_budget"}, empty: noTrees,
	note: "Trajectories that started at the prompt, and those that started in the middle of another. The table " +
		"counts groups by the roots that started before their first branch: the budget that the monitor left for " +
		"roots, or all leaves of a group that never branched.",
	axes: chart.Chart{YLabel: "trajectories"},
	split: &split{key: "role", value: "trajectories", stacked: true,
		color: func(role string) int { return roleColors[role] }},
	draw: func(d data, f *Figure) error {
		if a := d.answers["tree_budget"]; a.rows() > 0 {
			f.Table = a.table(nil)
		}
		return nil
	},
}

var roleColors = map[string]int{"root": 1, "branch": 2, "monitor": 12}

// branches diagnoses how the decisions of all steps opened branches; of names a column of tree_chains whose positive
// numbers count.
func branches(d data, of string) (diagnose.BranchReport, error) {
	a, all := d.answers["tree_chains"], diagnose.Branches{}
	for i := range a.rows() {
		chain := diagnose.Chain{Prompt: a.text(i, "step") + "/" + a.text(i, "group_id")}
		for text := range strings.FieldsSeq(a.text(i, of)) {
			n, err := strconv.Atoi(text)
			if err != nil {
				return diagnose.BranchReport{}, err
			}
			chain.Children = append(chain.Children, n)
		}
		if err := all.Add(chain); err != nil {
			return diagnose.BranchReport{}, err
		}
	}
	return all.Report(), nil
}

var treeSpread = figure{
	id: "tree-spread", title: "Trajectories of a group that branch", asks: []string{"tree_chains"}, empty: noTrees,
	draw: func(d data, f *Figure) error {
		r, err := branches(d, "copies")
		if err != nil {
			return err
		}
		f.Note = fmt.Sprintf("Groups, by how many of their trajectories opened a branch. A rollout that collapses "+
			"gives its branches to one to three trajectories (AEPO figures 3 and 7). %s branches come from %s "+
			"trajectories; %s of all trajectories branched.", plainNumber(float64(r.Branches)),
			plainNumber(r.Branched*float64(r.Chains)), percent(r.Branched))
		f.SVG = chart.Bars(f.Title, counted(r.Spread, "trajectory", "trajectories"))
		return nil
	},
}

var treeRuns = figure{
	id: "tree-runs", title: "Consecutive high-entropy turns", asks: []string{"tree_chains"}, empty: noTrees,
	draw: func(d data, f *Figure) error {
		r, err := branches(d, "rising")
		if err != nil {
			return err
		}
		opened, err := branches(d, "copies")
		if err != nil {
			return err
		}
		f.Note = fmt.Sprintf("Runs of turns after tool results whose entropy is above that of the trajectory's first "+
			"response, by their length (AEPO figure 3). %s of such turns are in runs of two or more, and so are %s of "+
			"the turns that branched.", percent(r.Consecutive), percent(opened.Consecutive))
		f.SVG = chart.Bars(f.Title, counted(r.Runs, "turn", "turns"))
		return nil
	},
}

var treeDecisions = figure{
	id: "tree-decisions", title: "Entropy and branching", asks: []string{"tree_decisions"}, empty: noTrees,
	note: "The correlation of the change of entropy with the decision to branch, the share of decisions that " +
		"branched, and the share with a rising entropy. Only decisions that had a branch left in their budget count.",
	lines: []line{solid("correlation", 1, "correlation"), solid("branched", 2, "branched"),
		dashed("rising entropy", 4, "rising")},
}

var oneTree = figure{
	id: "tree", title: "One tree", asks: []string{"tree"}, empty: noTrees,
	draw: func(d data, f *Figure) error {
		a := d.answers["tree"]
		f.Note = fmt.Sprintf("The group of step %s with the most branches, %s. Each line is a trajectory; a branch "+
			"starts after the tool result that it shares with the line above. A mark is a turn.", a.text(0, "step"),
			a.text(0, "group_id"))
		tree := chart.Tree{Title: f.Title, Paths: pathsOf(a)}
		f.SVG = tree.SVG()
		f.Legend = []chart.Key{
			{Name: "entropy above the first response's", Color: colorRising, Mark: "column"},
			{Name: "entropy below it", Color: colorFalling, Mark: "column"},
			{Name: "nothing to decide", Color: colorNothing, Mark: "column"},
		}
		return nil
	},
}

// pathsOf makes the lines of a tree. A branch follows its parent, after the parent's later branches.
func pathsOf(a answer) []chart.Path {
	var all []chart.Path
	var parents []string
	at := map[string]int{}
	for i := range a.rows() {
		id := a.text(i, "trajectory_id")
		k, known := at[id]
		if !known {
			k = len(all)
			at[id] = k
			p := chart.Path{Name: id[strings.LastIndexByte(id, '/')+1:], Parent: -1, From: int(a.number(i, "turn"))}
			p.End, p.Color = endOf(a, i)
			all, parents = append(all, p), append(parents, a.text(i, "parent"))
		}
		all[k].Turns = append(all[k].Turns, markOf(a, i))
	}
	var out []chart.Path
	var visit func(k, parent int)
	visit = func(k, parent int) {
		p := all[k]
		p.Parent = parent
		here := len(out)
		out = append(out, p)
		for c := len(all) - 1; c > k; c-- { // later branches first, so that no line crosses another's
			if parent, known := at[parents[c]]; known && parent == k {
				visit(c, here)
			}
		}
	}
	for k := range all {
		if parents[k] == "" {
			visit(k, -1)
		}
	}
	return out
}

// endOf says how a trajectory ended.
func endOf(a answer, row int) (text string, color int) {
	switch {
	case a.text(row, "role") == "monitor":
		return "measured only", colorNothing
	case a.text(row, "success") == "true":
		return "solved", colorSolved
	}
	if finish := a.text(row, "finish"); finish != "" {
		return finish, colorUnsolved
	}
	return "given up", colorNothing
}

// markOf is the mark of a turn.
func markOf(a answer, row int) chart.PathTurn {
	change := a.number(row, "change")
	out := chart.PathTurn{Color: colorNothing, Note: "turn " + a.text(row, "turn")}
	if math.IsNaN(change) {
		return out
	}
	out.Color = colorFalling
	if change > 0 {
		out.Color = colorRising
	}
	out.Note += fmt.Sprintf(": ΔH %s, %s branches", chart.Value(change, chart.Plain), a.text(row, "copies"))
	return out
}
