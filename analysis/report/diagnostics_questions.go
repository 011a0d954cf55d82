package report

// diagnosticQuestions are those whose answers the diagnoses of rl/diagnose are gathered from. Equal rows
// come once, with their number.
var diagnosticQuestions = []Question{
	{"group_rewards", `select r.step, r.group_id, r.reward, coalesce(s.kept, false)::int as kept, count(*) as n
from rewards r left join selection s using (run, step, trajectory_id)
where r.run = RUN group by all order by r.step, r.group_id, r.reward, kept`},
	{"qualities", `select r.step, r.error_penalty, r.format_penalty, r.answer_tags,
  coalesce(s.kept, false)::int as kept, count(*) as n
from rewards r left join selection s using (run, step, trajectory_id)
where r.run = RUN group by all order by all`},
	{"value_scores", `select step, group_id, max(value_score) as score, max(count) as copies, max(weight) as weight
from selection where run = RUN and excluded is null group by step, group_id order by step, group_id`},
	{"tool_use", toolUseSQL},
	{"effort", `select step, tool_calls, turns, response_tokens, (finish = 'length')::int as truncated, count(*) as n
from trajectories where run = RUN group by all order by all`},
	{"validity", `select step, turns, malformed_turns, void_turns, count(*) as n
from trajectories where run = RUN and malformed_turns is not null group by all order by all`},
	{"invalid_kinds", `select step, count(*) as turns, sum((not well_formed)::int) / count(*) as malformed,
  sum((well_formed and not valid)::int) / count(*) as unknown
from transitions where run = RUN and excluded is null group by step order by step`},
	{"error_rates", `select 'tool calls' as kind, step, count(*) as n, sum((status <> 'ok')::int) as errors
from tool_calls where run = RUN and excluded is null group by step
union all select 'actions', step, count(*), sum((not valid)::int)
from transitions where run = RUN and excluded is null group by step
order by kind desc, step`},
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
	{"sequences", `with s as (
  select trajectory_id,
    string_agg(case when name = '' then '' else name || ': ' end || status, chr(31) order by turn, call) as labels
  from tool_calls where run = RUN and excluded is null group by trajectory_id
)
select labels, count(*) as n from s group by labels order by labels`},
	{"tool_load", `select step, queue_seconds as waited, start_micros / 1e6 as started, end_micros / 1e6 as finished
from timings where run = RUN and kind = 'tool_call' and end_micros > start_micros order by all`},
	{"advantages", `select step, sum(advantage_mean * tokens) / sum(tokens) as mean,
  sqrt(greatest(sum((advantage_std * advantage_std + advantage_mean * advantage_mean) * tokens) / sum(tokens)
    - pow(sum(advantage_mean * tokens) / sum(tokens), 2), 0)) as std,
  min(advantage_min) as least, max(advantage_max) as most, sum(advantage_zero * tokens) / sum(tokens) as zero,
  sum(advantage_positive * tokens) / sum(tokens) as positive
from updates where run = RUN and source is distinct from 'replay' and advantage_mean is not null and tokens > 0
  group by step order by step`},
	{"critic", `select step, avg(value_loss) as loss, avg(explained_variance) as explained,
  sum(value_clip_fraction * tokens) / sum(tokens) as clipped,
  sum(value_mean * tokens) / sum(tokens) as mean_value, sum(return_mean * tokens) / sum(tokens) as mean_return
from updates where run = RUN and value_loss is not null and tokens > 0 group by step order by step`},
	{"bounds", `select step, sum(below_positive * tokens) / sum(tokens) as low_positive,
  sum(above_negative * tokens) / sum(tokens) as high_negative,
  sum(dual_clip_fraction * tokens) / sum(tokens) as dual
from updates where run = RUN and source is distinct from 'replay' and below_positive is not null and tokens > 0
  group by step order by step`},
	{"gradients", `select step, avg(grad_norm) as norm, max(grad_norm) as most from updates
where run = RUN and source is distinct from 'replay' group by step order by step`},
	{"buffer", bufferSQL},
}

// toolUseSQL counts calls and the kinds of their failure, trajectory by trajectory: a call that could not
// be read or named no known tool, one that ran out of time, and any other that failed.
const toolUseSQL = `with c as (
  select step, trajectory_id, count(*) as calls,
    count(*) filter (status in ('decode_error', 'unknown_tool', 'bad_arguments')) as unread,
    count(*) filter (status in ('timeout_wall', 'timeout_cpu')) as timeouts,
    count(*) filter (status <> 'ok') as failed
  from tool_calls where run = RUN and excluded is null group by all
)
select r.step, r.reward, coalesce(c.calls, 0) as calls, coalesce(c.unread, 0) as unread,
  coalesce(c.timeouts, 0) as timeouts, coalesce(c.failed, 0) as failed, count(*) as n
from rewards r left join c using (step, trajectory_id) where r.run = RUN group by all order by all`

// bufferSQL judges each step's buffer by the median of the baselines that it has.
const bufferSQL = `with b as (
  select step, median(mean) as p50, count(*) as queue from baselines where run = RUN group by step
)
select b.step, b.p50, b.queue, r.collected, coalesce(r.reward - b.p50, 0) as gain, count(r.collected) as n
from b left join replay r on r.step = b.step and r.run = RUN group by all order by all`
