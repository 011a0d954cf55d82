package analysis_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/verify"
	"github.com/ropewalk/ropewalk/internal/testing/golden"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/internal/testing/tamper"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// goldenRecord is a small run as this version of the format writes it: the archive holds the objects of a bucket.
// rows.json says what is read of it: the rows by table.
var goldenRecord = filepath.Join("testdata", "records", fmt.Sprintf("v%d.%d.tar.gz", schema.Major, schema.Version))

// unpacked reads the golden record into memory. A path in the archive is an object's key.
func unpacked(t *testing.T) *mem.Store {
	t.Helper()
	f, err := os.Open(goldenRecord)
	require.NoError(t, err)
	defer f.Close()
	plain, err := gzip.NewReader(f)
	require.NoError(t, err)
	objects := mem.New()
	for r := tar.NewReader(plain); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return objects
		}
		require.NoError(t, err)
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, objects.Put(t.Context(), header.Name, data))
	}
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
		data := tamper.Get(t, objects, o.Key)
		require.NoError(t, w.WriteHeader(&tar.Header{Name: o.Key, Size: int64(len(data)), Mode: 0o644,
			ModTime: time.Unix(0, 0), Format: tar.FormatPAX}))
		_, err := w.Write(data)
		require.NoError(t, err)
	}
	require.NoError(t, errors.Join(w.Close(), z.Close()))
	require.NoError(t, os.WriteFile(goldenRecord, out.Bytes(), 0o644))
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
			data := tamper.Get(t, objects, s.Key)
			require.NoError(t, schema.AuditShard(s.Table, data, s.Rows), s.Key)
			out[table] += s.Rows
		}
	}
	return out
}

func TestTheGoldenRecordIsRead(t *testing.T) {
	if *update {
		pack(t)
	}
	objects := unpacked(t)
	report, err := verify.Run(t.Context(), objects, "golden")
	require.NoError(t, err)
	require.Empty(t, report.Faults)
	followsSchemas(t, objects, golden.Schema(t, filepath.Join("..", "schema", "manifest.schema.json")),
		golden.Schema(t, filepath.Join("..", "schema", "head.schema.json")))
	name := filepath.Join("testdata", "records", "rows.json")
	text, err := schema.Canonical(rowsRead(t, objects))
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(name, text, 0o644))
	}
	want, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, string(want), string(text))
}

// followsSchemas checks every manifest and head of a record against the JSON schemas of the specification.
func followsSchemas(t *testing.T, objects *mem.Store, manifests, heads *jsonschema.Schema) {
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
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(tamper.Get(t, objects, o.Key)))
		require.NoError(t, err)
		require.NoError(t, s.Validate(doc), o.Key)
		checked++
	}
	require.Greater(t, checked, 20)
}
