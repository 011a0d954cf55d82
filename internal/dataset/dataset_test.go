package dataset

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/refusal"
)

var questions = Format{Required: []string{"question", "answer"}, Optional: []string{"id", "level"}, ID: "id",
	Key: []string{"question"}}

func answer(r Row) (string, error) { return r.Values["answer"], nil }

// usual are the default settings of a training file.
func usual(train string) Fields {
	return Fields{Train: train, Duplicates: "refuse", MaxMB: 1, MaxRowKB: 1}
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func load(f Fields) (Tasks[string], error) {
	return Load(context.Background(), f, questions, nil, answer)
}

// rows writes n questions.
func rows(from, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"id": "r%d", "question": "what is %d?", "answer": %d}`+"\n", from+i, from+i, from+i)
	}
	return b.String()
}

func packed(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

// Every fault names the file and the row, and is final.
func TestFaults(t *testing.T) {
	const good = `{"question": "a", "answer": "1", "id": "x"}` + "\n"
	for name, c := range map[string]struct {
		text string
		row  int
		want string
	}{
		"no gold":    {good + `{"question": "b"}`, 2, "answer is missing or blank"},
		"null gold":  {good + "\n" + `{"question": "b", "answer": null}`, 3, "answer is missing or blank"},
		"blank gold": {`{"question": "b", "answer": " \n"}`, 1, "answer is missing or blank"},
		"list": {`{"question": "b", "answer": ["1"]}`, 1,
			`answer must be text or a number, got ["1"]`},
		"truth": {`{"question": "b", "answer": true}`, 1,
			"answer must be text or a number, got true"},
		"exponent": {`{"question": "b", "answer": 1e4000}`, 1,
			"answer holds 1e4000, whose exponent is beyond ±400"},
		"no object in a list": {"[" + good + ", 7]", 2, "is not a JSON object: it begins with \"7\""},
		"list without an end": {"[" + good, 2, "the list is not JSON: EOF"},
		"list with a hole":    {"[" + good + ",,]", 2, "the list is not JSON: invalid character ','"},
		"no object":           {good + "[1]", 2, "is not a JSON object: it begins with \"[\""},
		"cut off":             {good + `{"question": "b", "ans`, 2, "is not a JSON object: unexpected end"},
		"bytes":               {good + "{\"question\": \"b\xff\", \"answer\": 1}", 2, "byte 15 is not UTF-8"},
		"half a pair": {`{"question": "\ud800", "answer": 1}`, 1,
			"question holds an escape that is half a character"},
		"same question": {good + `{"question": "a", "answer": "2", "id": "y"}`, 2,
			"the same task is in FILE:1"},
		"same id": {good + "\n" + `{"question": "b", "answer": "2", "id": "x"}`, 3,
			`id "x" is that of another task in FILE:1`},
		"long": {good + `{"question": "` + strings.Repeat("a", 1<<10) + `", "answer": 1}`, 2,
			"the row has more than 1 KiB; a recipe that accepts longer rows says so by max_row_kb"},
		"large": {strings.Repeat("\n", 1<<20+1), 0,
			"holds more than 1 MiB; a recipe that accepts more says so by max_mb"},
		"nothing":     {"\n \n", 0, "holds no rows"},
		"no bytes":    {"", 0, "holds no rows"},
		"zstd":        {"\x28\xb5\x2f\xfdabcd", 0, "is compressed with zstd; unpack it first (unzstd)"},
		"cut gzip":    {packed(t, good)[:20], 1, "the packed file is not whole"},
		"a gzip bomb": {packed(t, strings.Repeat("\n", 2<<20)), 0, "holds more than 1 MiB"},
		"no Parquet":  {"PAR1 and no more", 0, "after row 0: read the file's footer"},
		"not of a level": {`{"question": "b", "answer": 1, "level": {}}`, 1,
			"level must be text or a number, got {}"},
	} {
		file := write(t, filepath.Join(t.TempDir(), "f.jsonl"), c.text)
		_, err := load(usual(file))
		var fault *Fault
		require.ErrorAs(t, err, &fault, name)
		require.Equal(t, []any{c.row, file}, []any{fault.Row, fault.File}, name)
		require.ErrorContains(t, err, "train: "+file, name)
		require.ErrorContains(t, err, strings.ReplaceAll(c.want, "FILE", file), name)
		var refused *refusal.Error
		require.ErrorAs(t, err, &refused, name)
	}
}

