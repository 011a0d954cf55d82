package foreign_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/rescue"
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
	table, err := foreign.Open(data, 1<<20)
	require.NoError(t, err)
	require.Equal(t, []string{"question", "answer", "easy", "weight", "tags"}, table.Columns())
	columns, got := []string{"answer", "question", "absent", "easy", "weight", "tags"}, [][]any(nil)
	require.NoError(t, table.Rows(columns, func(values []any) error {
		got = append(got, slices.Clone(values))
		return nil
	}))
	raw := func(text string) json.RawMessage { return json.RawMessage(text) }
	require.Equal(t, [][]any{{"3", "a", nil, "true", "0.5", raw(`["x","y"]`)},
		{nil, "ü", nil, "false", "1000000000000000000000000000000", raw("[]")},
		{"-7", "", nil, "false", "2", raw(`["z"]`)}}, got)

	stop := errors.New("stop")
	require.ErrorIs(t, table.Rows(columns, func([]any) error { return stop }), stop)
}

func TestBadFilesAreRefused(t *testing.T) {
	data := file(t, row{Question: "a"})
	open := func(data []byte, most int64) error {
		_, err := foreign.Open(data, most)
		return err
	}
	require.NoError(t, open(data, 1<<20))
	require.ErrorIs(t, open(data, 8), foreign.ErrTooLarge)
	require.ErrorContains(t, open(data[:len(data)-9], 1<<20), "read the file's footer")
	require.ErrorContains(t, open([]byte(foreign.Magic), 1<<20), "read the file's footer")
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
	require.Equal(t, []any{"2.5", "-0.001", "-0.1", "2024-01-01", "1969-12-31T23:59:59.999999Z", "12:00:00.5",
		"4294967295", "18446744073709551615", "12340000-0000-0000-0000-0000000000ff", "1500000", "0.00001", "k", "{}"},
		read(t, values, names))
}

// read writes one row and reads the columns of it.
func read[T any](t *testing.T, value T, names []string) (out []any) {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b)
	_, err := w.Write([]T{value})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	table, err := foreign.Open(b.Bytes(), 1<<20)
	require.NoError(t, err)
	require.NoError(t, table.Rows(names, func(row []any) error {
		out = slices.Clone(row)
		return nil
	}))
	return out
}

// What cannot be read is an error by name, which does no harm to other columns.
func TestWhatHasNoTextIsRefusedByName(t *testing.T) {
	type mixed struct {
		Raw    [4]byte `parquet:"raw"`
		Weight float64 `parquet:"weight"`
		Inner  struct {
			At [4]byte `parquet:"at"`
		} `parquet:"inner"`
		Text string `parquet:"text"`
	}
	got := read(t, mixed{Weight: math.Inf(1), Text: "a"}, []string{"raw", "weight", "inner", "text"})
	for i, want := range []string{"raw holds values of type fixed_size_binary[4]", "weight holds +Inf",
		"inner holds values of type fixed_size_binary[4], want text, numbers or times in at"} {
		require.ErrorContains(t, got[i].(error), want)
	}
	require.Equal(t, "a", got[3])
}

type (
	turn struct {
		Role    string  `parquet:"role"`
		Content *string `parquet:"content,optional"`
	}
	conversation struct {
		Prompt []turn `parquet:"prompt,list,optional"`
		Reward *struct {
			Truth string  `parquet:"ground_truth"`
			Score float64 `parquet:"score"`
		} `parquet:"reward_model,optional"`
		Sentences [][]string `parquet:"sentences,list"`
		Plain     []int32    `parquet:"plain"`
	}
)

