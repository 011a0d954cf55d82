package verify

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/internal/evaluation"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// evaluated holds the figures that follow from the rows of one evaluation.
type evaluated struct {
	summary api.EvaluationSummary
	tokens  int64 // read and written; the summary counts what was written
	written bool  // the rows say what was written
	rows    int
}

func evaluate(rows []schema.EvaluationRow, seed uint64) evaluated {
	out := evaluated{summary: evaluation.Summarise(evaluation.Sampled(rows), seed), rows: len(rows)}
	for _, r := range rows {
		out.tokens += int64(r.Tokens)
		out.written = out.written || r.ResponseTokens != nil
	}
	return out
}

// checkCatalogue compares the run's entry in the catalogue, which listings show, with the recipe.
func checkCatalogue(ctx context.Context, v *evidence) error {
	key := schema.CatalogueKey(v.run)
	data, err := v.get(ctx, key, "every listing of runs")
	if err != nil || data == nil {
		return err
	}
	var entry schema.CatalogueEntry
	if err := json.Unmarshal(data, &entry); err != nil {
		v.fault(FaultDamaged, key, "is not an entry of the catalogue: %v", err)
		return nil
	}
	if entry.Run != v.run {
		v.fault(FaultDamaged, key, "is the entry of run %s", entry.Run)
	}
	if id := v.recipe; id != nil && (entry.Recipe != id.Name || entry.Seed != id.Seed || entry.Steps != id.Steps) {
		v.fault(FaultFigures, key, "says recipe %s, seed %d, %d steps, but the run's recipe says %s, seed %d, %d steps",
			entry.Recipe, entry.Seed, entry.Steps, id.Name, id.Seed, id.Steps)
	}
	return nil
}

// evaluations are the stages that measure a policy on held-out problems.
var evaluations = []string{schema.StageEvaluate, schema.StageInitial, schema.StageFactual}

// checkFigures recomputes the figures that manifests state about their rows: the results of evaluations and the numbers
// of excluded trajectories.
func checkFigures(v *evidence) {
	for _, key := range v.keys() {
		m := v.manifests[key]
		switch {
		case m.Warm != "":
		case slices.Contains(evaluations, m.Stage) && m.Shard < 0:
			checkEvaluation(v, key, m.Manifest)
		case m.Stage == schema.StageResample:
			checkExcluded(v, key, m.Manifest)
		}
	}
}

func checkExcluded(v *evidence, key string, m schema.Manifest) {
	shards := m.ShardsOf(schema.Selection)
	n := 0
	for _, s := range shards {
		facts, sound := v.shards[s.Key]
		if !sound {
			return // a fault already
		}
		n += facts.excluded
	}
	checkFigure(v, key, schema.StatExcluded, m.Stats[schema.StatExcluded], float64(n))
}

// checkEvaluation compares an evaluation's statistics and result with its rows.
func checkEvaluation(v *evidence, key string, m schema.Manifest) {
	rows, ok := v.evaluationRows(key, m)
	if !ok {
		return
	}
	seed := uint64(0)
	if v.recipe != nil {
		seed = v.recipe.Seed
	}
	got := evaluate(rows, seed)
	var said api.Evaluated
	if err := json.Unmarshal([]byte(m.Note[schema.NoteResult]), &said); err != nil {
		v.fault(FaultFigures, key, "states no result: %v", err)
		return
	}
	checkFigure(v, key, "statistic success", m.Stats["success"], got.summary.Success)
	checkFigure(v, key, "statistic greedy", m.Stats["greedy"], got.summary.Greedy)
	checkFigure(v, key, "statistic rows", m.Stats[schema.StatRows], float64(got.rows))
	checkFigure(v, key, "statistic tokens", m.Stats[schema.StatTokens], float64(said.Summary.Tokens))
	checkSummary(v, key, said.Summary, got)
}

// evaluationRows returns the rows of an evaluation, or those of its parts. ok is false if some cannot be read, which is
// a fault already, or if a manifest does not commit them in one shard.
func (v *evidence) evaluationRows(key string, m schema.Manifest) (rows []schema.EvaluationRow, ok bool) {
	manifests := map[string]schema.Manifest{key: m}
	if len(m.Parts) > 0 {
		clear(manifests)
	}
	for _, ref := range m.Parts {
		part, there := v.manifests[ref.Key]
		if !there {
			return nil, false
		}
		manifests[ref.Key] = part.Manifest
	}
	for _, name := range slices.Sorted(maps.Keys(manifests)) {
		shards := manifests[name].ShardsOf(schema.Evaluations)
		if len(shards) != 1 {
			v.fault(FaultRows, name, "commits %d shards of table %s, want 1", len(shards), schema.Evaluations)
			return nil, false
		}
		some, sound := v.shards[shards[0].Key]
		if !sound {
			return nil, false
		}
		rows = append(rows, some.evaluated...)
	}
	return rows, true
}

// checkSummary compares the numbers of two summaries, whatever they are of. Intervals depend on the run's seed, and are
// not checked if the recipe cannot be read.
func checkSummary(v *evidence, key string, said api.EvaluationSummary, got evaluated) {
	if !got.written { // the rows do not tell what was written of what they hold
		if said.Tokens < 0 || said.Tokens > got.tokens {
			v.fault(FaultFigures, key, "states result: tokens %d, but its rows hold %d tokens in all", said.Tokens,
				got.tokens)
		}
		got.summary.Tokens = said.Tokens
	}
	have, want := map[string]float64{}, map[string]float64{}
	numbers(said, "", have)
	numbers(got.summary, "", want)
	all := maps.Clone(want)
	maps.Copy(all, have)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if v.recipe == nil && (strings.HasSuffix(path, "ci_low") || strings.HasSuffix(path, "ci_high")) {
			continue
		}
		checkFigure(v, key, "result:"+path, have[path], want[path])
	}
}

// numbers collects the numbers of a value by the names that lead to them in its JSON form.
func numbers(value any, path string, into map[string]float64) {
	text, err := json.Marshal(value)
	if err != nil {
		return // NaN: the path is then missing on one side
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) == nil {
		for name, field := range fields {
			numbers(field, path+" "+name, into)
		}
		return
	}
	var n float64
	if json.Unmarshal(text, &n) == nil {
		into[path] = n
	}
}

// rounding is the relative difference allowed between sums in different orders or on different processors.
const rounding = 1e-9

// near is false also if one figure is not a number.
func near(said, want float64) bool { return math.Abs(said-want) <= rounding*max(1, math.Abs(want)) }

func checkFigure(v *evidence, key, what string, said, want float64) {
	if !near(said, want) {
		v.fault(FaultFigures, key, "states %s %v, but its rows give %v", what, said, want)
	}
}
