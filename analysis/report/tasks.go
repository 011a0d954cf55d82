package report

import (
	"fmt"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
)

// tasksID names the section of imported conversations.
const tasksID = "tasks"

// mostTasks bounds the table of tasks.
const mostTasks = 200

// conversationsQuestion finds out whether the run holds imported conversations.
const conversationsQuestion = `select count(*) as n from trajectories where run = RUN and messages is not null`

// taskQuestions are asked of imported conversations, whose groups are the trials of one task.
func taskQuestions(run string) []Question {
	return of(run, []Question{
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
	})
}

// tasks shows how conversations went: task by task, and tool by tool.
func (d data) tasks() Section {
	pass := d.figure("pass", "pass^k: all of k trials succeed", "pass")
	a := d.answers["pass"]
	pass.Note = "The chance that k independent trials of a task all succeed, averaged over tasks: C(c,k)/C(n,k) for c successes in n trials (τ-bench)."
	if a.rows() == 0 {
		pass.Empty = "No trajectory has a reward."
	} else {
		pass.draw(chart.Chart{Title: pass.Title, XLabel: "k", YLabel: "pass^k", Unit: chart.Percent, FromZero: true, Lines: []chart.Series{
			{Name: "pass^k", Color: 1, X: a.column("k"), Y: a.column("pass_hat_k"), Points: true},
		}})
		pass.Table = d.table("pass", map[string]chart.Unit{"pass_hat_k": chart.Percent})
	}
	tasks := d.figure("tasks", "Success and tool use per task", "tasks")
	tasks.Table = d.table("tasks", nil)
	tasks.Note = "A call counts as an error where its recorded answer says so or is missing."
	if len(tasks.Table.Rows) == mostTasks {
		tasks.Note += fmt.Sprintf(" The first %d tasks.", mostTasks)
	}
	tools := d.figure("tools", "Tools", "tools")
	tools.Table = d.table("tools", map[string]chart.Unit{"success": chart.Percent})
	tools.Note = "Success is that of the trajectories that called the tool at least once."
	for _, f := range []*Figure{&tasks, &tools} {
		if len(f.Table.Rows) == 0 {
			f.Table, f.Empty = nil, "No tool was called."
		}
	}
	return Section{tasksID, "Tasks", []Figure{pass, tasks, tools}}
}
