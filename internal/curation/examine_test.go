package curation

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env/math"
	"github.com/ropewalk/ropewalk/internal/dataset"
	"github.com/ropewalk/ropewalk/internal/testing/realdata"
)

// A check counts what a run would read and what it would refuse.
func TestExamine(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	set := write("set.jsonl", `{"question": "one two three four five six seven eight nine", "answer": "1"}`)
	file := write("f.jsonl", `{"question": "say one two three four five six seven eight", "answer": "so\n#### 7", "n": 1}
{"question": "short", "answer": "(1, 2)", "n": [1]}
{"question": "short", "answer": "x^2 + 1", "n": null}
{"question": "no answer"}
{"question": "b", "answer": {"a": 1}}
`)
	x := Examiner{Declaration: math.Plain, Settings: dataset.Lenient(), Against: []string{set}, Shown: 2}
	got, err := x.Examine(t.Context(), file)
	require.NoError(t, err)
	require.Len(t, got.SHA256, 64)
	got.SHA256 = ""
	require.Equal(t, Examination{File: file, Shape: "GSM8K", Rows: 5, Bad: 2, Duplicates: 1,
		Columns: map[string]map[string]int{"question": {"text": 5}, "answer": {"text": 3, "mapping": 1},
			"n": {"number": 1, "list": 1}},
		Faults: []string{file + ":4: answer is missing or blank; the row has question",
			file + `:5: answer must be text or a number, got {"a":1}`},
		Golds: map[string]int{"number": 1, "list": 1, "text": 1}, Unit: "characters", Median: 5, P95: 43, Longest: 43,
		Overlaps: []Overlap{{Set: set, Rows: 1, Shared: "one two three four five six seven eight"}},
		Examples: []Example{{1, "say one two three four five six seven eight", "7"}, {2, "short", "(1, 2)"}}}, got)
	var b strings.Builder
	require.NoError(t, got.Write(&b))
	require.Contains(t, b.String(), "golds, by how answers are compared: list 1, number 1, text 1\n")
	require.Contains(t, b.String(), "share 8 words in a row with "+set+": 1 rows, such as \"one two")

	x.Against = []string{filepath.Join(folder, "none")}
	_, err = x.Examine(t.Context(), file)
	require.ErrorContains(t, err, "--against: stat ")
}

// Files at addresses are examined without a digest.
func TestExamineAddresses(t *testing.T) {
	x := Examiner{Declaration: math.Plain, Settings: dataset.Lenient(), Against: []string{"https://h/set.jsonl"},
		Fetch: func(_ context.Context, address string) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(`[{"question": "` + address + `", "answer": "1"}]`)), nil
		}}
	got, err := x.Examine(t.Context(), "s3://bucket/file.json")
	require.NoError(t, err)
	require.Equal(t, 1, got.Rows)
	require.Equal(t, len("s3://bucket/file.json"), got.Longest)
	require.Zero(t, got.Overlaps[0].Rows)
}

// The training questions of GSM8K share eight words in a row with few of its test questions.
func TestExamineGSM8K(t *testing.T) {
	path, err := filepath.Abs(realdata.Path(t, "gsm8k", "train.jsonl"))
	require.NoError(t, err)
	x := Examiner{Declaration: math.Plain, Settings: dataset.Lenient(),
		Against: []string{filepath.Join(filepath.Dir(path), "test.jsonl")}, Shown: 1}
	got, err := x.Examine(t.Context(), path)
	require.NoError(t, err)
	require.Equal(t, []int{7473, 0, 7473}, []int{got.Rows, got.Bad, got.Golds["number"]})
	require.Positive(t, got.Overlaps[0].Rows)
	require.Less(t, got.Overlaps[0].Rows, 2000)
}
