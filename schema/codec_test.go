package schema

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestEveryTableHasACase(t *testing.T) {
	var got []Table
	for _, c := range tableCases() {
		got = append(got, c.table)
		require.NoError(t, c.table.Valid())
	}
	want := append(Tables(), Batch, ReplayBatch)
	slices.Sort(got)
	slices.Sort(want)
	require.Equal(t, want, got)
}

func TestRoundTrip(t *testing.T) {
	for _, c := range tableCases() {
		t.Run(string(c.table), func(t *testing.T) {
			for _, n := range []int{0, 1, 2, 7, 300} {
				for _, groupBytes := range []int{1 + 20*n, 20_000, rowGroupBytes} {
					rows := c.rows(uint64(n), n)
					data, err := c.encode(rows, groupBytes)
					require.NoError(t, err)
					got, err := c.decode(data)
					require.NoError(t, err)
					if diff := cmp.Diff(rows, got); diff != "" {
						t.Fatalf("%d rows, groups of %d bytes (-want +got):\n%s", n, groupBytes, diff)
					}
					again, err := c.encode(got, groupBytes)
					require.NoError(t, err)
					require.True(t, bytes.Equal(data, again), "equal rows gave other bytes")
					require.NoError(t, AuditShard(c.table, data, n))
					require.ErrorContains(t, AuditShard(c.table, data, n+1), "manifest says")
				}
			}
		})
	}
}

func TestNullAndEmptyLists(t *testing.T) {
	row := TurnRow{GroupID: GroupID(0, 0), TrajectoryID: TrajectoryID(0, 0, 0), Finish: "stop"}
	null, empty := row, row
	empty.Turn, empty.PolicyVersion, empty.LogProbs, empty.Entropies = 1, "v", []float32{}, []float32{}
	data, err := Encode([]TurnRow{null, empty})
	require.NoError(t, err)
	got, err := Decode[TurnRow](data)
	require.NoError(t, err)
	require.Nil(t, got[0].LogProbs)
	require.Nil(t, got[0].Entropies)
	require.Equal(t, []float32{}, got[1].LogProbs)
	require.Equal(t, []float32{}, got[1].Entropies)
	require.Equal(t, []int32{}, got[0].TokenIDs, "the nil of a required list is the empty list")
}

func TestTextThatIsNotUTF8(t *testing.T) {
	row := ToolCallRow{GroupID: GroupID(0, 0), TrajectoryID: TrajectoryID(0, 0, 0), Status: "ok",
		Stdout: "a\xff\xfeb\xc3"}
	rows := []ToolCallRow{row}
	data, err := Encode(rows)
	require.NoError(t, err)
	require.Equal(t, "a\xff\xfeb\xc3", rows[0].Stdout, "the caller's rows are left alone")
	got, err := Decode[ToolCallRow](data)
	require.NoError(t, err)
	require.Equal(t, Text(row.Stdout), got[0].Stdout)
	require.Equal(t, "a\uFFFDb\uFFFD", got[0].Stdout)
}

// TestGolden holds, for each table, the schema as a reader sees it and the digest of a fixed shard:
// a change of either is a change of the format.
func TestGolden(t *testing.T) {
	for _, c := range tableCases() {
		t.Run(string(c.table), func(t *testing.T) {
			data := encodeFixture(c, 42, 12)
			var b strings.Builder
			if c.table.Ext() == "arrow" {
				describeArrow(t, &b, data)
			} else {
				describeParquet(t, &b, data)
			}
			fmt.Fprintf(&b, "12 rows of seed 42: %d bytes, digest %s\n", len(data), Digest(data))
			name := filepath.Join("testdata", string(c.table)+".golden")
			if *update {
				require.NoError(t, os.WriteFile(name, []byte(b.String()), 0o644))
			}
			want, err := os.ReadFile(name)
			require.NoError(t, err)
			if diff := cmp.Diff(string(want), b.String()); diff != "" {
				t.Errorf("the format changed (-want +got); if it is meant to, run go test ./schema -update:\n%s", diff)
			}
		})
	}
}

func describeParquet(t *testing.T, b *strings.Builder, data []byte) {
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	fmt.Fprintf(b, "# %s\n%s\n", f.Metadata().CreatedBy, f.Schema())
	for _, key := range []string{metaTable, metaVersion} {
		value, _ := f.Lookup(key)
		fmt.Fprintf(b, "%s = %s\n", key, value)
	}
	group := f.Metadata().RowGroups[0]
	for _, s := range group.SortingColumns {
		fmt.Fprintf(b, "sorted by %s\n", group.Columns[s.ColumnIdx].MetaData.PathInSchema)
	}
	for _, column := range group.Columns {
		m := column.MetaData
		fmt.Fprintf(b, "%-36s %s %v bloom=%t\n", strings.Join(m.PathInSchema, "."), m.Codec, m.Encoding,
			m.BloomFilterOffset > 0)
	}
}

func describeArrow(t *testing.T, b *strings.Builder, data []byte) {
	r, err := ipc.NewFileReader(bytes.NewReader(data))
	require.NoError(t, err)
	defer r.Close()
	fmt.Fprintln(b, r.Schema())
}

func TestEncodings(t *testing.T) {
	for _, c := range tableCases() {
		if c.table.Ext() == "arrow" {
			continue
		}
		data := encodeFixture(c, 1, 100)
		f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
		require.NoError(t, err)
		require.NotEmpty(t, f.ColumnIndexes(), "page index")
		require.NotEmpty(t, f.OffsetIndexes(), "page index")
		for _, column := range f.Metadata().RowGroups[0].Columns {
			m := column.MetaData
			name := strings.Join(m.PathInSchema, ".")
			require.Equal(t, format.Zstd, m.Codec, name)
			float := m.Type == format.Float || m.Type == format.Double
			require.Equal(t, float, slices.Contains(m.Encoding, format.ByteStreamSplit),
				"%s: byte-stream-split is for floats only", name)
			leaf, _ := f.Schema().Lookup(m.PathInSchema...)
			filtered := name == "trajectory_id" && !leaf.Node.Optional()
			require.Equal(t, filtered, m.BloomFilterOffset > 0, "%s: bloom filter", name)
			if strings.HasPrefix(name, "token_ids") {
				require.Contains(t, m.Encoding, format.RLEDictionary, name)
			}
		}
	}
}

func TestRowGroupsAreBoundedInBytes(t *testing.T) {
	c := parquetCase(turnRows)
	rows := c.rows(5, 600).([]TurnRow)
	const bound = 20_000
	data, err := encode(rows, bound)
	require.NoError(t, err)
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	require.Greater(t, len(f.RowGroups()), 3)
	for _, g := range f.Metadata().RowGroups {
		require.Less(t, g.TotalByteSize, int64(2*bound), "a group's raw bytes")
	}
}

func TestBloomFilterFindsTrajectories(t *testing.T) {
	data := encodeFixture(parquetCase(trajectoryRows), 1, 400)
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	leaf, ok := f.Schema().Lookup("trajectory_id")
	require.True(t, ok)
	filter := f.RowGroups()[0].ColumnChunks()[leaf.ColumnIndex].BloomFilter()
	there, err := filter.Check(parquet.ValueOf(TrajectoryID(3, 7, 2)))
	require.NoError(t, err)
	require.True(t, there)
	false_ := 0
	for i := range 1000 {
		there, err := filter.Check(parquet.ValueOf(TrajectoryID(4, i, 0)))
		require.NoError(t, err)
		if there {
			false_++
		}
	}
	require.Less(t, false_, 50, "false positives of 1,000")
}
