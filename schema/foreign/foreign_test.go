package foreign_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema/foreign"
)

type row struct {
	Question string   `parquet:"question"`
	Answer   *int64   `parquet:"answer,optional"`
	Easy     bool     `parquet:"easy"`
	Weight   float64  `parquet:"weight"`
	Tags     []string `parquet:"tags,list"`
}

// file writes rows in groups of two.
func file(t *testing.T, rows ...row) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b, parquet.MaxRowsPerRowGroup(2), parquet.Compression(&parquet.Zstd))
	_, err := w.Write(rows)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func TestRows(t *testing.T) {
	data := file(t, row{"a", new(int64(3)), true, 0.5, []string{"x", "y"}}, row{"ü", nil, false, 1e30, nil},
		row{"", new(int64(-7)), false, 2, []string{"z"}})
	table, err := foreign.Open(bytes.NewReader(data), int64(len(data)), 1<<20,
		[]string{"answer", "question", "absent", "easy", "weight"})
	require.NoError(t, err)
	require.Equal(t, []string{"answer", "question", "easy", "weight"}, table.Columns())
	var got [][]string
	var nulls []bool
	require.NoError(t, table.Rows(func(texts []string, ok []bool) error {
		got, nulls = append(got, bytesOf(texts)), append(nulls, !ok[0])
		return nil
	}))
	require.Equal(t, [][]string{{"3", "a", "true", "0.5"}, {"", "ü", "false", "1e+30"}, {"-7", "", "false", "2"}}, got)
	require.Equal(t, []bool{false, true, false}, nulls)

	stop := errors.New("stop")
	require.ErrorIs(t, table.Rows(func([]string, []bool) error { return stop }), stop)
}

func bytesOf(texts []string) []string { return append([]string(nil), texts...) }

func TestBadFilesAreRefused(t *testing.T) {
	data := file(t, row{Question: "a"})
	open := func(data []byte, most int64, columns ...string) error {
		_, err := foreign.Open(bytes.NewReader(data), int64(len(data)), most, columns)
		return err
	}
	require.NoError(t, open(data, 1<<20, "question"))
	require.ErrorIs(t, open(data, 8, "question"), foreign.ErrTooLarge)
	require.ErrorContains(t, open(data[:len(data)-9], 1<<20, "question"), "read the file's footer")
	require.ErrorContains(t, open([]byte(foreign.Magic), 1<<20, "question"), "read the file's footer")
}
