package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/rl/diagnose"
)

// writtenSQL gives what the policy wrote in whole groups of a few steps, turn by turn; a branch's turns begin where it
// left its parent. Steps are at equal distances, and the texts' beginnings stand for them, so that the answer stays
// small however large the run is.
const writtenSQL = `with numbered as (
  select step, row_number() over (order by step) - 1 as i, count(*) over () as n
  from (select distinct step from trajectories where run = RUN)
), steps as (
  select step from numbered where i = 0 or (i * 10) // n <> ((i - 1) * 10) // n
), picked as (
  select step, group_id, row_number() over (partition by step order by group_id) as place
  from (select distinct step, group_id from trajectories where run = RUN and step in (select step from steps))
), parents as (
  select distinct step, trajectory_id, parent from branches where run = RUN
)
select t.step, t.group_id, t.trajectory_id, t.turn, p.parent, l.trajectory_id is not null as leaf,
  array_to_string(t.token_ids[t.context_tokens + 1 : t.context_tokens + 256], ' ') as written
from turns t join picked on picked.step = t.step and picked.group_id = t.group_id and picked.place <= 16
  left join parents p on p.step = t.step and p.trajectory_id = t.trajectory_id
  left join trajectories l on l.run = t.run and l.step = t.step and l.trajectory_id = t.trajectory_id
where t.run = RUN order by t.step, t.trajectory_id, t.turn`

var clusters = figure{
	id: "clusters", title: "Clusters of trajectories", asks: []string{"written"},
	empty: "No trajectory is committed yet.",
	draw: func(d data, f *Figure) error {
		all, err := written(d.answers["written"])
		if err != nil {
			return err
		}
		r := diagnose.Clusters(all)
		var points []chart.ScatterPoint
		for _, p := range r.Points {
			color, cluster := colorNothing, "no cluster"
			if p.Cluster >= 0 {
				color, cluster = 1+p.Cluster%colors, fmt.Sprintf("cluster %d", p.Cluster+1)
			}
			points = append(points, chart.ScatterPoint{X: p.X, Y: p.Y, Color: color, Note: p.ID + ": " + cluster})
		}
		f.Note = fmt.Sprintf("What the policy wrote in %s trajectories of up to ten steps, embedded by the runs of "+
			"one to three tokens in it, along the two principal components (%s of the variance), and clustered by "+
			"DBSCAN (AEPO figure 6, with an embedding that counts words in the place of a language model's). %s "+
			"clusters; %s of the trajectories are in none. The mean distance to the centre of the own cluster is %s, "+
			"and between two centres %s.", plainNumber(float64(len(points))), percent(r.Explained),
			plainNumber(float64(r.Clusters)), percent(r.Alone), plainNumber(r.Within), plainNumber(r.Between))
		f.SVG = chart.Scatter{Title: f.Title, Points: points}.SVG()
		return nil
	},
}

// written joins the turns of trajectories. A branch begins with what it shares with its parent. What is no trajectory
// of the step, such as one that was only measured, is left out.
func written(a answer) ([]diagnose.Written, error) {
	type trajectory struct {
		parent string
		first  int // turn
		leaf   bool
		turns  [][]int32
	}
	all, names := map[string]*trajectory{}, []string(nil)
	for i := range a.rows() {
		step := a.text(i, "step") + "/"
		name := step + a.text(i, "trajectory_id")
		t := all[name]
		if t == nil {
			t = &trajectory{first: int(a.number(i, "turn")), leaf: a.text(i, "leaf") == "true"}
			if parent := a.text(i, "parent"); parent != "" {
				t.parent = step + parent
			}
			all[name], names = t, append(names, name)
		}
		tokens, err := tokensIn(a.text(i, "written"))
		if err != nil {
			return nil, err
		}
		t.turns = append(t.turns, tokens)
	}
	var before func(name string, turn, depth int) []int32
	before = func(name string, turn, depth int) (out []int32) {
		t := all[name]
		if t == nil || depth > len(all) {
			return nil
		}
		if t.parent != "" {
			out = before(t.parent, min(turn, t.first), depth+1)
		}
		for i, tokens := range t.turns {
			if t.first+i < turn {
				out = append(out, tokens...)
			}
		}
		return out
	}
	var out []diagnose.Written
	for _, name := range names {
		if t := all[name]; t.leaf {
			out = append(out, diagnose.Written{ID: name, Tokens: before(name, t.first+len(t.turns), 0)})
		}
	}
	return out, nil
}

func tokensIn(text string) (out []int32, err error) {
	for word := range strings.FieldsSeq(text) {
		n, err := strconv.ParseInt(word, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("read a token: %w", err)
		}
		out = append(out, int32(n))
	}
	return out, nil
}
