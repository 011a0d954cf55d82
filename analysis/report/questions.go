package report

import (
	"slices"
	"strings"
)

// Question is one query of the report.
type Question struct {
	Name string `json:"name"`
	SQL  string `json:"sql"`
}

// questions are all that the report can ask of a run; figures and sections name those that they need. RUN stands for
// the run's name, quoted.
var questions = slices.Concat(runQuestions, heldOutQuestions, diagnosticQuestions, taskQuestions, replayQuestions,
	treeQuestions, versionQuestions)

// runQuestions are those of the figures of learning, selection, update and time.
var runQuestions = []Question{
	{"rewards", `select step, avg(reward) as reward, avg(success::int) as success, count(*) as trajectories
from rewards where run = RUN group by step order by step`},
	{"evaluations", `select step, tag, level, problem_id, avg(success::int) as success, count(*) as samples
from evaluations where run = RUN and not greedy
group by all order by step nulls first, tag, level, problem_id`},
	{"greedy", `select step, tag, avg(success::int) as success, count(*) as problems
from evaluations where run = RUN and greedy group by all order by step nulls first, tag`},
	{"levels", `select step, level, avg(success::int) as success, count(*) as trajectories
from rewards where run = RUN group by step, level order by step, level`},
	{"parts", `select r.step, p.part, avg(r.success::int) as success, count(*) as trajectories
from rewards r join prompts p using (run, step, group_id)
where r.run = RUN and p.part is not null group by r.step, p.part order by r.step, p.part`},
	{"part_evaluations", `select step, tag, part, problem_id, avg(success::int) as success, count(*) as samples
from evaluations where run = RUN and not greedy and part is not null
group by all order by step nulls first, tag, part, problem_id`},
	{"stages", stagesSQL},
	{"rollout_time", rolloutTimeSQL},
	{"written", writtenSQL},
	{"orchestration", orchestrationSQL},
	{"devices", devicesSQL},
	{"funnel", funnelSQL},
	{"conversations", conversationsQuestion},
	{"outcomes", `select step, case when kept then 'kept' else reason end as outcome, count(*) as trajectories
from selection where run = RUN group by all order by step, outcome`},
	{"kept", `select step, avg(kept::int) as share from selection where run = RUN group by step order by step`},
	{"judgements", `select step, case when excluded is null then verdict else 'no verdict' end as verdict,
  string_agg(distinct model, ', ' order by model) as model, count(*) as trajectories
from judgements where run = RUN group by all order by step, verdict`},
	{"updates", `select step, sum(entropy * tokens) / nullif(sum(tokens), 0) as entropy,
  sum(kl * tokens) / nullif(sum(tokens), 0) as kl,
  sum(reference_kl * tokens) / nullif(sum(tokens), 0) as reference_kl
from updates where run = RUN and source is distinct from 'replay' group by step order by step`},
	{"clipping", `select step, sum(clip_fraction * tokens) / nullif(sum(tokens), 0) as clipped,
  sum(clip_fraction_positive * tokens) / nullif(sum(tokens), 0) as positive,
  sum(clip_fraction_negative * tokens) / nullif(sum(tokens), 0) as negative,
  sum(below_positive * tokens) / nullif(sum(tokens) filter (below_positive is not null), 0) as low_positive,
  sum(above_negative * tokens) / nullif(sum(tokens) filter (above_negative is not null), 0) as high_negative,
  sum(dual_clip_fraction * tokens) / nullif(sum(tokens) filter (dual_clip_fraction is not null), 0) as dual
from updates where run = RUN and source is distinct from 'replay' group by step order by step`},
	{"lengths", `select step, quantile_cont(response_tokens, 0.1) as p10, quantile_cont(response_tokens, 0.5) as p50,
  quantile_cont(response_tokens, 0.9) as p90, avg(response_tokens) as mean
from trajectories where run = RUN group by step order by step`},
	{"latency", `with calls as (
  select step, (end_micros - start_micros) / 1e3 as ms
  from timings where run = RUN and kind = 'tool_call' and end_micros > start_micros
)
select step, quantile_cont(ms, 0.5) as p50, quantile_cont(ms, 0.9) as p90, quantile_cont(ms, 0.99) as p99,
  count(*) as calls
from calls group by step order by step`},
}

// heldOutQuestions are asked by the figures about kinds of held-out tasks and about what is measured next to success.
var heldOutQuestions = []Question{
	{"evaluation_kinds", `select count(task_type) + count(score) + count(exact_match) as n
from evaluations where run = RUN and not greedy`},
	{"evaluation_types", `select step, tag, task_type, problem_id, avg(success::int) as success
from evaluations where run = RUN and not greedy and task_type is not null
group by all order by step nulls first, tag, task_type, problem_id`},
	{"evaluation_scores", `select step, tag, problem_id, avg(score) as score, avg(exact_match::int) as exact_match,
  avg(f1) as f1
from evaluations where run = RUN and not greedy
group by all order by step nulls first, tag, problem_id`},
}

// replayQuestions are asked of all generations.
var replayQuestions = []Question{
	{"replayed_rewards", `select step, gen, count(*) as trajectories, avg(reward) as reward,
  avg(success::int) as success
from rewards where run = RUN
  and step in (select step from rewards where run = RUN group by step having count(distinct gen) > 1)
group by step, gen order by step, gen`},
	{"replayed_selection", `select step, gen, count(*) as trajectories, count(*) filter (kept) as kept,
  count(distinct group_id) filter (kept) as groups_kept
from selection where run = RUN
  and step in (select step from selection where run = RUN group by step having count(distinct gen) > 1)
group by step, gen order by step, gen`},
}

