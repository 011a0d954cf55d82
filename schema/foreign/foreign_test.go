package foreign_test

import (
	"bytes"
	"errors"
	"math"
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
	require.Equal(t, [][]string{{"3", "a", "true", "0.5"}, {"", "ü", "false", "1000000000000000000000000000000"},
		{"-7", "", "false", "2"}}, got)
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

// typed holds a value of each logical type that is read.
type typed struct {
	Small   int32    `parquet:"small,decimal(2:9)"`
	Large   int64    `parquet:"large,decimal(3:18)"`
	Bytes   [16]byte `parquet:"bytes,decimal(1:38)"`
	Day     int32    `parquet:"day,date"`
	At      int64    `parquet:"at,timestamp(microsecond)"`
	Noon    int32    `parquet:"noon,time(millisecond)"`
	Count   uint32   `parquet:"count"`
	Total   uint64   `parquet:"total"`
	ID      [16]byte `parquet:"id,uuid"`
	Float   float32  `parquet:"float"`
	Double  float64  `parquet:"double"`
	Kind    string   `parquet:"kind,enum"`
	Further string   `parquet:"further,json"`
}

func TestValuesAreReadAsWhatTheyMean(t *testing.T) {
	minus := [16]byte{}
	for i := range minus {
		minus[i] = 0xff
	}
	values := typed{Small: 250, Large: -1, Bytes: minus, Day: 19723, At: -1, Noon: 43_200_500, Count: 4294967295,
		Total: 18446744073709551615, ID: [16]byte{0x12, 0x34, 15: 0xff}, Float: 1.5e6, Double: 0.00001,
		Kind: "k", Further: "{}"}
	names := []string{"small", "large", "bytes", "day", "at", "noon", "count", "total", "id", "float", "double", "kind",
		"further"}
	require.Equal(t, []string{"2.5", "-0.001", "-0.1", "2024-01-01", "1969-12-31T23:59:59.999999Z", "12:00:00.5",
		"4294967295", "18446744073709551615", "12340000-0000-0000-0000-0000000000ff", "1500000", "0.00001", "k", "{}"},
		read(t, values, names))
}

// read writes one row and reads the columns of it.
func read[T any](t *testing.T, value T, names []string) (texts []string) {
	t.Helper()
	table, err := opened(value, names)
	require.NoError(t, err)
	require.NoError(t, table.Rows(func(row []string, _ []bool) error {
		texts = bytesOf(row)
		return nil
	}))
	return texts
}

func opened[T any](value T, names []string) (*foreign.Table, error) {
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b)
	if _, err := w.Write([]T{value}); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return foreign.Open(bytes.NewReader(b.Bytes()), int64(b.Len()), 1<<20, names)
}

func TestWhatHasNoTextIsRefusedByName(t *testing.T) {
	type inner struct {
		Answer string `parquet:"answer"`
	}
	type nested struct {
		Reward inner    `parquet:"reward"`
		Tags   []string `parquet:"tags,list"`
		Many   []string `parquet:"many"`
		Raw    [4]byte  `parquet:"raw"`
	}
	for name, want := range map[string]string{"reward": "column reward is nested", "tags": "column tags is nested",
		"many": "column many holds lists", "raw": "column raw holds values of type FIXED_LEN_BYTE_ARRAY"} {
		_, err := opened(nested{}, []string{name})
		require.ErrorContains(t, err, want)
	}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		table, err := opened(row{Weight: x}, []string{"weight"})
		require.NoError(t, err)
		require.ErrorContains(t, table.Rows(func([]string, []bool) error { return nil }), "column weight holds ")
	}
}

func TestDecimal(t *testing.T) {
	for number, want := range map[string]string{"3": "3", "1.50": "1.50", "1.5e+06": "1500000", "1E3": "1000",
		"-2.5e-3": "-0.0025", "12e-1": "1.2", "0e5": "0", "100e-2": "1"} {
		got, err := foreign.Decimal(number)
		require.NoError(t, err)
		require.Equal(t, want, got, number)
	}
	for _, number := range []string{"1e401", "1e-401", "1e99999999999999999999"} {
		_, err := foreign.Decimal(number)
		require.ErrorContains(t, err, number)
	}
}
