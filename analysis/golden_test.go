package analysis_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/recordtest"
	"github.com/ropewalk/ropewalk/internal/golden"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// The golden records are small runs as each minor version of the format wrote them: each archive in testdata/records
// holds the objects of a bucket. Those of earlier versions were written by the programs of their time and are never
// written again. rows.json says what is read of each: the rows by table.
func goldenRecord(version int) string {
	return filepath.Join("testdata", "records", fmt.Sprintf("v1.%d.tar.gz", version))
}

// unpacked reads a golden record into memory.
func unpacked(t *testing.T, version int) *mem.Store {
	t.Helper()
	return recordtest.Archived(t, goldenRecord(version))
}

// pack writes the record of this version.
func pack(t *testing.T) {
	t.Helper()
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "golden", Steps: 2, Seed: 1, Created: "2026-01-02T03:04:05Z",
		Buffer: true, Outputs: true, Critic: true, Episodes: true, Trace: "0af7651916cd43dd8448eb211c80319c"})
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	listed, err := objects.List(t.Context(), "")
	require.NoError(t, err)
	for _, o := range listed {
		data := get(t, objects, o.Key)
		require.NoError(t, w.WriteHeader(&tar.Header{Name: o.Key, Size: int64(len(data)), Mode: 0o644,
			ModTime: time.Unix(0, 0), Format: tar.FormatPAX}))
		_, err := w.Write(data)
		require.NoError(t, err)
	}
	require.NoError(t, errors.Join(w.Close(), z.Close()))
	require.NoError(t, os.WriteFile(goldenRecord(schema.Version), out.Bytes(), 0o644))
}

// rowsRead counts the rows that Go reads, by table.
func rowsRead(t *testing.T, objects *mem.Store) map[schema.Table]int {
	t.Helper()
	v, err := analysis.New(objects).Visible(t.Context(), "golden")
	require.NoError(t, err)
	out := map[schema.Table]int{}
	for _, table := range append(schema.Tables(), schema.Batch, schema.ReplayBatch) {
		shards, err := v.Shards(t.Context(), table)
		require.NoError(t, err)
		for _, s := range shards {
			data := get(t, objects, s.Key)
			require.NoError(t, schema.AuditShard(s.Table, data, s.Rows), s.Key)
			out[table] += s.Rows
		}
	}
	return out
}

func TestGoldenRecordsOfEveryVersionAreRead(t *testing.T) {
	if *update {
		pack(t)
	}
	manifests := golden.Schema(t, filepath.Join("..", "schema", "manifest.schema.json"))
	heads := golden.Schema(t, filepath.Join("..", "schema", "head.schema.json"))
	got := map[string]map[schema.Table]int{}
	for version := 1; version <= schema.Version; version++ {
		objects := unpacked(t, version)
		report, err := analysis.New(objects).Verify(t.Context(), "golden")
		require.NoError(t, err)
		faults := slices.DeleteFunc(report.Faults, func(f analysis.Fault) bool {
			// The evaluations of the first three records state figures that their writer had made up.
			return version <= 3 && f.Kind == analysis.FaultFigures && strings.Contains(f.Key, "/evaluate/")
		})
		require.Empty(t, faults, "version %d", version)
		rows := rowsRead(t, objects)
		got[fmt.Sprintf("1.%d", version)] = rows
		followsSchemas(t, objects, manifests, heads, version)
	}
	name := filepath.Join("testdata", "records", "rows.json")
	text, err := schema.Canonical(got)
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(name, text, 0o644))
	}
	want, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, string(want), string(text))
}

// followsSchemas checks every manifest and head of a record against the JSON schemas of the specification.
func followsSchemas(t *testing.T, objects *mem.Store, manifests, heads *jsonschema.Schema, version int) {
	t.Helper()
	listed, err := objects.List(t.Context(), "")
	require.NoError(t, err)
	checked := 0
	for _, o := range listed {
		s := manifests
		if strings.Contains(o.Key, "/heads/") {
			s = heads
		} else if _, err := schema.ParseManifestKey(o.Key); err != nil {
			continue
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(get(t, objects, o.Key)))
		require.NoError(t, err)
		require.NoError(t, s.Validate(doc), "version %d: %s", version, o.Key)
		checked++
	}
	require.Greater(t, checked, 20)
}