// CSV holds the same rows as JSON Lines, in columns of any order. Texts may hold lines, commas and quotes.
func TestCSV(t *testing.T) {
	const text = "\ufefflevel,other,answer,question\r\n2,x,1,\"a, \"\"b\"\"\nc\"\r\n,,\"2\",d\n"
	plain, err := load(usual(write(t, filepath.Join(t.TempDir(), "q.csv"), text)))
	require.NoError(t, err)
	zipped, err := load(usual(write(t, filepath.Join(t.TempDir(), "q.csv.gz"), packed(t, text))))
	require.NoError(t, err)
	require.Equal(t, []string{"1", "2"}, plain.Train)
	require.Equal(t, plain.Train, zipped.Train)
	for name, c := range map[string]struct {
		text string
		row  int
		want string
	}{
		"no column":     {"question,gold\na,1\n", 0, "has no column answer for answer; it has question, gold"},
		"two columns":   {"question,answer,answer\na,1,2\n", 0, "names the column answer twice"},
		"blank":         {"question,answer\na,1\nb, \n", 2, "answer is missing or blank"},
		"fewer":         {"question,answer\na,1\nb\n", 2, "line 3 is not CSV: wrong number of fields"},
		"an open quote": {"question,answer\n\"a,1\nb,2\n", 1, "is not CSV: extraneous or missing"},
		"bytes":         {"question,answer\na\xff,1\n", 1, "question: byte 1 is not UTF-8"},
		"long":          {"question,answer\n" + strings.Repeat("a", 1<<10) + ",1\n", 1, "more than 1 KiB"},
		"no rows":       {"question,answer\n", 0, "holds no rows"},
		"nothing":       {"", 0, "holds no rows"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(usual(write(t, filepath.Join(t.TempDir(), "q.csv"), c.text)))
			var fault *Fault
			require.ErrorAs(t, err, &fault)
			require.Equal(t, c.row, fault.Row)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// A file beyond the limit is refused by its size: nothing of it is read.
func TestALargeFileIsNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large.jsonl")
	f, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(10<<30)) // a hole, which takes no room on the disk
	require.NoError(t, f.Close())
	_, err = load(usual(path))
	require.EqualError(t, err, "train: "+path+": holds more than 1 MiB; a recipe that accepts more says so by "+
		"max_mb, and its rows are held in memory")
	_, err = load(usual(filepath.Dir(path)))
	require.ErrorContains(t, err, path+": holds more than 1 MiB")
}

func TestAddresses(t *testing.T) {
	folder := t.TempDir()
	for address, want := range map[string]string{
		"f.jsonl": "train: must be an absolute path, because workers read it too, or an address that begins with " +
			"s3://, https:// or hf://datasets/, got f.jsonl",
		folder:              "train: " + folder + ": the folder holds no file *.jsonl, *.jsonl.gz, *.csv,",
		folder + "/f.jsonl": "train: stat " + folder + "/f.jsonl: no such file or directory",
		"/dev/null":         "train: /dev/null is neither a file nor a folder",
		"https://host/file": "train: a remote file wants its digest, so that every worker reads the same bytes: " +
			"set train_sha256",
		"s3://bucket/f.json": "train: a remote file wants its digest",
	} {
		_, err := load(usual(address))
		require.ErrorContains(t, err, want, address)
	}
	f := usual("https://host/file")
	f.TrainDigest = strings.Repeat("0", 64)
	_, err := load(f)
	require.ErrorContains(t, err, "https://host/file: this program opens no remote addresses")
	for want, f := range map[string]Fields{
		"train_sha256: there is no file":                                   {TrainDigest: "00"},
		`train_sha256: must be 64 hexadecimal digits in lower case, got "`: {Train: "/f", TrainDigest: "AB"},
		"held_out: there is no training file":                              {HeldOut: "/f"},
	} {
		require.ErrorContains(t, Pin(f, questions, answer, map[string]any{}), want)
	}
	require.NoError(t, Pin(Fields{}, questions, answer, nil), "a preset names no file")
}

// A pinned recipe names the bytes of its files; other bytes are refused.
func TestPin(t *testing.T) {
	folder := t.TempDir()
	train := write(t, filepath.Join(folder, "train.jsonl"), rows(0, 20))
	f := usual(train)
	f.HeldOut = write(t, filepath.Join(folder, "test.jsonl.gz"), packed(t, rows(100, 4)))
	settings := map[string]any{}
	require.NoError(t, Pin(f, questions, answer, settings))
	digest := sha256.Sum256([]byte(rows(0, 20)))
	require.Equal(t, hex.EncodeToString(digest[:]), settings["train_sha256"], "what sha256sum says")
	f.TrainDigest, f.HeldOutDigest = settings["train_sha256"].(string), settings["held_out_sha256"].(string)
	got, err := load(f)
	require.NoError(t, err)
	require.Len(t, got.Train, 20)
	require.Equal(t, []string{"100", "101", "102", "103"}, got.HeldOut)

	write(t, train, rows(0, 21))
	_, err = load(f)
	require.ErrorContains(t, err, "train: "+train+": has the digest ")
	require.ErrorContains(t, Pin(f, questions, answer, settings), ", and the recipe wants "+f.TrainDigest)

	whole := usual(folder) // a folder: all of its files, and a digest that does not depend on its path
	require.NoError(t, Pin(whole, questions, answer, settings))
	moved := t.TempDir()
	require.NoError(t, os.CopyFS(moved, os.DirFS(folder)))
	again := map[string]any{}
	require.NoError(t, Pin(usual(moved), questions, answer, again))
	require.Equal(t, settings["train_sha256"], again["train_sha256"])
	got, err = load(whole)
	require.NoError(t, err)
	require.Len(t, got.Train, 21, "the test set of a folder is no training file")
	whole.HeldOut = folder
	got, err = load(whole)
	require.NoError(t, err)
	require.Equal(t, []int{21, 4}, []int{len(got.Train), len(got.HeldOut)})
}

// A remote file is read once, by its digest, in bounded memory.
func TestRemoteFiles(t *testing.T) {
	text, closed := rows(0, 6), 0
	fetch := func(_ context.Context, address string) (io.ReadCloser, error) {
		if address != "s3://data/f.jsonl" {
			return nil, errors.New("no such key")
		}
		return closer{strings.NewReader(text), &closed}, nil
	}
	digest := sha256.Sum256([]byte(text))
	f := usual("s3://data/f.jsonl")
	f.TrainDigest = hex.EncodeToString(digest[:])
	require.NoError(t, Pin(f, questions, answer, map[string]any{}), "pinning reads no remote file")
	got, err := Load(t.Context(), f, questions, fetch, answer)
	require.NoError(t, err)
	require.Len(t, got.Train, 6)
	require.Equal(t, 1, closed)

	text = rows(1, 6)
	_, err = Load(t.Context(), f, questions, fetch, answer)
	require.ErrorContains(t, err, "train: s3://data/f.jsonl: has the digest ")
	text = strings.Repeat(rows(0, 1), 1) + strings.Repeat("\n", 2<<20)
	_, err = Load(t.Context(), f, questions, fetch, answer)
	require.ErrorContains(t, err, "s3://data/f.jsonl: holds more than 1 MiB")
	f.Train = "s3://data/g.jsonl"
	_, err = Load(t.Context(), f, questions, fetch, answer)
	require.EqualError(t, err, "train: open s3://data/g.jsonl: no such key")
	require.Equal(t, 3, closed)
}

// A recipe that names a remote folder by its digest reads it, also where answers are in files next to the questions.
func TestDigestOfARemoteFolder(t *testing.T) {
	files := map[string]string{"a.jsonl": `{"question": "a", "id": "1"}`, "b.jsonl": `{"question": "b", "id": "2"}`,
		"possible_answer/a.jsonl": `{"answer": "x", "id": "1"}`,
		"possible_answer/b.jsonl": `{"answer": "y", "id": "2"}`}
	fetch := func(_ context.Context, address string) (io.ReadCloser, error) {
		name := strings.TrimPrefix(address, "s3://data/f/")
		if name == "" {
			return io.NopCloser(strings.NewReader(strings.Join(slices.Collect(maps.Keys(files)), "\n"))), nil
		}
		return io.NopCloser(strings.NewReader(files[name])), nil
	}
	f := usual("s3://data/f/")
	var err error
	f.TrainDigest, err = Digest(t.Context(), f.Train, false, fetch)
	require.NoError(t, err)
	answered := questions
	answered.Answered = true
	got, err := Load(t.Context(), f, answered, fetch, answer)
	require.NoError(t, err)
	require.Equal(t, []string{"x", "y"}, got.Train)

	broken := func(context.Context, string) (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader("{"), iotest.ErrReader(errors.New("gone")))), nil
	}
	_, err = Digest(t.Context(), "s3://data/f", false, broken)
	require.EqualError(t, err, "read s3://data/f: gone")
}

