package report

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// diagnosed are the rows of two steps. Step 1 has group a, whose trajectories 1 to 3 earn 1, 0 and 0, and group b,
// whose trajectories 4 and 5 earn 1 each. In step 2 only trajectory 6 without a reward calls a tool.
const diagnosed = `
create table rewards (run text, step integer, group_id text, trajectory_id text, reward double, tool_calls integer,
  tool_errors integer, error_penalty double, format_penalty double, answer_tags integer);
insert into rewards values
  ('r', 1, 'a', '1', 1, 5, 1, 0.5, 1, 0), ('r', 1, 'a', '2', 0, 7, 7, 0, 0, 1), ('r', 1, 'a', '3', 0, 0, 0, 0.25, 0.5, 3),
  ('r', 1, 'b', '4', 1, 5, 3, 0.25, 0.5, 2), ('r', 1, 'b', '5', 1, 0, 0, 0, 0, 1), ('r', 2, 'b', '6', 0, 2, 1, 0, 0, 1),
  ('other', 1, 'a', '1', 9, 9, 9, 9, 9, 9);
create table selection (run text, step integer, group_id text, trajectory_id text, kept boolean, value_score double,
  count integer, excluded text);
insert into selection values
  ('r', 1, 'a', '1', true, 0.25, 3, null), ('r', 1, 'a', '2', true, 0.25, 3, null), ('r', 1, 'a', '3', false, 0.25, 0, null),
  ('r', 1, 'b', '4', false, 0, 0, null), ('r', 1, 'b', '5', false, 0, 0, null), ('r', 1, 'b', '7', false, 5, 9, 'broke'),
  ('r', 2, 'b', '6', false, 0, 0, null);
create table tool_calls (run text, step integer, trajectory_id text, status text, excluded text);
insert into tool_calls values
  ('r', 1, '1', 'ok', null), ('r', 1, '1', 'ok', null), ('r', 1, '1', 'ok', null), ('r', 1, '1', 'ok', null),
  ('r', 1, '1', 'timeout_wall', null), ('r', 1, '4', 'decode_error', null), ('r', 1, '4', 'timeout_cpu', null),
  ('r', 1, '4', 'runtime_error', null), ('r', 1, '4', 'ok', null), ('r', 1, '4', 'ok', null),
  ('r', 1, '4', 'runtime_error', 'the tool broke'), ('r', 1, '2', 'runtime_error', null),
  ('r', 2, '6', 'ok', null), ('r', 2, '6', 'runtime_error', null);
create table trajectories (run text, step integer, tool_calls integer, turns integer, finish text,
  malformed_turns integer, void_turns integer);
insert into trajectories values
  ('r', 1, 2, 2, 'length', 1, 0), ('r', 1, 0, 2, 'answered', 1, 0), ('r', 1, 0, 1, 'answered', 0, 0),
  ('r', 1, 0, 1, 'answered', null, null);
create table timings (run text, step integer, kind text, start_micros bigint, end_micros bigint, queue_seconds double);
insert into timings values
  ('r', 1, 'tool_call', 1000000000000000, 1000000002000000, 0), ('r', 1, 'tool_call', 1000000001000000, 1000000002000000, 1),
  ('r', 2, 'tool_call', 1000000007000000, 1000000008000000, null), ('r', 2, 'activity', 0, 9, 0);
create table baselines (run text, step integer, mean double);
insert into baselines values ('r', 4, 0.25), ('r', 4, 0.75), ('r', 5, 0.75);
create table replay (run text, step integer, collected integer, reward double);
insert into replay values ('r', 4, 2, 0), ('r', 4, 3, 1), ('r', 4, 3, 1), ('r', 4, 3, 1);`

// diagnosedAnswers are the answers to the questions that these rows suffice for.
func diagnosedAnswers(t *testing.T) data {
	t.Helper()
	of := []string{"group_rewards", "qualities", "value_scores", "value_copies", "tool_errors", "effort", "validity",
		"tool_load", "tool_waits", "buffer", "buffer_ages"}
	return answersOf(t, diagnosed, slices.DeleteFunc(slices.Clone(diagnosticQuestions),
		func(q Question) bool { return !slices.Contains(of, q.Name) }))
}

