package sql_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/sql"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

func query(t *testing.T, objects store.Store, text string, runs ...string) (sql.Result, error) {
	t.Helper()
	return sql.Query(context.Background(), analysis.New(objects), text, runs...)
}

// keeping returns a reader that keeps what it fetches in a folder.
func keeping(t *testing.T, objects store.Store, dir string) *analysis.Record {
	files, err := analysis.OpenCache(dir)
	require.NoError(t, err)
	return analysis.New(objects).WithCache(files)
}

func jsonOf(t *testing.T, r sql.Result) string {
	t.Helper()
	data, err := json.Marshal(r)
	require.NoError(t, err)
	return string(data)
}

// twoRuns is a finished run of two steps, and one of another seed whose second step is in progress.
func twoRuns(t *testing.T) *mem.Store {
	t.Helper()
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "done", Steps: 2, Seed: 1, Created: "2026-01-02T03:04:05Z"})
	recordtest.Train(t, objects, recordtest.Options{Run: "open", Steps: 2, Planned: 5, Seed: 2,
		Created: "2026-01-03T03:04:05Z", Open: true})
	return objects
}

func TestExcludedTrajectoriesAreWorthNothing(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{
		Run: "r", Steps: 2, Seed: 1, Skipped: 2,
		Broken: map[string]string{schema.TrajectoryID(1, 0, 0): "engine: lost"},
	})
	for text, want := range map[string]string{
		"select step, sum(reward) s, count(*) n from rewards group by 1 order by 1": `{"columns":["step","s","n"],` +
			`"rows":[[1,5,11],[2,4,8]]}`,
		"select excluded, count(*) n from selection where reason = 'excluded' group by 1 order by 2": `{` +
			`"columns":["excluded","n"],"rows":[` +
			`["engine: lost",1],["shard 1 was skipped after its sandbox failed: no usable python interpreter",4]]}`,
		"select trajectory_id, finish from trajectories where excluded is not null": `{"columns":["trajectory_id",` +
			`"finish"],"rows":[["00001/0000/000","excluded"]]}`,
	} {
		got, err := query(t, objects, text)
		require.NoError(t, err)
		require.JSONEq(t, want, jsonOf(t, got))
	}
}

// The table policies has the policy after each finished step: those that say which version wrote a turn.
func TestPolicies(t *testing.T) {
	got, err := query(t, twoRuns(t), "select run, p.step, count(t.turn) > 0 as sampled from policies p left join "+
		"turns t using (run, policy_version) group by all order by run, p.step")
	require.NoError(t, err)
	require.JSONEq(t, `{"columns":["run","step","sampled"],"rows":[["done",0,true],["done",1,true],["done",2,false],`+
		`["open",0,true],["open",1,false]]}`, jsonOf(t, got))

	guide, err := os.ReadFile("../../docs/pipelined.md")
	require.NoError(t, err)
	_, text, _ := strings.Cut(string(guide), "bin/ropewalk sql \"")
	text, _, _ = strings.Cut(text, "\"")
	text = strings.NewReplacer("\\\n", "\n", "RUN", "done").Replace(text) // as the shell joins the lines
	got, err = query(t, twoRuns(t), text, "done")
	require.NoError(t, err)
	require.Equal(t, []string{"step", "group_id", "mixed", "lag"}, got.Columns)
	require.NotEmpty(t, got.Rows)
	for _, row := range got.Rows {
		require.Equal(t, []any{false, int32(0)}, []any{row[2], row[3]}, "a run that does not run ahead")
	}
}

