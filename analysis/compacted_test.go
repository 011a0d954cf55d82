package analysis_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/compaction"
	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/internal/testing/tamper"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

var code = schema.Digest([]byte("a later program"))

func compact(t *testing.T, objects store.Store) (steps, adopted int) {
	t.Helper()
	require.NoError(t, compaction.Run(t.Context(), commit.New(objects), "r", code,
		func(_ int, r compaction.Result) {
			if steps++; r.Adopted {
				adopted++
			}
		}))
	return steps, adopted
}

// rich is a run with rows in most tables.
func rich(t *testing.T, objects store.Store) {
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 3, Seed: 1, Buffer: true, Outputs: true,
		Gradings: true, Critic: true})
}

// tableOf reads every visible shard of a table.
func tableOf(t *testing.T, record *analysis.Record, table schema.Table) (shards []analysis.Shard, pieces [][]byte) {
	v, err := record.Visible(t.Context(), "r")
	require.NoError(t, err)
	shards, err = v.Shards(t.Context(), table)
	require.NoError(t, err)
	for _, s := range shards {
		data, err := v.Bytes(t.Context(), s)
		require.NoError(t, err)
		pieces = append(pieces, data)
	}
	return shards, pieces
}

func TestACompactedRunIsReadWithOneFilePerTableAndStep(t *testing.T) {
	objects := mem.New()
	rich(t, objects)
	before := map[schema.Table][]analysis.Shard{}
	pieces := map[schema.Table][][]byte{}
	for _, table := range schema.Tables() {
		before[table], pieces[table] = tableOf(t, analysis.New(objects), table)
	}
	overview := func() analysis.Overview {
		o, err := analysis.New(objects).Overview(t.Context(), "r")
		require.NoError(t, err)
		return o
	}
	o := overview()
	steps, adopted := compact(t, objects)
	require.Equal(t, 3, steps)
	require.Zero(t, adopted)

	merged := 0
	for _, table := range schema.Tables() {
		after, copies := tableOf(t, analysis.New(objects), table)
		perStep := map[int]int{}
		for _, s := range after {
			perStep[s.Step]++
			if strings.HasPrefix(s.Key, schema.CompactPrefix("r")) {
				merged++
			}
		}
		for step, n := range perStep {
			if step >= 1 { // the warm start is no step
				require.Equal(t, 1, n, "files of table %s of step %d", table, step)
			}
		}
		for i, s := range after {
			var shards [][]byte
			for j, one := range before[table] {
				if one.Step == s.Step {
					shards = append(shards, pieces[table][j])
				}
			}
			if perStep[s.Step] == 1 {
				require.NoError(t, schema.CheckMerged(table, copies[i], shards), "step %d of table %s", s.Step, table)
			}
		}
		original, _ := tableOf(t, analysis.New(objects).Originals(), table)
		require.Equal(t, before[table], original, "the shards of table %s are as they were", table)
	}
	require.GreaterOrEqual(t, merged, 3*6)
	require.Equal(t, o, overview())
	v := tamper.Verify(t, objects)
	require.Empty(t, v.Faults)
	require.Zero(t, v.Orphans)

	steps, adopted = compact(t, objects)
	require.Equal(t, steps, adopted, "a second call does nothing")
}

// TestAnOpenStepIsNotCompacted checks that a step without a head is left alone, and compacted once it is done.
func TestAnOpenStepIsNotCompacted(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 3, Seed: 1, Open: true})
	steps, _ := compact(t, objects)
	require.Equal(t, 2, steps)
	_, err := compaction.Step(t.Context(), commit.New(objects), "r", 3, code)
	require.ErrorIs(t, err, compaction.ErrNotDone)
	require.Empty(t, tamper.Verify(t, objects).Faults)
}

// TestACompactionThatIsKilledLosesNothing ends a compaction at one of its writes after the other, before the write,
// in the middle and after it, and starts it again.
func TestACompactionThatIsKilledLosesNothing(t *testing.T) {
	sound := mem.New()
	rich(t, sound)
	counted := faults.New(sound)
	compact(t, counted)
	for _, op := range []faults.Op{faults.Put, faults.PutIfAbsent} {
		writes := counted.Count(op, "/compact/")
		require.GreaterOrEqual(t, writes, 3)
		for _, effect := range []faults.Effect{faults.Fail, faults.LostAck, faults.Torn} {
			if op == faults.PutIfAbsent && effect == faults.Torn {
				continue // a torn manifest is a broken store, not a kill
			}
			for n := 1; n <= writes; n += 4 {
				objects := mem.New()
				rich(t, objects)
				broken := faults.New(objects, faults.Rule{Op: op, Key: "/compact/", Nth: n, Effect: effect})
				err := compaction.Run(t.Context(), commit.New(broken), "r", code, func(int, compaction.Result) {})
				require.ErrorIs(t, err, faults.ErrInjected, "%s %d", op, n)
				require.Empty(t, tamper.Verify(t, objects).Faults, "after a kill at %s %d", op, n)
				compact(t, objects)
				v := tamper.Verify(t, objects)
				require.Empty(t, v.Faults)
				require.Zero(t, v.Orphans, "equal rows give equal bytes, so both attempts write the same files")
				shards, _ := tableOf(t, analysis.New(objects), schema.Turns)
				require.Len(t, shards, 3)
			}
		}
	}
}