// about returns the questions with these names, about one run. A name without a question is a mistake in this program.
func about(run string, names []string) []Question {
	quoted := "'" + strings.ReplaceAll(run, "'", "''") + "'"
	out := make([]Question, len(names))
	for i, name := range names {
		at := slices.IndexFunc(questions, func(q Question) bool { return q.Name == name })
		if at < 0 {
			panic("the report has no question " + name)
		}
		out[i] = Question{name, strings.ReplaceAll(questions[at].SQL, "RUN", quoted)}
	}
	return out
}

// texts are the queries alone.
func texts(all []Question) []string {
	out := make([]string, len(all))
	for i, q := range all {
		out[i] = q.SQL
	}
	return out
}

// stagesSQL unites, for each stage of a step, the times in which at least one of its activities ran.
const stagesSQL = `with spans as (
  select step, stage, start_micros as s, end_micros as e,
    max(end_micros) over (partition by step, stage order by start_micros, end_micros
      rows between unbounded preceding and 1 preceding) as before
  from timings where run = RUN and kind = 'activity' and step is not null
)
select step, stage, sum(greatest(e - greatest(s, coalesce(before, s)), 0)) / 1e6 as seconds
from spans group by step, stage order by step, stage`

// rolloutTimeSQL divides each step's rollout, from its first response to its last tool result, into the times in which
// responses were generated, tools ran, both did, or nothing of the step did.
const rolloutTimeSQL = `with spans as (
  select step, (stage = 'rollout')::int as generates, (stage <> 'rollout')::int as calls, start_micros as s,
    end_micros as e
  from timings where run = RUN and step is not null and end_micros > start_micros
    and (kind = 'tool_call' or kind = 'activity' and stage in ('rollout', 'sandbox'))
), moments as (
  select step, moment, sum(generates) as generates, sum(calls) as calls from (
    select step, s as moment, generates, calls from spans
    union all select step, e, -generates, -calls from spans
  ) group by step, moment
), levels as (
  select step, lead(moment) over w - moment as length, sum(generates) over w as generates, sum(calls) over w as calls
  from moments window w as (partition by step order by moment)
)
select step, coalesce(sum(length) filter (generates > 0 and calls = 0), 0) / 1e6 as generation,
  coalesce(sum(length) filter (generates > 0 and calls > 0), 0) / 1e6 as overlap,
  coalesce(sum(length) filter (generates = 0 and calls > 0), 0) / 1e6 as tools,
  coalesce(sum(length) filter (generates = 0 and calls = 0), 0) / 1e6 as idle
from levels group by step order by step`

// devicesSQL gives what each update used of its engine's devices, where the engine measured them.
const devicesSQL = `select step, max(device_peak_bytes) / 1024.0 ** 3 as gib, avg(device_utilisation) as busy,
  avg(mfu) as mfu,
  avg(train_tokens_per_s) as tokens_per_s
from timings where run = RUN and kind = 'activity' and stage = 'update' and step is not null
  and (train_tokens_per_s is not null or device_peak_bytes is not null)
group by step order by step`

// orchestrationSQL gives each step the time from its selection of prompts to the next step's (of the
// last one, to its publication), less the gaps of more than ten seconds (analysis.longestGap) and the time in which
// nothing but an evaluation ran, and how much of that no activity ran. A step whose prompts were selected ahead begins
// with the publication of the step before.
const orchestrationSQL = `with selected as (
  select step, min(start_micros) filter (stage = 'prompts') as f, max(end_micros) filter (stage = 'publish') as done
  from timings where run = RUN and kind = 'activity' group by step
), begun as (
  select step, greatest(f, coalesce(lag(done) over (order by step), f)) as f from selected where f is not null
), windows as (
  select step, f, coalesce(lead(f) over (order by f),
    (select max(end_micros) from timings where run = RUN and kind = 'activity' and stage = 'publish')) as t
  from begun
), cut as (
  select w.step, a.stage = 'evaluate' as evaluation, greatest(a.start_micros, w.f) as s, least(a.end_micros, w.t) as e
  from windows w join timings a on a.end_micros > w.f and a.start_micros < w.t
  where a.run = RUN and a.kind = 'activity'
), marked as (
  select *,
    max(e) over (partition by step order by s, e rows between unbounded preceding and 1 preceding) as before,
    s - before as gap,
    max(e) filter (not evaluation) over (partition by step order by s, e
      rows between unbounded preceding and 1 preceding) as trained
  from cut
), busy as (
  select step, max(e) as finished, sum(gap) filter (gap > 10e6) as waited,
    sum(greatest(e - greatest(s, coalesce(before, s)), 0)) as busy,
    busy - sum(case when evaluation then 0 else greatest(e - greatest(s, coalesce(trained, s)), 0) end) as evaluating
  from marked group by step
), lasted as (
  select *, t - f - coalesce(waited, 0) - case when t - finished > 10e6 then t - finished else 0 end as length
  from windows join busy using (step)
)
select step, (length - evaluating) / 1e6 as seconds, (length - busy) / 1e6 as idle,
  (length - busy) / nullif(length - evaluating, 0) as share
from lasted order by step`

// funnelSQL counts a step's kept trajectories as trained when its update trained on rows.
const funnelSQL = `with sampled as (
  select step, count(*) as n from trajectories where run = RUN group by step
), chosen as (
  select step, count(*) filter (kept) as n, sum(count) as copies from selection where run = RUN group by step
), trained as (
  select step, sum(rows) as n from updates where run = RUN group by step
)
select sum(s.n) as sampled, sum(c.n) as kept, sum(least(c.n, coalesce(t.n, 0))) as trained,
  sum(c.copies) filter (t.n > 0) as copies
from sampled s left join chosen c using (step) left join trained t using (step)`
