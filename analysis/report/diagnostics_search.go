package report

import (
	"github.com/ropewalk/ropewalk/analysis/report/chart"
)

// searchSQL counts, trajectory by trajectory, what was searched for and what was read: calls of the tools search and
// browse, and in a shop the actions that search and that open a product. Queries and titles are equal without regard to
// capitals and white space. A call that could not be read has no query and counts as a search.
const searchSQL = `with said as (
  select step, trajectory_id, name <> 'browse' as search,
    case when json_valid(arguments) then arguments::json ->> case when name = 'browse' then '$.document' else '$.query' end
    end as what
  from tool_calls where run = RUN and excluded is null and name in ('search', 'wiki_search', 'browse')
  union all
  select step, trajectory_id, lower(trim(action)) like 'search[%', regexp_extract(trim(action), '\[(.*)\]', 1)
  from transitions where run = RUN and excluded is null and valid
    and regexp_matches(lower(trim(action)), '^(search\[.*|click\[b0[0-9a-z]{8}\])$')
), each as (
  select step, trajectory_id, search, lower(trim(regexp_replace(what, '\s+', ' ', 'g'))) as what from said
), c as (
  select step, trajectory_id, count(*) filter (search) as searches, count(distinct what) filter (search) as queries,
    count(distinct what) filter (not search) as documents,
    count(what) filter (search) - count(distinct what) filter (search) as repeated
  from each group by all
)
select r.step, count(*) as trajectories, sum(coalesce(searches, 0)) as searches, avg(coalesce(searches, 0)) as mean,
  avg(coalesce(queries, 0)) as queries, avg(coalesce(documents, 0)) as documents,
  avg(coalesce(searches, 0)) filter (success) as searches_won,
  avg(coalesce(searches, 0)) filter (not success) as searches_lost,
  avg(coalesce(documents, 0)) filter (success) as documents_won,
  avg(coalesce(documents, 0)) filter (not success) as documents_lost,
  sum(repeated) filter (success) / nullif(sum(searches) filter (success), 0) as repeated_won,
  sum(repeated) filter (not success) / nullif(sum(searches) filter (not success), 0) as repeated_lost
from rewards r left join c on c.step = r.step and c.trajectory_id = r.trajectory_id
where r.run = RUN and exists (select 1 from each where search)
group by r.step order by r.step`

// noSearches is the reason of figures about searching.
const noSearches = "No trajectory searched for anything."

var searchEffort = figure{
	id: "search-effort", title: "Searches and documents read", asks: []string{"searching"}, empty: noSearches,
	note: "Means per trajectory: searches, queries that differ, and documents (in a shop, products) that were " +
		"opened. Searches above the queries are repeats.",
	draw: func(d data, f *Figure) error {
		a := d.answers["searching"]
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "per trajectory", FromZero: true,
			Lines: []chart.Series{
				{Name: "searches", Color: 1, X: a.steps(), Y: a.column("mean")},
				{Name: "different queries", Color: 3, X: a.steps(), Y: a.column("queries"), Dashed: true},
				{Name: "documents read", Color: 2, X: a.steps(), Y: a.column("documents")},
			}}, f)
		return nil
	},
}

var searchOutcomes = figure{
	id: "search-outcomes", title: "Search effort in successes and failures", asks: []string{"searching"},
	empty: noSearches,
	note: "Means per trajectory, of successes and of failures apart. If failures have more searches, the policy goes " +
		"on searching when it is lost.",
	draw: func(d data, f *Figure) error {
		a := d.answers["searching"]
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "per trajectory", FromZero: true,
			Lines: []chart.Series{
				{Name: "searches, successes", Color: 1, X: a.steps(), Y: a.column("searches_won")},
				{Name: "searches, failures", Color: 1, X: a.steps(), Y: a.column("searches_lost"), Dashed: true},
				{Name: "documents, successes", Color: 2, X: a.steps(), Y: a.column("documents_won")},
				{Name: "documents, failures", Color: 2, X: a.steps(), Y: a.column("documents_lost"), Dashed: true},
			}}, f)
		return nil
	},
}

var searchRepeats = figure{
	id: "search-repeats", title: "Repeated searches", asks: []string{"searching"}, empty: noSearches,
	note: "Share of searches whose words an earlier search of the same trajectory had.",
	draw: func(d data, f *Figure) error {
		a := d.answers["searching"]
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "searches", Unit: chart.Percent, FromZero: true,
			Lines: []chart.Series{
				{Name: "in successes", Color: 1, X: a.steps(), Y: a.column("repeated_won")},
				{Name: "in failures", Color: 4, X: a.steps(), Y: a.column("repeated_lost")},
			}}, f)
		return nil
	},
}