func TestVerifyFindsACopyWithOtherRows(t *testing.T) {
	objects := mem.New()
	rich(t, objects)
	compact(t, objects)
	w := commit.New(objects)
	place := schema.At("r", 2, schema.StageCompact)
	m, _, found, err := w.Lookup(t.Context(), place)
	require.NoError(t, err)
	require.True(t, found)
	for i, s := range m.Shards {
		if s.Table != schema.Rewards {
			continue
		}
		data, err := w.ReadShard(t.Context(), s)
		require.NoError(t, err)
		rows, err := schema.Decode[schema.RewardRow](data)
		require.NoError(t, err)
		rows[1].Turns++ // valid by itself
		forged, err := schema.Encode(rows)
		require.NoError(t, err)
		m.Shards[i], err = w.Shard(t.Context(), place, s.Table, forged, len(rows))
		require.NoError(t, err)
	}
	text, err := schema.EncodeManifest(m)
	require.NoError(t, err)
	require.NoError(t, objects.Put(t.Context(), place.ManifestKey(), text))
	v := tamper.Verify(t, objects)
	require.Len(t, v.Faults, 1)
	require.Contains(t, v.Faults[0].Message, "table rewards row 1: differs from the shards that were merged")
}

// TestAReplayIsReadFromItsShards checks that a copy is not taken for the rows of another generation.
func TestAReplayIsReadFromItsShards(t *testing.T) {
	objects := mem.New()
	r := recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 3, Seed: 1})
	r.Replay(2, 1)
	compact(t, objects)
	all, err := analysis.ParseGeneration("all")
	require.NoError(t, err)
	shards, _ := tableOf(t, analysis.New(objects).WithGeneration(all), schema.Rewards)
	gens := map[int]int{}
	for _, s := range shards {
		if s.Step == 2 {
			gens[s.Gen]++
		}
	}
	require.Equal(t, map[int]int{0: recordtest.Shards, 1: recordtest.Shards}, gens)
	require.Empty(t, tamper.Verify(t, objects).Faults)
}

// TestPythonReadsMergedCopies checks that the Python package reads the same rows from copies as from shards.
func TestPythonReadsMergedCopies(t *testing.T) {
	interpreter := pythontest.Need(t, "the merged copies", "pyarrow")
	folder := t.TempDir()
	for name, merged := range map[string]bool{"shards": false, "copies": true} {
		objects := mem.New()
		rich(t, objects)
		if merged {
			compact(t, objects)
		}
		recordtest.Unpack(t, objects, filepath.Join(folder, name))
	}
	script := filepath.Join(folder, "check.py")
	require.NoError(t, os.WriteFile(script, []byte(comparison), 0o600))
	cmd := exec.CommandContext(t.Context(), interpreter, script, folder)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join("..", "python"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "same")
}

const comparison = `
import sys
import ropewalk

a, b = (ropewalk.open(sys.argv[1] + "/" + name, run="r") for name in ("shards", "copies"))
opened = []
for name in a.tables:
    x, y = a.table(name).arrow, b.table(name).arrow
    keys = [c for c in x.column_names if c not in ("batch_rows", "values") and "list" not in str(x.schema.field(c).type)]
    order = [(c, "ascending") for c in keys]
    assert x.schema == y.schema, name
    assert x.sort_by(order).equals(y.sort_by(order)), name
    opened.append(len(b._visible.manifests(name, None)))
assert sum(m.place.stage == "compact" for m in b._visible.manifests("turns", None)) == 3
assert all(m.place.stage != "compact" for m in a._visible.manifests("turns", None))
print("same", opened)
`

// Neither merged copies nor the run's end are replays of a step.
func TestACompactedRunHasNoReplays(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1, Created: "2026-01-02T03:04:05Z"})
	compact(t, objects)
	v, err := analysis.New(objects).WithGeneration(analysis.AllGenerations).Visible(t.Context(), "r")
	require.NoError(t, err)
	require.Empty(t, v.Replays(analysis.NoStep))
}
