package verify_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/evaluation"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/internal/testing/tamper"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// forgeResult changes the result that an evaluation's manifest states.
func forgeResult(t *testing.T, m *schema.Manifest, change func(s *api.EvaluationSummary)) {
	t.Helper()
	var said api.Evaluated
	require.NoError(t, json.Unmarshal([]byte(m.Note[schema.NoteResult]), &said))
	change(&said.Summary)
	text, err := json.Marshal(said)
	require.NoError(t, err)
	m.Note[schema.NoteResult] = string(text)
}

// TestVerifyFindsForgedFigures: every figure that an evaluation or the catalogue states is held against rows and
// recipe.
func TestVerifyFindsForgedFigures(t *testing.T) {
	final := schema.At("r", 2, schema.StageEvaluate)
	result := func(change func(s *api.EvaluationSummary)) func(*testing.T, *mem.Store) string {
		return func(t *testing.T, objects *mem.Store) string {
			return tamper.Manifest(t, objects, final, func(m *schema.Manifest) { forgeResult(t, m, change) })
		}
	}
	stat := func(name string) func(*testing.T, *mem.Store) string {
		return func(t *testing.T, objects *mem.Store) string {
			return tamper.Manifest(t, objects, final, func(m *schema.Manifest) { m.Stats[name] += 0.125 })
		}
	}
	sound := mem.New()
	r := recordtest.Train(t, sound, recordtest.Options{Run: "r", Steps: 2, Seed: 1})
	r.Replay(1, 1)
	require.Empty(t, tamper.Verify(t, sound).Faults)
	for name, harm := range map[string]func(*testing.T, *mem.Store) string{
		"statistic success":  stat("success"),
		"statistic greedy":   stat("greedy"),
		"statistic rows":     stat("rows"),
		"statistic tokens":   stat("tokens"),
		"success":            result(func(s *api.EvaluationSummary) { s.Success = 0.99 }),
		"the interval":       result(func(s *api.EvaluationSummary) { s.CILow += 0.01 }),
		"the interval's top": result(func(s *api.EvaluationSummary) { s.CIHigh -= 0.01 }),
		"problems":           result(func(s *api.EvaluationSummary) { s.N++ }),
		"greedy":             result(func(s *api.EvaluationSummary) { s.Greedy = 1 }),
		"tool errors":        result(func(s *api.EvaluationSummary) { s.ToolErrorRatePositives = 0.5 }),
		"trajectories":       result(func(s *api.EvaluationSummary) { s.Trajectories++ }),
		"tool calls":         result(func(s *api.EvaluationSummary) { s.ToolCalls++ }),
		"a level": result(func(s *api.EvaluationSummary) {
			rate := s.ByLevel["2"]
			rate.Success = 0.5
			s.ByLevel["2"] = rate
		}),
		"a level that was not tested": result(func(s *api.EvaluationSummary) {
			s.ByLevel["9"] = api.Rate{Success: 1,
				N: 5}
		}),
		"no result": func(t *testing.T, objects *mem.Store) string {
			return tamper.Manifest(t, objects, final, func(m *schema.Manifest) { delete(m.Note, schema.NoteResult) })
		},
		"excluded": func(t *testing.T, objects *mem.Store) string {
			return tamper.Manifest(t, objects, schema.At("r", 1, schema.StageResample).WithGen(1),
				func(m *schema.Manifest) { m.Stats[schema.StatExcluded] = 3 })
		},
		"the catalogue": func(t *testing.T, objects *mem.Store) string {
			key := schema.CatalogueKey("r")
			tamper.Put(t, objects, key, []byte(
				`{"created":"2026-01-02T03:04:05Z","recipe":"fixture","run":"r","seed":2,"steps":2}`))
			return key
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := tamper.Copy(t, sound)
			key := harm(t, objects)
			require.Contains(t, tamper.Faults(tamper.Verify(t, objects)), "figures "+key)
		})
	}
}

// TestReadersWorkFiguresOutOfRows: a forged statistic changes nothing that a reader reports.
func TestReadersWorkFiguresOutOfRows(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1, Created: "2026-01-02T03:04:05Z"})
	record := analysis.New(objects)
	want, err := record.Overview(context.Background(), "r")
	require.NoError(t, err)
	require.Equal(t, 0.75, *want.Run.After)
	require.Len(t, want.Evaluations, 2)
	require.Equal(t, 0.75, want.Evaluations[1].Summary.Success)
	require.Equal(t, 4, want.Evaluations[1].Summary.N)
	require.Less(t, want.Evaluations[1].Summary.CILow, want.Evaluations[1].Summary.CIHigh)

	tamper.Manifest(t, objects, schema.At("r", 2, schema.StageEvaluate), func(m *schema.Manifest) {
		m.Stats["success"], m.Stats["greedy"] = 1, 1
		forgeResult(t, m, func(s *api.EvaluationSummary) {
			*s = api.EvaluationSummary{Rate: api.Rate{Success: 1, CILow: 0.99, CIHigh: 1, N: 1000}, Greedy: 1,
				Tokens: s.Tokens}
		})
	})
	got, err := record.Overview(context.Background(), "r")
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// TestTheNextStepVouchesForAnEvaluation: rows, digest and figures of an evaluation that were all exchanged for others
// that agree are not those that the next step's head goes back to.
func TestTheNextStepVouchesForAnEvaluation(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 1, Seed: 1})
	place := schema.AtInit("r", schema.StageEvaluate)
	rows, err := schema.Decode[schema.EvaluationRow](tamper.Get(t, objects,
		first(t, objects, "runs/run=r/table=evaluations/step=0/")))
	require.NoError(t, err)
	for i := range rows {
		rows[i].Success = false // a worse start makes a better gain
	}
	info, err := commit.PutRows(context.Background(), commit.New(objects), place, rows)
	require.NoError(t, err)
	key := tamper.Manifest(t, objects, place, func(m *schema.Manifest) {
		m.Shards[0] = info
		m.Stats["success"] = 0
		forgeResult(t, m, func(s *api.EvaluationSummary) {
			tokens := s.Tokens
			*s = evaluation.Summarise(evaluation.Sampled(rows), 1)
			s.Tokens = tokens
		})
	})
	require.Equal(t, []string{"lineage " + key}, tamper.Faults(tamper.Verify(t, objects)))
}

// Measured times that were exchanged with their shard, digest and manifest are found by the later ones that name them.
// Those of the last step, which nothing names yet, are not.
func TestVerifyFindsExchangedTimes(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 3, Planned: 4, Seed: 1})
	exchange := func(place schema.Place) string {
		return tamper.Manifest(t, objects, place, func(m *schema.Manifest) {
			rows, err := schema.Decode[schema.TimingRow](tamper.Get(t, objects, m.Shards[0].Key))
			require.NoError(t, err)
			*rows[0].EndMicros += 1_000_000
			info, err := commit.PutRows(t.Context(), commit.New(objects), m.Place, rows)
			require.NoError(t, err)
			m.Shards[0] = info
		})
	}
	exchange(schema.At("r", 3, "timings_step"))
	require.Empty(t, tamper.Faults(tamper.Verify(t, objects)))
	want := []string{
		"lineage " + exchange(schema.At("r", 1, "timings_step")),
		"lineage " + exchange(schema.At("r", 2, "timings_calls").WithTurn(0).WithShard(1)),
		"lineage " + exchange(schema.AtInit("r", "timings_run")),
	}
	require.ElementsMatch(t, want, tamper.Faults(tamper.Verify(t, objects)))
}