func TestQuery(t *testing.T) {
	objects := twoRuns(t)
	for _, c := range []struct{ name, query, want string }{
		{
			"the readme's", "select step, avg(reward) from rewards where run = 'done' group by 1 order by 1",
			`{"columns":["step","avg(reward)"],"rows":[[1,0.5],[2,0.6666666666666666]]}`,
		},
		{
			"a step in progress is not seen", "select run, step, count(*) n from rewards group by all order by all",
			`{"columns":["run","step","n"],"rows":[["done",1,12],["done",2,12],["open",1,12]]}`,
		},
		{
			"evaluations need no head and no step", "select run, step, tag, avg(success::int) s from evaluations " +
				"group by all order by run, step nulls first",
			`{"columns":["run","step","tag","s"],"rows":[["done",null,"warm_start",0.25],["done",2,"final",0.75],` +
				`["open",null,"warm_start",0.25]]}`,
		},
		{
			"updates keeps one step column", "select step, gen, minibatch, kl from updates where run = 'done' order " +
				"by all",
			`{"columns":["step","gen","minibatch","kl"],"rows":[[1,0,0,0.01],[1,0,1,0.02],[2,0,0,0.01],[2,0,1,0.02]]}`,
		},
		{
			"trajectories are assemble's", "select count(*), sum(tool_calls), sum(tool_errors) from trajectories " +
				"where run = 'done'",
			`{"columns":["count_star()","sum(tool_calls)","sum(tool_errors)"],"rows":[[24,12,6]]}`,
		},
		{
			"lists", "select loss_mask, logprobs from turns where run = 'done' and step = 1 and trajectory_id = " +
				"'00001/0000/001'",
			`{"columns":["loss_mask","logprobs"],"rows":[[[0,0,0,1,1],[null,null,null,-0.5,-0.25]]]}`,
		},
		{
			"why dropped", "select reason, count(*) n from selection where run = 'done' and not kept group by 1 " +
				"order by 1",
			`{"columns":["reason","n"],"rows":[["roc_negative_surplus",4],["zero_variance",8]]}`,
		},
		{
			"joined", "select r.success, count(*) n from rewards r join selection s using (run, step, " +
				"trajectory_id) where r.run = 'done' and s.kept group by 1 order by 1",
			`{"columns":["success","n"],"rows":[[false,6],[true,6]]}`,
		},
		{
			"timings of calls and of activities", "select kind, count(*) n from timings where run = 'done' group by " +
				"1 order by 1",
			`{"columns":["kind","n"],"rows":[["activity",33],["tool_call",12]]}`,
		},
		{
			"the catalogue", "select run, recipe, seed, steps, steps_done, created, status, success_before, " +
				"success_after from runs order by run",
			`{"columns":["run","recipe","seed","steps","steps_done","created","status","success_before",` +
				`"success_after"],"rows":[["done","fixture",1,2,2,"2026-01-02T03:04:05Z","done",0.25,0.75],["open",` +
				`"fixture",2,5,1,"2026-01-03T03:04:05Z","open",0.25,null]]}`,
		},
		{
			"prompts and calls", "select p.problem, c.stdout from prompts p join tool_calls c using (run, step, " +
				"group_id) where c.trajectory_id = '00002/0001/000' and run = 'done'",
			`{"columns":["problem","stdout"],"rows":[["What is 2 + 1?","3\n"]]}`,
		},
		{"no table", "select 1 as one, null as nothing, 'NaN'::double as x; -- and a comment",
			`{"columns":["one","nothing","x"],"rows":[[1,null,"NaN"]]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := query(t, objects, c.query)
			require.NoError(t, err)
			if d := cmp.Diff(c.want, jsonOf(t, got)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestRunsAreFiltered(t *testing.T) {
	objects := twoRuns(t)
	got, err := query(t, objects, "select distinct run from turns", "open")
	require.NoError(t, err)
	require.Equal(t, [][]any{{"open"}}, got.Rows)
	_, err = query(t, objects, "select 1 from turns", "opne")
	require.ErrorIs(t, err, analysis.ErrNoRun)
}

// Equal bytes have one digest and one file in the cache; each run still sees its own rows, once.
func TestRunsShareFiles(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "a", Steps: 1, Seed: 1})
	recordtest.Train(t, objects, recordtest.Options{Run: "b", Steps: 1, Seed: 1})
	dir := t.TempDir()
	got, err := sql.Query(t.Context(), keeping(t, objects, dir),
		"select run, count(*) n from rewards group by 1 order by 1")
	require.NoError(t, err)
	require.Equal(t, [][]any{{"a", int64(12)}, {"b", int64(12)}}, got.Rows)
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.parquet"))
	require.NoError(t, err)
	require.Len(t, files, 5, "two shards and two evaluations, by which runs are listed, which the runs share, and "+
		"the empty one")
}

func TestEmptyTablesHaveColumns(t *testing.T) {
	for _, table := range schema.Tables() {
		got, err := query(t, mem.New(), "select * from "+string(table))
		require.NoError(t, err, table)
		require.Empty(t, got.Rows, table)
		require.Equal(t, []string{"run", "step", "gen"}, got.Columns[:3], table)
		require.Equal(t, []string{"VARCHAR", "INTEGER", "INTEGER"}, got.Types[:3], table)
	}
	got, err := query(t, mem.New(), "select token_ids, logprobs, loss_mask, answered from turns")
	require.NoError(t, err)
	require.Equal(t, []string{"INTEGER[]", "FLOAT[]", "INTEGER[]", "BOOLEAN"}, got.Types)
}

func TestTokenOutputs(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 1, Seed: 1, Outputs: true})
	recordtest.Train(t, objects, recordtest.Options{Run: "without", Steps: 1, Seed: 1})
	got, err := query(t, objects, "select run, count(*) n, min(list_min(old_logprobs))::varchar least, "+
		"count(values) v, count(reference_logprobs) r "+
		"from token_outputs join selection using (run, step, trajectory_id) where kept group by run")
	require.NoError(t, err)
	require.Equal(t, [][]any{{"r", int64(6), "-0.5", int64(0), int64(0)}}, got.Rows)
}

func TestGradings(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 1, Seed: 1, Gradings: true})
	recordtest.Train(t, objects, recordtest.Options{Run: "without", Steps: 1, Seed: 1})
	got, err := query(t, objects, "select g.run, g.verdict, grader, count(*) n, sum(reward) r from gradings g join "+
		"rewards using (run, step, trajectory_id) group by all order by 2")
	require.NoError(t, err)
	require.Equal(t, [][]any{{"r", "different", "sympy 1.14.0", int64(2), 0.0},
		{"r", "unreadable", "sympy 1.14.0", int64(4), 0.0}}, got.Rows)
}

func TestReplayBuffer(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1, Buffer: true})
	got, err := query(t, objects, "select step, count(*) n, min(collected) earliest from replay group by step order "+
		"by step")
	require.NoError(t, err)
	require.Equal(t, [][]any{{int32(1), int64(2), int32(1)}, {int32(2), int64(6), int32(1)}}, got.Rows)
	got, err = query(t, objects, "select count(*) n, avg(mean) m from baselines where step = 2")
	require.NoError(t, err)
	require.Equal(t, [][]any{{int64(3), 0.5}}, got.Rows)
}

func TestOrphansAreNotRead(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 1, Seed: 1})
	place := schema.At("r", 1, schema.StageReward).WithShard(0)
	_, err := commit.PutRows(context.Background(), commit.New(objects), place, []schema.RewardRow{
		{GroupID: "00001/0000", TrajectoryID: "00001/0000/000", Reward: 1000, Verdict: "exact"},
	})
	require.NoError(t, err)
	got, err := query(t, objects, "select max(reward), count(*) from rewards")
	require.NoError(t, err)
	require.Equal(t, [][]any{{1.0, int64(12)}}, got.Rows)
}

func TestMistakesAreTheQuerys(t *testing.T) {
	objects := twoRuns(t)
	for name, c := range map[string]struct{ query, want string }{
		"syntax":         {"select from where", "syntax error"},
		"unknown column": {"select rewrad from rewards", "rewrad"},
		"unknown table":  {"select * from reward", "the record has the tables prompts"},
		"misspelt table": {"select * from rewrds",
			"query: there is no table rewrds; did you mean rewards?\n\nLINE 1: "},
		"another's table": {"select * from tokens", "query: there is no table tokens\n\nLINE 1: "},
		"writes a file":   {"copy (select 1) to '/tmp/ropewalk-must-not-exist.csv'", "Permission Error"},
		"makes a table":   {"create table x as select 1", "for reading"},
		"loads":           {"install httpfs", "for reading"},
		"settings":        {"set enable_external_access = true", "for reading"},
		"attaches":        {"attach '/tmp/x.db' as x", "for reading"},
		"two statements":  {"select 1; drop view rewards", "want one statement"},
		"a file outside":  {"select * from read_text('/etc/passwd')", "Permission Error"},
		"the network":     {"select * from read_parquet('https://example.com/x.parquet')", ""},
		"lists a folder":  {"select * from glob('/etc/*')", "Permission Error"},
		"an empty query":  {"", ""},
		"the environment": {"select getenv('HOME')", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := query(t, objects, c.query)
			require.ErrorIs(t, err, sql.ErrQuery)
			require.Contains(t, err.Error(), c.want)
		})
	}
}

// The cache's folder is the one that DuckDB may reach, so statements must not write there.
func TestTheCacheIsNotWritten(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "written.csv")
	for _, text := range []string{
		"copy (select 1) to '" + target + "'",
		"explain analyze copy (select 1) to '" + target + "'",
		"/* */ explain analyze copy (select 1) to '" + target + "'",
		"explain (analyze, format json) copy (select 1) to '" + target + "'",
		"copy (select 1) to '" + target + "'; select 1",
		"export database '" + target + "'",
	} {
		_, err := sql.Query(context.Background(), keeping(t, mem.New(), dir), text)
		require.ErrorIs(t, err, sql.ErrQuery, text)
		require.NoFileExists(t, target, text)
	}
	got, err := sql.Query(context.Background(), keeping(t, mem.New(), dir), "explain analyze select 1")
	require.NoError(t, err)
	require.NotEmpty(t, got.Rows)
}

func TestDamageIsNotTheQuerys(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 1, Seed: 1})
	listed, err := objects.List(context.Background(), "runs/run=r/table=rewards/")
	require.NoError(t, err)
	require.NoError(t, objects.Put(context.Background(), listed[0].Key, []byte("rot")))
	_, err = query(t, objects, "select * from rewards")
	require.ErrorIs(t, err, commit.ErrDamaged)
	require.NotErrorIs(t, err, sql.ErrQuery)
	require.Contains(t, err.Error(), listed[0].Key)
}

func TestIntrospection(t *testing.T) {
	objects := twoRuns(t)
	got, err := query(t, objects, "show tables")
	require.NoError(t, err)
	require.Contains(t, jsonOf(t, got), `["selection"]`)
	got, err = query(t, objects, "describe rewards")
	require.NoError(t, err)
	require.Contains(t, jsonOf(t, got), `"reward","DOUBLE"`)
	got, err = query(t, objects, "from query('select count(*) n from ' || 'rew' || 'ards')")
	require.NoError(t, err)
	require.Equal(t, [][]any{{int64(36)}}, got.Rows)
}

func TestFormats(t *testing.T) {
	got, err := query(t, mem.New(), `select 7 as n, 'a,"b"' || chr(10) || chr(27) || '[2J' as t, null as x, [1.5,`+
		` 2] as l, 170141183460469231731687303715884105727::hugeint as h, date '2026-01-02' as d, {'a': 1} as s`)
	require.NoError(t, err)
	var table, csv bytes.Buffer
	require.NoError(t, got.WriteTable(&table))
	require.Equal(t, strings.Join([]string{
		"n  t                x  l                                              h  d           s",
		"─  ───────────────  ─  ───────  ───────────────────────────────────────  ──────────  ───────",
		`7  a,"b"⏎\u001b[2J     [1.5,2]  170141183460469231731687303715884105727  2026-01-02  {"a":1}`,
		"(1 row)\n",
	}, "\n"), table.String())
	require.NoError(t, got.WriteCSV(&csv))
	require.Equal(t, "n,t,x,l,h,d,s\n7,\"a,\"\"b\"\"\n\x1b[2J\",,\"[1.5,2]\","+
		"170141183460469231731687303715884105727,2026-01-02,\"{\"\"a\"\":1}\"\n", csv.String())
}

func TestValues(t *testing.T) {
	for query, want := range map[string]string{
		"1.50::decimal(9,2)":                           `1.5`,
		"0.1::float":                                   `0.1`,
		"'infinity'::double":                           `"Infinity"`,
		"timestamp '2026-01-02 03:04:05.5'":            `"2026-01-02T03:04:05.5Z"`,
		"timestamptz '2026-01-02 03:04:05+00'":         `"2026-01-02T03:04:05Z"`,
		"time '03:04:05.25'":                           `"03:04:05.25"`,
		"interval 1 month + interval 90 minutes":       `"1 months 0 days 1h30m0s"`,
		"'\\x01\\xff'::blob":                           `"\\x01ff"`,
		"'00000000-0000-0000-0000-0000000000ff'::uuid": `"00000000-0000-0000-0000-0000000000ff"`,
		"map {'a': 1, 'b': null}":                      `{"a":1,"b":null}`,
		"[{'x': 'nan'::double}]":                       `[{"x":"NaN"}]`,
		"true":                                         `true`,
	} {
		got, err := sql.Query(context.Background(), analysis.New(mem.New()), "select "+query)
		require.NoError(t, err, query)
		data, err := json.Marshal(got.Rows[0][0])
		require.NoError(t, err, query)
		require.Equal(t, want, string(data), query)
	}
}

func TestInterruptedQueryIsNotBad(t *testing.T) {
	session, err := sql.Open(t.Context(), analysis.New(mem.New()), nil)
	require.NoError(t, err)
	defer session.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = session.Ask(ctx, "select sum(a.range * b.range) from range(1000000000) a, range(1000000000) b")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, sql.ErrQuery)
}

// The second query of a run reads its shards from the cache.
func TestManySteps(t *testing.T) {
	const steps = 30
	objects := &counting{Store: mem.New()}
	recordtest.Train(t, objects, recordtest.Options{Run: "long", Steps: steps, Seed: 1})
	record := keeping(t, objects, t.TempDir())
	for range 2 {
		objects.gets.Store(0)
		got, err := sql.Query(context.Background(), record, "select count(distinct step), count(*) from rewards")
		require.NoError(t, err)
		require.Equal(t, [][]any{{int64(steps), int64(12 * steps)}}, got.Rows)
	}
	require.Less(t, objects.gets.Load(), int64(steps+10), "only the heads and a few more are asked for again")
}

// counting counts what is fetched.
type counting struct {
	store.Store
	gets atomic.Int64
}

func (c *counting) Get(ctx context.Context, key string) ([]byte, error) {
	c.gets.Add(1)
	return c.Store.Get(ctx, key)
}
