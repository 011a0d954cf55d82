package report

import (
	"database/sql"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
)

// grown are the rows of a step with one tree: 1 branches from 0 before turn 1, and 2 from 1 before turn 2; 3 starts at
// the prompt. Trajectory m is measured only.
const grown = `
create table branches (run text, step integer, group_id text, trajectory_id text, turn integer, role text, parent text,
  change double, probability double, copies integer);
insert into branches values
  ('r', 1, 'g', 'g/m', 0, 'monitor', null, null, null, 0),
  ('r', 1, 'g', 'g/0', 0, 'root', null, null, null, 0), ('r', 1, 'g', 'g/0', 1, 'root', null, 0.5, 0.6, 1),
  ('r', 1, 'g', 'g/0', 2, 'root', null, -0.5, 0.4, 0), ('r', 1, 'g', 'g/1', 1, 'branch', 'g/0', null, null, 0),
  ('r', 1, 'g', 'g/1', 2, 'branch', null, 0.25, 0.6, 1), ('r', 1, 'g', 'g/2', 2, 'branch', 'g/1', null, null, 0),
  ('r', 1, 'g', 'g/3', 0, 'root', null, null, null, 0), ('r', 1, 'g', 'g/3', 1, 'root', null, 0.5, null, 0),
  ('other', 1, 'g', 'g/0', 0, 'root', null, null, null, 0);
create table turns (run text, step integer, trajectory_id text, token_ids integer[], context_tokens integer);
insert into turns values ('r', 1, 'g/0', [1, 2, 3], 1), ('r', 1, 'g/m', [1, 2], 1);
create table tool_calls (run text, step integer, excluded text);
insert into tool_calls values ('r', 1, null), ('r', 1, 'broke');
create table trajectories (run text, step integer, trajectory_id text, response_tokens integer, tool_calls integer,
  finish text);
insert into trajectories values ('r', 1, 'g/0', 2, 1, 'answered'), ('r', 1, 'g/1', 4, 2, 'answered');
create table rewards (run text, step integer, trajectory_id text, success boolean);
insert into rewards values ('r', 1, 'g/0', true);`

// answered asks the questions about trees of a database with these rows.
func answered(t *testing.T) data {
	t.Helper()
	return answersOf(t, grown, treeQuestions)
}

// answersOf asks questions of a database that statements have filled.
func answersOf(t *testing.T, statements string, questions []Question) data {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	for statement := range strings.SplitSeq(statements, ";\n") {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	d := data{questions: map[string]Question{}, answers: map[string]answer{}}
	for _, q := range questions {
		rows, err := db.QueryContext(t.Context(), strings.ReplaceAll(q.SQL, "RUN", "'r'"))
		require.NoError(t, err, q.Name)
		a := answer{}
		a.Columns, err = rows.Columns()
		require.NoError(t, err)
		for rows.Next() {
			row := make([]any, len(a.Columns))
			into := make([]any, len(row))
			for i := range row {
				into[i] = &row[i]
			}
			require.NoError(t, rows.Scan(into...))
			for i, v := range row {
				if sum, is := v.(*big.Int); is {
					row[i] = sum.Int64()
				}
			}
			a.Rows = append(a.Rows, row)
		}
		require.NoError(t, rows.Err())
		require.NoError(t, rows.Close())
		d.questions[q.Name], d.answers[q.Name] = q, a
	}
	return d
}

// Worked by hand: three tokens were generated for six in the leaves; two of five trajectories of the group branch, each
// once; three turns have a rising entropy, none next to another of its trajectory's.
func TestFiguresOfTrees(t *testing.T) {
	d := answered(t)
	require.Contains(t, drawn(d, treeTokens).Note, "generated are 50.0% of the leaves'")
	require.Contains(t, drawn(d, treeTokens).Note, "ran are 33.3% of the leaves'")
	require.Contains(t, drawn(d, treeRoles).SVG, "branch: 2")
	require.Contains(t, drawn(d, treeSpread).SVG, "2 trajectories")
	require.Contains(t, drawn(d, treeSpread).Note, "2 branches come from 2 trajectories; 66.7% of all")
	require.Contains(t, drawn(d, treeRuns).SVG, "1 turn")
	require.Contains(t, drawn(d, treeDecisions).SVG, "branched: 0.667")
	f := drawn(d, oneTree)
	require.Contains(t, f.SVG, "measured only")
	require.Contains(t, f.SVG, "turn 1: ΔH 0.5, 1 branches")
	var names []string
	var parents []int
	for _, p := range pathsOf(d.answers["tree"]) {
		names, parents = append(names, p.Name), append(parents, p.Parent)
	}
	require.Equal(t, []string{"0", "1", "2", "3", "m"}, names)
	require.Equal(t, []int{-1, 0, 1, -1, -1}, parents)
	require.Equal(t, "solved", pathsOf(d.answers["tree"])[0].End)
}

// A drawing has a line for each path, and its texts are escaped.
func TestTreeIsDrawn(t *testing.T) {
	tree := chart.Tree{Title: "a <b>", Paths: []chart.Path{
		{Name: "0", Parent: -1, End: "<solved>", Turns: []chart.PathTurn{{Note: "x & y"}, {}}},
		{Name: "1", Parent: 0, From: 1, Turns: []chart.PathTurn{{}}},
	}}
	svg := tree.SVG()
	require.Equal(t, 3, strings.Count(svg, "<path"))
	require.Equal(t, 3, strings.Count(svg, "<circle"))
	for _, text := range []string{"a &lt;b&gt;", "&lt;solved&gt;", "x &amp; y"} {
		require.Contains(t, svg, text)
	}
	require.Equal(t, svg, tree.SVG(), "the same each time")
}

// The page of a run with trees does not say that its record has no branches.
func TestWhatIsLeftOut(t *testing.T) {
	require.Equal(t, neverRecorded, leftOut(nil))
	require.Equal(t, neverRecorded[1:], leftOut([]Section{{ID: treesID}}))
}
