package report

// diagnosticQuestions are asked by the figures about groups, tools, worlds and updates. A line of a figure is a column
// of its question.
var diagnosticQuestions = []Question{
	{"group_rewards", `with g as (
  select r.step, avg(r.reward) as mean, max(r.reward) as most, coalesce(stddev_samp(r.reward), 0) as deviation,
    var_pop(r.reward) as variance,
    case when count(*) filter (s.kept) > 0 then coalesce(stddev_samp(r.reward) filter (s.kept), 0) end as kept
  from rewards r left join selection s using (run, step, trajectory_id) where r.run = RUN group by r.step, r.group_id
)
select step, avg(mean) as mean, avg(most) as most, avg(deviation) as deviation, avg(kept) as kept_deviation,
  avg((variance < 1e-6 and mean <= 0)::int) as never, avg((variance < 1e-6 and mean > 0)::int) as always,
  avg((variance < 1e-6)::int) as equal, count(*) as "groups"
from g group by step order by step`},
	{"qualities", `select r.step, avg(r.error_penalty) as errors, avg(r.error_penalty) filter (s.kept) as kept_errors,
  avg(r.format_penalty) as format, avg(r.format_penalty) filter (s.kept) as kept_format,
  avg((r.answer_tags = 1)::int) as one_answer, avg((r.answer_tags = 0)::int) as no_answer,
  avg((r.answer_tags > 1)::int) as several_answers
from rewards r left join selection s using (run, step, trajectory_id) where r.run = RUN group by r.step order by r.step`},
	{"value_scores", valuesSQL + `
select step, sum(greatest(copies - 1, 0)) / count(*) as replaced, avg(score) as score
from g where (select max(score) from g) > 0 group by step order by step`},
	{"value_copies", valuesSQL + `
select copies as "copies of a group", count(*) as "groups" from g group by copies order by copies`},
	{"tool_errors", toolErrorsSQL},
	{"effort", `select step, avg(tool_calls) as calls, avg(turns) as turns, avg((finish = 'length')::int) as truncated
from trajectories where run = RUN group by step order by step`},
	{"validity", `select step, 1 - sum(malformed_turns) / nullif(sum(turns), 0) as format,
  avg((malformed_turns = 0)::int) filter (turns > 0) as format_throughout,
  1 - sum(void_turns) / nullif(sum(turns), 0) as action,
  avg((void_turns = 0)::int) filter (turns > 0) as action_throughout
from trajectories where run = RUN and malformed_turns is not null group by step order by step`},
	{"invalid_kinds", `select step, count(*) as turns, sum((not well_formed)::int) / count(*) as malformed,
  sum((well_formed and not valid)::int) / count(*) as unknown
from transitions where run = RUN and excluded is null group by step order by step`},
	{"actions", `with s as (
  select t.trajectory_id, r.success::int as success, string_agg(case when not t.well_formed then 'malformed'
    when not t.valid then 'unknown' else coalesce(nullif(regexp_extract(lower(trim(t.action)), '^[a-z]+'), ''), 'other')
    end, chr(31) order by t.turn) as labels
  from transitions t join rewards r on t.run = r.run and t.step = r.step and t.trajectory_id = r.trajectory_id
  where t.run = RUN and t.excluded is null group by all
)
select success, labels, count(*) as n from s group by all order by all`},
	{"call_outcomes", `with s as (
  select t.trajectory_id, r.success::int as success, string_agg(
    case when name = '' then '' else name || ': ' end || status, chr(31) order by t.turn, t.call) as labels
  from tool_calls t join rewards r on t.run = r.run and t.step = r.step and t.trajectory_id = r.trajectory_id
  where t.run = RUN and t.excluded is null group by all
)
select success, labels, count(*) as n from s group by all order by all`},
	{"searching", searchSQL},
	{"tool_load", loadSQL + `
select step, sum(waited) / (max(finished) - min(queued)) as waiting,
  sum(waited + ran) / (max(finished) - min(queued)) as in_flight
from calls group by step order by step`},
	{"tool_waits", loadSQL + `
select count(*) as calls, avg(waited + ran) / 1e3 as mean, quantile_cont(waited + ran, 0.5) / 1e3 as median,
  quantile_cont(waited + ran, 0.95) / 1e3 as "95th percentile", quantile_cont(waited + ran, 0.99) / 1e3 as "99th",
  avg(waited) / 1e3 as "mean wait", (select max(n) from depths) as "most at once"
from calls`},
	{"advantages", `with u as (
  select step, sum(advantage_mean * tokens) / sum(tokens) as mean,
    sqrt(greatest(sum((advantage_std * advantage_std + advantage_mean * advantage_mean) * tokens) / sum(tokens)
      - pow(sum(advantage_mean * tokens) / sum(tokens), 2), 0)) as std,
    min(advantage_min) as least, max(advantage_max) as most, sum(advantage_zero * tokens) / sum(tokens) as zero,
    sum(advantage_positive * tokens) / sum(tokens) as positive
  from updates where run = RUN and source is distinct from 'replay' and advantage_mean is not null and tokens > 0
  group by step
)
select *, mean - std as low, mean + std as high, greatest(1 - zero - positive, 0) as negative from u order by step`},
	{"critic", `select step, avg(value_loss) as loss, avg(explained_variance) as explained,
  sum(value_clip_fraction * tokens) / sum(tokens) as clipped,
  sum(value_mean * tokens) / sum(tokens) as mean_value, sum(return_mean * tokens) / sum(tokens) as mean_return
from updates where run = RUN and value_loss is not null and tokens > 0 group by step order by step`},
	{"gradients", `select step, avg(grad_norm) as norm, max(grad_norm) as most from updates
where run = RUN and source is distinct from 'replay' group by step order by step`},
	{"buffer", `with b as (select step, median(mean) as p50 from baselines where run = RUN group by step)
select b.step, b.p50, count(r.collected) as size, count(*) filter (r.reward > b.p50) as accepted,
  avg(r.reward - b.p50) filter (r.reward > b.p50) as gain
from b left join replay r on r.step = b.step and r.run = RUN group by b.step, b.p50 order by b.step`},
	{"buffer_ages", `select step - collected as "age in steps, at the end", count(*) as rows
from replay where run = RUN and step = (select max(step) from replay where run = RUN) group by 1 order by 1`},
}

