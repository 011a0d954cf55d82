package analysis_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/verify"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/internal/testing/tamper"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// later rewrites a record as a later version of the format might have written it. It changes every manifest and head
// and, because they name each other by digest, all refs to them.
type later struct {
	t       *testing.T
	objects *mem.Store
	change  func(doc map[string]any)
	digests map[string]string
}

// document rewrites the document under a key, after those that it names, and returns its new digest.
func (l *later) document(key string) string {
	if digest, done := l.digests[key]; done {
		return digest
	}
	var doc map[string]any
	d := json.NewDecoder(strings.NewReader(string(tamper.Get(l.t, l.objects, key))))
	d.UseNumber()
	require.NoError(l.t, d.Decode(&doc))
	l.refs(doc)
	l.change(doc)
	data, err := schema.Canonical(doc)
	require.NoError(l.t, err)
	require.NoError(l.t, l.objects.Put(l.t.Context(), key, data))
	l.digests[key] = schema.Digest(data)
	return l.digests[key]
}

// refs gives every ref to a manifest its new digest.
func (l *later) refs(v any) {
	switch x := v.(type) {
	case map[string]any:
		if key, ok := x["key"].(string); ok && len(x) == 2 {
			if _, err := schema.ParseManifestKey(key); err == nil {
				x["digest"] = l.document(key)
			}
		}
		for _, inner := range x {
			l.refs(inner)
		}
	case []any:
		for _, inner := range x {
			l.refs(inner)
		}
	}
}

// asLater returns the golden record of this version with every document changed.
func asLater(t *testing.T, change func(doc map[string]any)) *mem.Store {
	t.Helper()
	objects := unpacked(t)
	l := &later{t: t, objects: objects, change: change, digests: map[string]string{}}
	listed, err := objects.List(t.Context(), "")
	require.NoError(t, err)
	for _, o := range listed {
		_, notManifest := schema.ParseManifestKey(o.Key)
		if notManifest == nil || strings.Contains(o.Key, "/heads/") {
			l.document(o.Key)
		}
	}
	return objects
}

// dream is a row of a kind that this program does not know.
var dream = []byte("a dream")

func dreamKey(step int) string {
	return schema.At("golden", step, schema.StageResample).DataKey("dreams", schema.Digest(dream), "parquet")
}

// laterMinor returns a record with fields and a table that this program does not know.
func laterMinor(t *testing.T) *mem.Store {
	t.Helper()
	objects := asLater(t, func(doc map[string]any) {
		doc["schema_version"], doc["mood"] = 99, map[string]any{"of": []any{"the day"}}
		if doc["stage"] != schema.StageResample {
			return
		}
		step, err := strconv.Atoi(doc["step"].(string))
		require.NoError(t, err)
		doc["shards"] = append(doc["shards"].([]any), map[string]any{"bytes": len(dream), "key": dreamKey(step),
			"digest": schema.Digest(dream), "rows": 1, "table": "dreams", "colour": "blue"})
	})
	for _, step := range []int{1, 2} {
		require.NoError(t, objects.Put(t.Context(), dreamKey(step), dream))
	}
	require.Contains(t, string(tamper.Get(t, objects, "runs/run=golden/heads/step=1.json")), "mood")
	return objects
}

// laterMajor returns a record of a major version that this program does not know.
func laterMajor(t *testing.T) *mem.Store {
	t.Helper()
	return asLater(t, func(doc map[string]any) { doc["version"], doc["schema_version"] = 2, 3 })
}

// A record of a later minor version is read and verified without what is unknown.
func TestARecordOfALaterMinorVersionIsRead(t *testing.T) {
	objects := laterMinor(t)
	require.Equal(t, rowsRead(t, unpacked(t)), rowsRead(t, objects))
	report, err := verify.Run(t.Context(), objects, "golden")
	require.NoError(t, err)
	require.Empty(t, report.Faults)
	require.NoError(t, objects.Put(t.Context(), dreamKey(1), []byte("others")))
	report, err = verify.Run(t.Context(), objects, "golden")
	require.NoError(t, err)
	require.NotEmpty(t, report.Faults, "digests are checked for unknown tables too")
}

// A record of a later major version is refused, and the message names the version.
func TestARecordOfALaterMajorVersionIsRefusedByName(t *testing.T) {
	_, err := analysis.New(laterMajor(t)).Visible(t.Context(), "golden")
	require.ErrorContains(t, err,
		"format version 2.3 is not supported by this program, which reads 1.x; upgrade ropewalk")
}

// The Python package reads the golden record as Go does, and treats later versions as Go does.
func TestPythonReadsRecordsOfOtherVersions(t *testing.T) {
	now := unpacked(t)
	read, refused := pythonReads(t, []*mem.Store{now, laterMinor(t), laterMajor(t)})
	rows := rowsRead(t, now)
	maps.DeleteFunc(rows, func(table schema.Table, n int) bool { return n == 0 || table.Ext() != "parquet" })
	for i := range 2 {
		require.Empty(t, refused[i])
		require.Equal(t, rows, read[i], "record %d", i)
	}
	require.Contains(t, refused[2],
		"format version 2.3 is not supported by this package, which reads 1.x; upgrade ropewalk")
}

// pythonReads counts the rows that the Python package reads of each record, by table, or returns why it refuses it.
func pythonReads(t *testing.T, stores []*mem.Store) (rows []map[schema.Table]int, refused []string) {
	t.Helper()
	args := []string{"-c", `
import json, os, sys
import ropewalk

rows, refused = [], []
for folder in sys.argv[1:]:
    try:
        run = ropewalk.open(folder, run="golden")
        rows.append({t: n for t in ropewalk.TABLES if (n := run.table(t).num_rows)})
        refused.append("")
    except ropewalk.RecordError as e:
        rows.append({})
        refused.append(str(e))
print(json.dumps([rows, refused]))
sys.stdout.flush()
os._exit(0)  # libraries that pyarrow loads may abort while the interpreter ends
`}
	for _, objects := range stores {
		args = append(args, folderOf(t, objects))
	}
	cmd := exec.Command(pythontest.Need(t, "PYARROW", "pyarrow"), args...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join("..", "python"), "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.Output()
	require.NoError(t, err, "%s", out)
	require.NoError(t, json.Unmarshal(out, &[]any{&rows, &refused}))
	return rows, refused
}

// folderOf writes a store's objects as files.
func folderOf(t *testing.T, objects *mem.Store) string {
	t.Helper()
	folder := t.TempDir()
	listed, err := objects.List(t.Context(), "")
	require.NoError(t, err)
	for _, o := range listed {
		path := filepath.Join(folder, filepath.FromSlash(o.Key))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, tamper.Get(t, objects, o.Key), 0o644))
	}
	return folder
}