type closer struct {
	io.Reader
	closed *int
}

func (c closer) Close() error { *c.closed++; return nil }

// The held-out share follows from the tasks and the split's seed alone.
func TestHeldOutShare(t *testing.T) {
	folder := t.TempDir()
	f := usual(write(t, filepath.Join(folder, "f.jsonl"), rows(0, 400)))
	f.Share = 0.25
	first, err := load(f)
	require.NoError(t, err)
	require.InDelta(t, 100, len(first.HeldOut), 30)
	require.Len(t, first.Train, 400-len(first.HeldOut))
	f.Train = write(t, filepath.Join(folder, "longer.jsonl"), rows(390, 10)+rows(0, 390))
	again, err := load(f)
	require.NoError(t, err)
	require.ElementsMatch(t, first.HeldOut, again.HeldOut, "other rows or another order move no task")
	f.SplitSeed = 1
	other, err := load(f)
	require.NoError(t, err)
	require.NotEqual(t, again.HeldOut, other.HeldOut)
}

// duplicates: first keeps one row of each task, and a task of both files is held out.
func TestDuplicatesAreDropped(t *testing.T) {
	folder := t.TempDir()
	f := usual(write(t, filepath.Join(folder, "f.jsonl"), rows(0, 4)+rows(2, 4)))
	f.HeldOut = write(t, filepath.Join(folder, "g.jsonl"), rows(3, 1)+rows(9, 1))
	_, err := load(f)
	require.ErrorContains(t, err, f.Train+":4: the same task is in "+f.HeldOut+":1; duplicates: first keeps")
	f.Duplicates = "first"
	got, err := load(f)
	require.NoError(t, err)
	require.Equal(t, Tasks[string]{Train: []string{"0", "1", "2", "4", "5"}, HeldOut: []string{"3", "9"}}, got)
	write(t, f.Train, rows(0, 2)+`{"id": "r1", "question": "other", "answer": 1}`)
	_, err = load(f)
	require.ErrorContains(t, err, f.Train+`:3: id "r1" is that of another task in `+f.Train+":2")
}

