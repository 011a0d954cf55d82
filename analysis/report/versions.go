package report

import (
	"encoding/json"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
)

// Both CTEs need the table policies: the version of a turn is the policy after some step, and its lag is the number of
// updates between that and the update of the turn's own step.
const (
	versionLagsSQL = `with lags as (
  select t.step, t.policy_version, t.step - 1 - max(p.step) as lag
  from (select distinct step, policy_version from turns where run = RUN and excluded is null) t
    join policies p on p.run = RUN and p.policy_version = t.policy_version and p.step < t.step
  group by t.step, t.policy_version
)`
	groupVersionsSQL = versionLagsSQL + `, grouped as (
  select t.step, t.group_id, count(distinct t.policy_version) > 1 as mixed, max(l.lag) as lag
  from turns t left join lags l on l.step = t.step and l.policy_version = t.policy_version
  where t.run = RUN group by t.step, t.group_id
), judged as (
  select s.step, s.group_id, s.trajectory_id, g.mixed, g.lag, case
    when bool_or(s.reason = 'mixed_versions') over (partition by s.step, s.group_id)
      then 'several versions, dropped for it'
    when g.mixed then 'several versions' else 'one version' end as versions
  from selection s join grouped g on g.step = s.step and g.group_id = s.group_id where s.run = RUN
)`
)

// versionQuestions are those about the versions that sampled a pipelined run's turns.
var versionQuestions = []Question{
	{"turn_lags", versionLagsSQL + `
select t.step, l.lag, count(*) as turns
from turns t left join lags l on l.step = t.step and l.policy_version = t.policy_version
where t.run = RUN and t.excluded is null group by t.step, l.lag order by t.step, l.lag`},
	{"group_versions", groupVersionsSQL + `
select step, max(versions) as versions, count(*) as "groups", max(lag) as lag from (
  select step, group_id, max(versions) as versions, max(lag) as lag from judged group by step, group_id
) group by step, versions order by step, versions`},
	{"version_lengths", groupVersionsSQL + `
select j.versions as "turns are of", count(distinct j.group_id) as "groups", count(*) as trajectories,
  max(j.lag) as "largest lag", avg(r.success::int) as success, avg(r.turns) as "mean turns",
  avg(t.response_tokens) as "mean tokens", quantile_cont(t.response_tokens, 0.9) as "tokens, p90"
from judged j
  join rewards r on r.run = RUN and r.step = j.step and r.trajectory_id = j.trajectory_id
  left join trajectories t on t.run = RUN and t.step = j.step and t.trajectory_id = j.trajectory_id
group by j.versions order by j.versions`},
}

// pipelined reports whether the run's recipe lets rollouts run ahead of updates.
func pipelined(d data) bool {
	if d.origin == nil {
		return false
	}
	var recipe struct {
		Pipeline *struct {
			MaxStaleness int `json:"max_staleness"`
		} `json:"pipeline"`
	}
	return json.Unmarshal(d.origin.Recipe, &recipe) == nil && recipe.Pipeline != nil && recipe.Pipeline.MaxStaleness > 0
}

var turnLags = figure{
	id: "turn-lags", title: "Turns by lag", asks: []string{"turn_lags"}, empty: noSteps,
	note: "The lag of a turn is the number of updates between the version that sampled it and the update that " +
		"consumes it.",
	axes: chart.Chart{YLabel: "turns"}, split: &split{key: "lag", value: "turns", stacked: true},
}

var groupVersions = figure{
	id: "group-versions", title: "Groups by versions", asks: []string{"group_versions"}, empty: noSelection,
	note: "A group whose turns are of several versions is mixed; its lag is the largest of its turns. " +
		"pipeline.mixed_groups keeps or drops such groups.",
	axes: chart.Chart{YLabel: "groups"},
	split: &split{key: "versions", value: "groups", stacked: true,
		color: func(versions string) int { return versionColors[versions] }},
}

// versionColors are those of what the questions call groups.
var versionColors = map[string]int{"one version": 1, "several versions": 2, "several versions, dropped for it": 4}

var versionLengths = figure{
	id: "version-lengths", title: "Success and length by versions", asks: []string{"version_lengths"},
	empty: noSelection,
	note: "All trajectories of all steps that have a reward, with those that other rules drop. Long " +
		"trajectories see more versions: where mixed groups are dropped, the update learns from shorter ones than " +
		"were sampled.",
	draw: table("version_lengths", map[string]chart.Unit{"success": chart.Percent}),
}
