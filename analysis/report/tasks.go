package report

import (
	"fmt"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
)

// mostTasks bounds the table of tasks.
const mostTasks = 200

// conversationsQuestion finds out whether the run holds imported conversations.
const conversationsQuestion = `select count(*) as n from trajectories where run = RUN and messages is not null`

// taskQuestions are asked of imported conversations, whose groups are the trials of one task.
var taskQuestions = []Question{
	{"pass", `with tasks as (
  select group_id, count(*) as n, count(*) filter (success) as c from rewards where run = RUN group by group_id
), chances as (
  select group_id, k, product(greatest(c - i, 0)::double / (n - i)) as p
  from tasks, (select unnest(range(1, min(n) + 1)) as k from tasks), range(0, 1000) draws(i)
  where i < k group by group_id, k
)
select k, avg(p) as pass_hat_k from chances group by k order by k`},
	{"tasks", fmt.Sprintf(`with called as (
  select trajectory_id, count(*) as calls, count(*) filter (status <> 'ok') as errors, mode(name) as tool
  from tool_calls where run = RUN group by trajectory_id
)
select t.problem_id as task, count(*) as trials, count(*) filter (r.success) as successes, avg(r.reward) as reward,
  coalesce(sum(c.calls), 0) as calls, coalesce(sum(c.errors), 0) as errors, mode(c.tool) as "most used tool"
from trajectories t join rewards r using (run, step, trajectory_id) left join called c using (trajectory_id)
where t.run = RUN group by t.group_id, t.problem_id order by t.group_id limit %d`, mostTasks)},
	{"tools", `select c.name as tool, count(*) as calls, count(*) filter (c.status <> 'ok') as errors,
  count(distinct c.trajectory_id) as trajectories,
  count(distinct c.trajectory_id) filter (r.success) / count(distinct c.trajectory_id) as success
from tool_calls c join rewards r using (run, step, trajectory_id)
where c.run = RUN group by c.name order by calls desc, tool`},
}

// passHatK draws the chance that all of k trials succeed.
var passHatK = figure{
	id: "pass", title: "pass^k: all of k trials succeed", asks: []string{"pass"}, empty: "No trajectory has a reward.",
	note: "The probability that k independent trials of a task all succeed, averaged over tasks: C(c,k)/C(n,k) for " +
		"c successes in n trials (τ-bench).",
	draw: func(d data, f *Figure) error {
		a := d.answers["pass"]
		f.draw(chart.Chart{Title: f.Title, XLabel: "k", YLabel: "pass^k", Unit: chart.Percent, FromZero: true,
			Lines: []chart.Series{
				{Name: "pass^k", Color: 1, X: a.column("k"), Y: a.column("pass_hat_k"), Points: true},
			}})
		f.Table = a.table(map[string]chart.Unit{"pass_hat_k": chart.Percent})
		return nil
	},
}

// taskTable lists success and tool use task by task.
var taskTable = figure{
	id: "tasks", title: "Success and tool use per task", asks: []string{"tasks"}, empty: noCalls,
	note: "A call counts as an error if its recorded answer says so or is missing.",
	draw: func(d data, f *Figure) error {
		f.Table = d.answers["tasks"].table(nil)
		if len(f.Table.Rows) == mostTasks {
			f.Note += fmt.Sprintf(" Only the first %d tasks are listed.", mostTasks)
		}
		return nil
	},
}

// toolTable lists the tools and how the trajectories that called them went.
var toolTable = figure{
	id: "tools", title: "Tools", asks: []string{"tools"}, empty: noCalls,
	note: "Success is the rate among trajectories that called the tool at least once.",
	draw: table("tools", map[string]chart.Unit{"success": chart.Percent}),
}
