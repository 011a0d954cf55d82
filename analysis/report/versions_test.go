package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
)

// lagging are the rows of a run whose turns are of several versions: in step 2 a group of one version and a mixed one
// that is dropped, in step 3 a mixed one that is kept.
const lagging = `
create table policies (run text, step integer, policy_version text);
insert into policies values ('r', 0, 'a'), ('r', 1, 'b'), ('r', 2, 'c'), ('r', 3, 'a'), ('other', 1, 'a');
create table turns (run text, step integer, group_id text, trajectory_id text, policy_version text, excluded text);
insert into turns values ('r', 2, 'g', 'g/0', 'a', null), ('r', 2, 'g', 'g/1', 'a', null),
  ('r', 2, 'h', 'h/0', 'a', null), ('r', 2, 'h', 'h/0', 'b', null), ('r', 2, 'h', 'h/1', 'b', 'broke'),
  ('r', 3, 'i', 'i/0', 'b', null), ('r', 3, 'i', 'i/1', 'c', null), ('other', 2, 'g', 'g/0', 'b', null);
create table selection (run text, step integer, group_id text, trajectory_id text, reason text);
insert into selection values ('r', 2, 'g', 'g/0', ''), ('r', 2, 'g', 'g/1', 'zero_variance'),
  ('r', 2, 'h', 'h/0', 'mixed_versions'), ('r', 2, 'h', 'h/1', 'excluded'), ('r', 3, 'i', 'i/0', ''),
  ('r', 3, 'i', 'i/1', '');
create table rewards (run text, step integer, trajectory_id text, success boolean, turns integer);
insert into rewards values ('r', 2, 'g/0', true, 1), ('r', 2, 'g/1', false, 1), ('r', 2, 'h/0', true, 2),
  ('r', 3, 'i/0', true, 1), ('r', 3, 'i/1', true, 1);
create table trajectories (run text, step integer, trajectory_id text, response_tokens integer);
insert into trajectories values ('r', 2, 'g/0', 10), ('r', 2, 'g/1', 20), ('r', 2, 'h/0', 90), ('r', 2, 'h/1', 5),
  ('r', 3, 'i/0', 30), ('r', 3, 'i/1', 50)`

// Worked by hand. In step 2, version a is one update old and b is the newest; the later policy with a's digest is not
// what sampled. In step 3, b is one update old.
func TestVersionsThatSampled(t *testing.T) {
	d := answersOf(t, lagging, versionQuestions)
	lags := d.answers["turn_lags"]
	var rows [][3]int
	for i := range lags.rows() {
		rows = append(rows, [3]int{lags.count(i, "step"), lags.count(i, "lag"), lags.count(i, "turns")})
	}
	require.Equal(t, [][3]int{{2, 0, 1}, {2, 1, 3}, {3, 0, 1}, {3, 1, 1}}, rows)
	require.NotEmpty(t, drawn(d, turnLags).SVG)

	groups := d.answers["group_versions"]
	var named [][3]any
	for i := range groups.rows() {
		named = append(named, [3]any{groups.count(i, "step"), groups.text(i, "versions"), groups.count(i, "lag")})
		require.Equal(t, 1, groups.count(i, "groups"))
	}
	require.Equal(t, [][3]any{{2, "one version", 1}, {2, "several versions, dropped for it", 1},
		{3, "several versions", 1}}, named)
	require.NotEmpty(t, drawn(d, groupVersions).SVG)

	table := drawn(d, versionLengths).Table
	require.Equal(t, []string{"turns are of", "groups", "trajectories", "largest lag", "success", "mean turns",
		"mean tokens", "tokens, p90"}, table.Columns)
	require.Equal(t, [][]string{
		{"one version", "1", "2", "1", "50.0%", "1", "15", "19"},
		{"several versions", "1", "2", "1", "100.0%", "1", "40", "48"},
		{"several versions, dropped for it", "1", "1", "1", "100.0%", "2", "90", "90"},
	}, table.Rows)
}

// The section is shown for runs whose rollouts may run ahead.
func TestPipelined(t *testing.T) {
	for recipe, want := range map[string]bool{`{"pipeline":{"max_staleness":1}}`: true, `{"pipeline":null}`: false,
		`{}`: false, `{"pipeline":{"max_staleness":0}}`: false} {
		require.Equal(t, want, pipelined(data{origin: &analysis.Origin{Recipe: []byte(recipe)}}), recipe)
	}
	require.False(t, pipelined(data{}))
}