// valuesSQL begins the questions about value scores.
const valuesSQL = `with g as (
  select step, group_id, max(value_score) as score, max(count) as copies
  from selection where run = RUN and excluded is null group by step, group_id
)`

// toolErrorsSQL counts, trajectory by trajectory, calls and the kinds of their failure: a call that could not be read
// or named no known tool, one that ran out of time, and any other that failed.
const toolErrorsSQL = `with c as (
  select step, trajectory_id, count(*) as calls,
    count(*) filter (status in ('decode_error', 'unknown_tool', 'bad_arguments')) as unread,
    count(*) filter (status in ('timeout_wall', 'timeout_cpu')) as late, count(*) filter (status <> 'ok') as failed
  from tool_calls where run = RUN and excluded is null group by all
)
select r.step, sum(r.tool_errors) filter (r.reward > 0) / nullif(sum(r.tool_calls) filter (r.reward > 0), 0) as positive,
  sum(r.tool_errors) filter (r.reward <= 0) / nullif(sum(r.tool_calls) filter (r.reward <= 0), 0) as negative,
  sum(c.failed - c.unread - c.late) filter (r.reward > 0) / sum(c.calls) filter (r.reward > 0) as failed,
  sum(c.unread) filter (r.reward > 0) / sum(c.calls) filter (r.reward > 0) as unread,
  sum(c.late) filter (r.reward > 0) / sum(c.calls) filter (r.reward > 0) as late,
  avg((c.failed > 0)::int) filter (r.reward > 0) as affected
from rewards r left join c using (step, trajectory_id) where r.run = RUN group by r.step order by r.step`

// loadSQL begins the questions about how many tool calls wait or run at a time, in microseconds.
const loadSQL = `with calls as (
  select step, start_micros - coalesce(queue_seconds, 0) * 1e6 as queued, end_micros as finished,
    coalesce(queue_seconds, 0) * 1e6 as waited, end_micros - start_micros as ran
  from timings where run = RUN and kind = 'tool_call' and end_micros > start_micros
), changes as (
  select step, queued as moment, 1 as change from calls union all select step, finished, -1 from calls
), depths as (
  select sum(sum(change)) over (partition by step order by moment) as n from changes group by step, moment
)`

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
