package dataset

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// row decodes a row as a line of a file has it.
func row(t *testing.T, text string) cells {
	t.Helper()
	out, err := cellsOf(Row{}, []byte(text))
	require.NoError(t, err)
	return out
}

func TestColumns(t *testing.T) {
	from := row(t, `{"a": {"b": [{"c": 1.5e3}, "last"], "d.e": 2}, "a.x": "whole", "t": "{\"k\": [7]}", "n": null,
		"b": true,
		"m": [{"role": "user", "content": "u"}, {"role": "assistant", "content": "v \\boxed{\\frac{1}{2}} w"}],
		"l": ["x", " ", "y"], "level": "Level 5", "code": "def f(x):\n  def g(): pass\nclass H:\n  pass",
		"cases": [{"input": 1}], "odd": {"inputs": [1]}, "bad": "AAAA",
		"private": "eJxrYJlqxQABPWbR1UqZeQWlJUpWCkrGMXlKOgpK+aUlUAEzELcktbikpLIgFSRQXJKSmadUGztFDwBpVRN+"}`)
	for text, want := range map[string]string{
		"a.b.0.c": "1500", "a.b.-1": "last", "a.x": "whole", "t.k.0": "7", "a.b.7": "", "a.none.c": "", "n": "",
		"none": "", "t | tests": "", "t | entry": "__main__",
		"m | user": "u", "m.-1.content | boxed": `\frac{1}{2}`, "l | lines": "x\ny\n", "level | number": "5",
		"{none | lines}{code | lines}": "def f(x):\n  def g(): pass\nclass H:\n  pass\n", "none | boxed": "",
		"{a.x} and {l.0 }{none}!": "whole and x!", "m.0.role | boxed": "",
	} {
		c, err := parseColumn(text)
		require.NoError(t, err, text)
		v, err := c.value(from)
		require.NoError(t, err, text)
		got, err := textOf(v)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, want := range map[string]string{"l": `must be text or a number, got ["x"," ","y"]`,
		"{a.b.0}": `(a.b.0) must be text or a number, got {"c":1.5e3}`, "b": "must be text or a number, got true",
		"code | defined": `must be text or a number, got ["f","H"]`,
		"level | user":   "(user) must be a list of messages, got Level 5",
		"cases | tests":  "(tests) must be cases with input and output, got map[input:1]",
		"bad | entry":    "(entry) is no text that is packed as LiveCodeBench does it: zlib: invalid header",
		"odd | tests":    "(tests) must have as many inputs as outputs"} {
		c, err := parseColumn(text)
		require.NoError(t, err, text)
		v, err := c.value(from)
		if err == nil {
			_, err = textOf(v)
		}
		require.EqualError(t, err, want, text)
	}
	c, err := parseColumn("private | tests") // as Python's pickle and zlib write them
	require.NoError(t, err)
	v, err := c.value(from)
	require.NoError(t, err)
	require.Contains(t, v, `json.loads("[[\"3\\n\"],[\"6\"]]")`)
	for text, want := range map[string]string{"": "names no column", "{a": "has a { without its }",
		"a | upper": `unknown function "upper"; there are boxed, number,`, "{ | boxed}": "names no column"} {
		_, err := parseColumn(text)
		require.ErrorContains(t, err, want)
	}
}

func TestFilters(t *testing.T) {
	from := row(t, `{"level": "Level 4", "rate": "0.25", "n": 3, "split": {"name": "train"}, "ok": true, "none": null}`)
	for path, conditions := range map[string]map[string]bool{
		"level":      {"Level 4 | Level 5": true, "Level 5": false, "!= Level 4": false, "!= Level 1 | Level 2": true},
		"rate":       {"> 0.2 & < 0.9": true, ">= 0.25": true, "> 0.25": false, "0.250": true},
		"n":          {"3": true, "= 3.0": true, "<= 2": false},
		"split.name": {"train": true}, "ok": {"true": true, "false": false},
		"none": {"> 1": false, "!=": false, "!= x": true},
	} {
		for text, want := range conditions {
			c, err := parseCondition(path, text)
			require.NoError(t, err)
			got, err := c.holds(from)
			require.NoError(t, err)
			require.Equal(t, want, got, "%s %s", path, text)
		}
	}
	_, err := parseCondition("n", "> many")
	require.EqualError(t, err, `n: > wants a number, got "many"`)

	f := usual(write(t, filepath.Join(t.TempDir(), "f.jsonl"), rows(0, 9)))
	f.Filter = `{"answer": ">= 5"}`
	got, err := load(f)
	require.NoError(t, err)
	require.Equal(t, []string{"5", "6", "7", "8"}, got.Train)
	f.Filter = `{"answer": 100}`
	_, err = load(f)
	require.ErrorContains(t, err, "the filter drops all of its 9 rows")
	f.Filter = `{"answer": "> x"}`
	_, err = load(f)
	require.EqualError(t, err, `filter: answer: > wants a number, got "x"`)
	f.Filter, f.Train = `{"weight": 1}`, write(t, filepath.Join(t.TempDir(), "f.csv"), "question,answer\na,1\n")
	_, err = load(f)
	require.ErrorContains(t, err, "f.csv: has no column weight for the filter; it has question, answer")
}

// The files of a split are those that its words name, or all that no word gives to another split.
func TestSplitsOfFolders(t *testing.T) {
	for names, want := range map[string][2]string{
		"data/train-00000-of-00001.parquet data/test-00000-of-00001.parquet README.md": {
			"data/train-00000-of-00001.parquet", "data/test-00000-of-00001.parquet"},
		"train/data-00000-of-00001.arrow train/cache-1.arrow validation/data-00000-of-00001.arrow train/state.json": {
			"train/data-00000-of-00001.arrow", "validation/data-00000-of-00001.arrow"},
		"train.json test.json":                 {"train.json", "test.json"},
		"info.json data/a.csv":                 {"data/a.csv", "data/a.csv"},
		"b.csv a.jsonl .hidden.csv x/.y/c.csv": {"a.jsonl b.csv", "a.jsonl b.csv"},
		"trainer.csv test.csv":                 {"trainer.csv", "test.csv"},
		"x.test.csv":                           {"", "x.test.csv"},
	} {
		require.Equal(t, want, [2]string{strings.Join(choose(strings.Fields(names), train), " "),
			strings.Join(choose(strings.Fields(names), heldOut), " ")}, names)
	}
	folder := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(folder, "data"), 0o700))
	f := usual(folder)
	write(t, filepath.Join(folder, "data", "train-0.jsonl"), rows(0, 3))
	f.HeldOut = folder
	_, err := load(f)
	require.ErrorContains(t, err, "held_out: "+folder+": the folder holds no file *.jsonl")
	write(t, filepath.Join(folder, "data", "test-0.jsonl"), rows(5, 1))
	got, err := load(f)
	require.NoError(t, err)
	require.Equal(t, Tasks[string]{Train: []string{"0", "1", "2"}, HeldOut: []string{"5"}}, got)
}