// told requires that a figure's drawing or note says all of some texts.
func told(t *testing.T, f Figure, texts ...string) {
	t.Helper()
	require.Empty(t, f.Empty, f.ID)
	for _, text := range texts {
		require.Contains(t, f.SVG+f.Note, text, f.ID)
	}
}

// Worked by hand. Deviations are of samples: √(1/3) for 1, 0, 0, and √(1/2) for the kept 1, 0.
func TestFiguresOfGroups(t *testing.T) {
	d := diagnosedAnswers(t)
	told(t, drawn(d, groupSpread), "mean: 0.667", "maximum: 1", "deviation: 0.289", "deviation among kept: 0.707",
		"step 2\nmean: 0\nmaximum: 0\ndeviation: 0<")
	told(t, drawn(d, zeroAdvantage), "always solved: 50.0%", "never solved: 100.0%", "Steps have 1 to 2 groups")
	require.InDelta(t, 0.5, d.answers["group_rewards"].number(0, "equal"), 0)
	told(t, drawn(d, penalties), "errors, all: 0.2\n", "errors, kept: 0.25\n", "format, all: 0.4\n",
		"format, kept: 0.5")
	told(t, drawn(d, answerCounts), "one: 40.0%", "none: 20.0%", "several: 40.0%")
}

// 10 calls in positive trajectories: one not readable, two late, one that fails as it runs.
func TestFiguresOfTools(t *testing.T) {
	d := diagnosedAnswers(t)
	told(t, drawn(d, toolErrors), "failed: 10.0%", "not parsed: 10.0%", "out of time: 20.0%",
		"trajectories affected: 100.0%", "calls where the reward is ≤ 0: 50.0%")
	require.NotContains(t, drawn(d, toolErrors).SVG, "failed: 0.0%", "no call is no share of failed calls")
	none := asked("tool_errors", "step positive negative failed unread late affected",
		[]any{int32(1), nil, nil, nil, nil, nil, nil})
	require.Contains(t, drawn(none, toolErrors).Empty, "called a tool")
	told(t, drawn(d, effort), "tool calls: 0.5", "turns: 1.5")
	told(t, drawn(d, truncation), "cut off: 25.0%")
	told(t, drawn(d, validity), "format, turns: 60.0%", "format, whole trajectories: 33.3%", "action, turns: 100.0%")
}

// One call waits for a second and runs for one, another runs for two at the same time: in 2 seconds half a call waits
// on average. The call of step 2 takes a second.
func TestLoadOfTheTools(t *testing.T) {
	f := drawn(diagnosedAnswers(t), toolLoad)
	told(t, f, "waiting: 0.5\n", "waiting or running: 2", "waiting: 0\n")
	require.Equal(t, []string{"3", "1666.7 ms", "2000.0 ms", "2000.0 ms", "2000.0 ms", "333.3 ms", "2"},
		f.Table.Rows[0])
}

// Of step 1's two groups one has three copies, in place of itself and of two others.
func TestFiguresOfResampledValues(t *testing.T) {
	d := diagnosedAnswers(t)
	f := drawn(d, vspoDraws)
	require.Equal(t, [][]string{{"0", "2"}, {"3", "1"}}, f.Table.Rows)
	told(t, f, "replaced: 1\n", "mean value score: 0.125")
	empty := asked("value_scores", "step replaced score")
	require.Contains(t, drawn(empty, vspoDraws).Empty, "does not sample by value")
}

func TestTheBufferByItsMedian(t *testing.T) {
	d := diagnosedAnswers(t)
	told(t, drawn(d, replayBuffer), "in the buffer: 4\nabove P50: 3", "in the buffer: 0\nabove P50: 0")
	worth := drawn(d, replayBufferWorth)
	told(t, worth, "P50: 0.5\nmean Ã: 0.5", "P50: 0.75<")
	require.Equal(t, [][]string{{"1", "3"}, {"2", "1"}}, worth.Table.Rows)
}