// Nested columns are JSON, with empty lists, nulls and lists of lists where they are.
func TestNestedColumns(t *testing.T) {
	names := []string{"prompt", "reward_model", "sentences", "plain"}
	full := conversation{Prompt: []turn{{"system", nil}, {"user", new("a \"q\"")}},
		Sentences: [][]string{{"x", "y"}, {}, {"z"}}, Plain: []int32{1, -2}}
	full.Reward = &struct {
		Truth string  `parquet:"ground_truth"`
		Score float64 `parquet:"score"`
	}{"42", 1.5}
	for i, want := range []string{`[{"role":"system","content":null},{"role":"user","content":"a \"q\""}]`,
		`{"ground_truth":"42","score":1.5}`, "", `[1,-2]`} {
		if got := read(t, full, names)[i]; want != "" {
			require.JSONEq(t, want, string(got.(json.RawMessage)))
		}
	}
	require.Equal(t, []any{nil, nil, json.RawMessage("[]"), json.RawMessage("[]")}, read(t, conversation{}, names))
}

// Files of Arrow's two forms are read as Parquet files are; pyarrow has written them.
func TestArrow(t *testing.T) {
	python := os.Getenv("ROPEWALK_PYTHON")
	if python == "" {
		t.Skip("ROPEWALK_PYTHON names no Python with pyarrow")
	}
	const program = `
import sys, pyarrow as pa, pyarrow.parquet as pq, pyarrow.ipc as ipc
t = pa.table({"q": ["a", "ü", None], "n": [1, -2, 3], "x": [0.5, 1e30, 2.0], "b": [True, False, None],
  "m": [[{"content": "h", "role": "user"}], [], None], "s": [{"g": ["1", None]}, {"g": []}, None],
  "d": pa.array(["k", "k", "l"]).dictionary_encode(), "deep": [[["x", "y"], [], ["z"]], [], None]})
pq.write_table(t, sys.argv[1] + "/t.parquet")
pq.write_table(t, sys.argv[1] + "/t.2.parquet", data_page_version="2.0")
for name, new in ("file", ipc.new_file), ("stream", ipc.new_stream):
    for packed in None, "zstd", "lz4":
        with new(f"{sys.argv[1]}/{name}.{packed}", t.schema, options=ipc.IpcWriteOptions(compression=packed)) as w:
            w.write_table(t, max_chunksize=2)
`
	folder := t.TempDir()
	out, err := exec.Command(python, "-c", program, folder).CombinedOutput()
	require.NoError(t, err, "%s", out)
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, files, 8)
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(folder, f.Name()))
		require.NoError(t, err)
		require.True(t, foreign.Is(data), f.Name())
		table, err := foreign.Open(data, 1<<20)
		require.NoError(t, err, f.Name())
		require.Equal(t, []string{"q", "n", "x", "b", "m", "s", "d", "deep"}, table.Columns())
		var got [][]string
		require.NoError(t, table.Rows(table.Columns(), func(values []any) error {
			var texts []string
			for _, v := range values {
				texts = append(texts, strings.ReplaceAll(fmt.Sprintf("%s", v), " ", ""))
			}
			got = append(got, texts)
			return nil
		}), f.Name())
		const null = "%!s(<nil>)"
		require.Equal(t, [][]string{
			{"a", "1", "0.5", "true", `[{"content":"h","role":"user"}]`, `{"g":["1",null]}`, "k",
				`[["x","y"],[],["z"]]`},
			{"ü", "-2", "1000000000000000000000000000000", "false", "[]", `{"g":[]}`, "k", "[]"},
			{null, "3", "2", null, null, null, "l", null}}, got, f.Name())
		if strings.HasPrefix(f.Name(), "t.") {
			continue
		}
		err = rescue.Do(func() error {
			small, err := foreign.Open(data, 40)
			if err != nil {
				return err
			}
			return small.Rows(table.Columns(), func([]any) error { return nil })
		})
		require.ErrorIs(t, err, foreign.ErrTooLarge, f.Name())
		require.Error(t, rescue.Do(func() error {
			_, err := foreign.Open(data[:len(data)/3], 1<<20)
			return err
		}), f.Name())
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