// A number is read without an exponent, since no answer is written with one.
func TestNumbers(t *testing.T) {
	folder := t.TempDir()
	got, err := load(usual(write(t, filepath.Join(folder, "f.jsonl"), `{"question": "a", "answer": 1.5e+06}
{"question": "b", "answer": 2.50}
`)))
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"1500000", "2.50"}, append(got.Train, got.HeldOut...))
}

// An epoch holds every task once, in an order of its own.
func TestOrder(t *testing.T) {
	o := NewOrder("test", 7)
	var all [][]int
	for epoch := range 3 {
		var one []int
		for i := range 7 {
			one = append(one, o.At(5, 7*epoch+i))
		}
		require.ElementsMatch(t, []int{0, 1, 2, 3, 4, 5, 6}, one)
		all = append(all, one)
	}
	require.NotEqual(t, all[0], all[1])
	require.Equal(t, all[0][3], NewOrder("test", 7).At(5, 3), "a place does not depend on those drawn before")
	require.Equal(t, all[0][3], o.At(5, 3))
	var other []int
	for i := range 7 {
		other = append(other, o.At(6, i))
	}
	require.NotEqual(t, all[0], other)
}

// A file of bad rows alone is not an empty file: each row is shown with its fault.
func TestLookAtBadRows(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bad.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(`{"problem": "a"}`+"\n"+`{"problem": "b"}`), 0o600))
	var faults []string
	_, err := Look(t.Context(), usual(file), file, questions, nil, answer, func(_ Row, _ string, fault error) {
		faults = append(faults, fault.Error())
	})
	require.NoError(t, err)
	require.Equal(t, []string{file + ":1: question is missing or blank; the row has problem",
		file + ":2: question is missing or blank; the row has problem"}, faults)
}