// A set on a hub is known by its commit; the files of a split are read, and the hub's digests compared.
func TestHubSets(t *testing.T) {
	const commit = "0123456789012345678901234567890123456789"
	digest := strings.Repeat("0", 64)
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/datasets/o/n/revision/main", "/api/datasets/o/n/revision/" + commit:
			if err := json.NewEncoder(w).Encode(map[string]any{"sha": commit, "siblings": []any{
				map[string]any{"rfilename": "data/train-0.jsonl"}, map[string]any{"rfilename": "README.md"},
				map[string]any{"rfilename": "data/test-0.jsonl"}, map[string]any{"rfilename": "other.csv",
					"lfs": map[string]any{"sha256": digest}}}}); err != nil {
				t.Error(err)
			}
		case "/datasets/o/n/resolve/" + commit + "/data/train-0.jsonl":
			_, _ = w.Write([]byte(rows(0, 2)))
		case "/datasets/o/n/resolve/" + commit + "/data/test-0.jsonl":
			_, _ = w.Write([]byte(rows(7, 1)))
		case "/datasets/o/n/resolve/" + commit + "/other.csv":
			_, _ = w.Write([]byte("question,answer\nx,1\n"))
		default:
			http.NotFound(w, r)
		}
	}))
	defer hub.Close()
	t.Setenv("HF_ENDPOINT", hub.URL)
	f := usual("hf://datasets/o/n@main")
	f.HeldOut = "hf://datasets/o/n@main/data/test*"
	settings := map[string]any{}
	require.NoError(t, Pin(f, questions, answer, settings))
	require.Equal(t, map[string]any{"train": "hf://datasets/o/n@" + commit,
		"held_out": "hf://datasets/o/n@" + commit + "/data/test*"}, settings)
	f.Train, f.HeldOut = settings["train"].(string), settings["held_out"].(string)
	got, err := load(f)
	require.NoError(t, err)
	require.Equal(t, Tasks[string]{Train: []string{"0", "1"}, HeldOut: []string{"7"}}, got)
	_, err = load(usual("hf://datasets/o/n/other.csv"))
	require.ErrorContains(t, err, "other.csv: has the digest ")
	require.ErrorContains(t, err, "and the hub says "+digest)
	_, err = load(usual("hf://datasets/o/n/none"))
	require.ErrorContains(t, err, "the folder holds no file")
	for _, address := range []string{"hf://datasets/o", "hf://datasets/o/n@", "hf://datasets/missing/n"} {
		require.ErrorContains(t, Pin(usual(address), questions, answer, settings), "train: ", address)
	}
}

// Several held-out files are evaluation sets by name, each with its digest.
func TestEvaluationSets(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(folder, "one"), 0o700))
	f := usual(write(t, filepath.Join(folder, "train.jsonl"), rows(0, 3)))
	first := write(t, filepath.Join(folder, "one", "test.jsonl"), rows(10, 2))
	second := write(t, filepath.Join(folder, "two.csv"), "problem,answer\nx,y\n")
	f.HeldOut = first + ", " + second
	withProblem := questions
	withProblem.Shapes = []Shape{{Name: "problems", Needs: []string{"problem"},
		Columns: map[string]string{"question": "problem"}}}
	named := func(r Row) (string, error) { return r.Set + ":" + r.Values["answer"], nil }
	settings := map[string]any{}
	require.NoError(t, Pin(f, withProblem, named, settings))
	require.Equal(t, first+","+second, settings["held_out"])
	require.Len(t, settings["held_out_sha256"], 64+1+64)
	f.HeldOutDigest = settings["held_out_sha256"].(string)
	got, err := Load(t.Context(), f, withProblem, nil, named)
	require.NoError(t, err)
	require.Equal(t, Tasks[string]{Train: []string{":0", ":1", ":2"}, HeldOut: []string{"one/test:10", "one/test:11",
		"two:y"}}, got)
	f.HeldOutDigest = f.HeldOutDigest[:64]
	_, err = Load(t.Context(), f, withProblem, nil, named)
	require.EqualError(t, err, "held_out_sha256: must have a digest for each of 2 files, got 1")
	require.Equal(t, "MATH-500", setName("hf://datasets/HuggingFaceH4/MATH-500@main"))
	require.Equal(t, "n/test*", setName("hf://datasets/o/n@main/test*.parquet"))
}
