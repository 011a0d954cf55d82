package remote

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
)

func TestForms(t *testing.T) {
	for _, c := range []struct{ form, action, want, refused string }{
		{`{"message": "{action}"}`, `say "hi"`, `{"message":"say \"hi\""}`, ""},
		{`{"text": "<{action}>", "n": 1.50}`, "x", `{"n":1.50,"text":"\u003cx\u003e"}`, ""},
		{`{"move": "{index}"}`, "right", `{"move":1}`, ""},
		{`{"a": [{"b": "{number}"}]}`, " 1e2 ", `{"a":[{"b":1e2}]}`, ""},
		{`{"a": "{number}"}`, "one", "", "The action is not a number."},
		{`{"a": "{number}"}`, `"1"`, "", "The action is not a number."},
		{`{"a": "{number}"}`, "NaN", "", "The action is not a number."},
		{"{json}", `{"a": 1}`, `{"a":1}`, ""},
		{"{json}", `[1]`, "", "The action is not a JSON object."},
		{"{json}", `{"a": 1}{`, "", "The action is not a JSON object."},
	} {
		f, err := newForm(c.form, []string{"left", "right"})
		require.NoError(t, err)
		value, refused := f.fill(c.action)
		require.Equal(t, c.refused, refused)
		if refused == "" {
			text, err := json.Marshal(value)
			require.NoError(t, err)
			require.Equal(t, c.want, string(text))
		}
	}
}

func TestTextsOfObservations(t *testing.T) {
	for value, want := range map[string]string{
		`"a text"`: "a text", `[[1, 2], [3, 4]]`: "1 2\n3 4", `[["#", "."], []]`: "# .\n",
		`[[1, null]]`: "[[1,null]]", `[]`: "[]", `{"b": "<x>", "a": 1.0}`: `{"a":1.0,"b":"<x>"}`, `null`: "null",
	} {
		v, err := readJSON([]byte(value))
		require.NoError(t, err)
		text, err := textOf(v)
		require.NoError(t, err)
		require.Equal(t, want, text)
	}
}

func TestOpenEnvSettingsThatAreRefused(t *testing.T) {
	for want, s := range map[string]env.Settings{
		"url: the server has either":       {"url": "http://a", "command": `["x", "{port}"]`},
		"url: must be an address":          {"url": "ftp://a"},
		"url: a reference to a secret":     {"url": "http://${vault:a}"},
		"command: must be a JSON list":     {"command": "python server.py"},
		"one of which holds {port}":        {"command": `["python", "server.py"]`},
		"headers: must list NAME=TEXT":     {"url": "http://a", "headers": `["a"]`},
		"action: must be a JSON object or": {"action": "message"},
		"action: holds neither":            {"action": `{"message": "same"}`},
		"action: {index} wants names":      {"action": `{"move": "{index}"}`},
		"reset: must be a JSON object":     {"action": `{"a": "{action}"}`, "reset": "[]"},
		"reset: seed is the task's":        {"action": `{"a": "{action}"}`, "reset": `{"seed": 1}`},
		"actions: name 2 is empty":         {"actions": "a,"},
		`unknown field "no_such_field"`:    {"no_such_field": 1},
	} {
		_, err := openOpenEnv(env.Options{Settings: s})
		require.ErrorContains(t, err, want)
	}
}
