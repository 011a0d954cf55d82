package math

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
)

// write writes a file of one name below a new folder.
func write(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const asked1 = `"question": [[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Area?"}]]`

// BFCL's answers are in another file, and its types have other names than in JSON schemas.
func TestBFCL(t *testing.T) {
	folder := t.TempDir()
	path := write(t, folder, "BFCL_v4_simple.json", `{"id": "simple_1", `+asked1+`, "function": [{"name": "geo.area", `+
		`"description": "An area.", "parameters": {"type": "dict", "properties": {"base": {"type": "float"}, "type": `+
		`{"type": "tuple", "items": {"type": "any"}}}, "required": ["base"]}}]}`+"\n"+
		`{"id": "irrelevance_1", `+asked1+`, "function": [{"name": "f"}]}`)
	write(t, folder, "possible_answer/BFCL_v4_simple.json", `{"id": "simple_1", "ground_truth": [{"geo.area": `+
		`{"base": [10], "type": ["", [1]]}}]}`)
	for _, at := range []string{path, folder} {
		s := settings(at, "")
		s["held_out_share"] = 0.0
		e := openFile(t, Calls, s)
		require.Len(t, s["train_sha256"], 64)
		tasks, err := e.(env.Lister).Tasks(t.Context(), env.Train)
		require.NoError(t, err)
		require.Len(t, tasks, 2)
		require.Equal(t, "Be brief.\n\nArea?", tasks[0].Text)
		require.JSONEq(t, `[{"geo_area": {"base": [10], "type": ["", [1]]}}]`, tasks[0].Answer)
		require.Equal(t, "[]", tasks[1].Answer)
		functions, err := Calls.Functions(tasks[0])
		require.NoError(t, err)
		require.Equal(t, "geo_area", functions[0].Name)
		require.JSONEq(t, `{"type": "object", "properties": {"base": {"type": "number"}, "type": {"type": "array", `+
			`"items": {}}}, "required": ["base"]}`, string(functions[0].Parameters))
		state, _, err := e.Reset(t.Context(), tasks[0])
		require.NoError(t, err)
		_, last, err := e.Step(t.Context(), state, `[{"name": "geo_area", "arguments": {"base": 10}}]`)
		require.NoError(t, err)
		require.True(t, last.Success)
	}
	s := settings(path, "")
	require.NoError(t, Calls.Pin(s))
	before := s["train_sha256"]
	write(t, folder, "possible_answer/BFCL_v4_simple.json", `{"id": "simple_1", "ground_truth": `+
		`[{"geo.area": {"base": [1]}}]}`)
	s = settings(path, "")
	require.NoError(t, Calls.Pin(s))
	require.NotEqual(t, before, s["train_sha256"], "the answers are part of what is read")
}

func TestFaultsOfFunctions(t *testing.T) {
	row := func(functions, gold string) string {
		return `{"id": "a_1", ` + asked1 + `, "function": ` + functions + gold + `}`
	}
	const none = `, "ground_truth": []`
	const one = `[{"name": "f", "parameters": {"type": "dict", "properties": {"x": {"type": "integer"}}}}]`
	for text, want := range map[string]string{
		row(one, ""): "f.json:1: answer is missing: neither the row nor a file possible_answer/… has it",
		row(one, `, "ground_truth": [["f(x=1)"]], "initial_config": {}`): "is a task of several turns",
		row(one, `, "ground_truth": [{"g": {"x": [1]}}]`):                "answer: call 1: there is no function g",
		row(one, `, "ground_truth": [{"f": {"x": 1}}]`):                  "f: x must be a list of the values that are",
		row(one, `, "ground_truth": [{}]`):                               "call 1 must name one function, got 0",
		row(one, `, "ground_truth": ["f(x=1)"]`):                         "answer: must be a list of calls",
		row(strings.Replace(one, "integer", "HashMap", 1), none):         "the type HashMap is none of JSON's",
		row(`[{"name": "python"}]`, none):                                "may not be called python",
		row(`[{"name": "a.b"}, {"name": "a_b"}]`, none):                  "two functions are called a_b",
		row(`[{"name": "f", "parameters": [1]}]`, none):                  "f: parameters must be an object",
		row(`[{"name": "f", "parameters": null}]`, none):                 "f: parameters must be an object",
	} {
		require.ErrorContains(t, Calls.Pin(settings(write(t, t.TempDir(), "f.json", text), "")), want, text)
	}
	folder := t.TempDir()
	path := write(t, folder, "f.json", row(one, ""))
	write(t, folder, "possible_answer/f.json", `{"id": "a_1", "ground_truth": []}`+"\n"+`{"id": "a_1"}`)
	require.ErrorContains(t, Calls.Pin(settings(path, "")),
		"possible_answer/f.json:2: id must be a text that no other answer has")
}
