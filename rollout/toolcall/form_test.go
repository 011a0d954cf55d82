package toolcall_test

import (
	"bufio"
	"encoding/json"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/rollout/toolcall"
)

// formCase is a response and what is read from it.
type formCase struct {
	Form     string            `json:"form"`
	Text     string            `json:"text"`
	Tools    []json.RawMessage `json:"tools"`
	Expected struct {
		Calls []struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"calls"`
		Content   *string `json:"content"`
		Reasoning *string `json:"reasoning"`
		Refusal   any     `json:"refusal"`
	} `json:"expected"`
}

// cases reads a file of cases, one in each line.
func cases(t *testing.T, file string) (out []formCase) {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		if len(strings.TrimSpace(lines.Text())) == 0 {
			continue
		}
		var c formCase
		require.NoError(t, json.Unmarshal(lines.Bytes(), &c), "%s: %s", file, lines.Text())
		out = append(out, c)
	}
	require.NoError(t, lines.Err())
	require.NotEmpty(t, out, file)
	return out
}

// toolsOf reads tools as an API or a tool itself writes them.
func toolsOf(t *testing.T, list []json.RawMessage) (out []toolcall.Tool) {
	t.Helper()
	for _, raw := range list {
		var one struct {
			Function json.RawMessage
		}
		require.NoError(t, json.Unmarshal(raw, &one))
		if one.Function != nil {
			raw = one.Function
		}
		var tool toolcall.Tool
		require.NoError(t, json.Unmarshal(raw, &tool))
		out = append(out, tool)
	}
	return out
}

// TestForms reads the cases of testdata, and those of the file that ROPEWALK_CALLS names.
func TestForms(t *testing.T) {
	files := []string{"testdata/cases.jsonl"}
	if more := os.Getenv("ROPEWALK_CALLS"); more != "" {
		files = append(files, more)
	}
	seen := map[string]bool{}
	for _, file := range files {
		for _, c := range cases(t, file) {
			form, err := toolcall.Named(c.Form)
			if !assertNoError(t, err, "%s: %s", file, c.Text) {
				continue
			}
			seen[form.Name] = true
			check(t, form, c)
		}
	}
	for _, form := range toolcall.All {
		require.True(t, seen[form.Name], "no case of %s", form.Name)
	}
}

func assertNoError(t *testing.T, err error, format string, args ...any) bool {
	t.Helper()
	if err != nil {
		t.Errorf(format+": %v", append(args, err)...)
	}
	return err == nil
}

func check(t *testing.T, form *toolcall.Form, c formCase) {
	t.Helper()
	tools := toolsOf(t, c.Tools)
	got := form.Read(withoutEnd(form, c.Text), tools, false, true)
	refused := got.Open
	var calls []toolcall.Call
	for _, one := range got.Calls {
		known := len(tools) == 0 || slices.ContainsFunc(tools, func(t toolcall.Tool) bool { return t.Name == one.Name })
		if one.Fault != "" || !known {
			refused = true
			continue
		}
		calls = append(calls, one)
	}
	if len(calls) != len(c.Expected.Calls) {
		t.Errorf("%s: %q has the calls %+v, want %d", c.Form, c.Text, got.Calls, len(c.Expected.Calls))
		return
	}
	for i, want := range c.Expected.Calls {
		arguments := string(want.Arguments)
		var inside string
		if json.Unmarshal(want.Arguments, &inside) == nil {
			arguments = inside
		}
		if calls[i].Name != want.Name || !equal(t, calls[i].Arguments, arguments) {
			t.Errorf("%s: %q has the call %+v, want %s of %s", c.Form, c.Text, calls[i], arguments, want.Name)
		}
	}
	for _, part := range []struct {
		name, got string
		want      *string
	}{{"content", got.Content, c.Expected.Content}, {"reasoning", got.Reasoning, c.Expected.Reasoning}} {
		if part.want != nil && strings.TrimSpace(part.got) != strings.TrimSpace(*part.want) {
			t.Errorf("%s: %q has the %s %q, want %q", c.Form, c.Text, part.name, part.got, *part.want)
		}
	}
	if wants := c.Expected.Refusal != nil && c.Expected.Refusal != false && c.Expected.Refusal != ""; wants != refused {
		t.Errorf("%s: %q: refused is %v: %+v", c.Form, c.Text, refused, got)
	}
}

// withoutEnd removes the tokens that end a response.
func withoutEnd(form *toolcall.Form, text string) string {
	for _, end := range append(slices.Clone(form.Stops), "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|eot|>", "</s>",
		"<｜end▁of▁sentence｜>", "[e~[", "<turn|>", "<|END_OF_TURN_TOKEN|>", "<|end_of_text|>", "<|end|>", "<seed:eos>",
		"<|assistant_end|>") {
		text = strings.TrimSuffix(strings.TrimRight(text, "\n"), end)
	}
	return text
}

// equal compares two JSON texts. Numbers are equal by value, however large they are.
func equal(t *testing.T, a, b string) bool {
	t.Helper()
	decode := func(text string) any {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		var v any
		require.NoError(t, d.Decode(&v), text)
		return v
	}
	return same(decode(a), decode(b))
}

func same(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		n, ok := b.(json.Number)
		x, good := new(big.Rat).SetString(a.String())
		y, also := new(big.Rat).SetString(n.String())
		return ok && good && also && x.Cmp(y) == 0
	case []any:
		list, ok := b.([]any)
		return ok && slices.EqualFunc(a, list, same)
	case map[string]any:
		fields, ok := b.(map[string]any)
		if !ok || len(a) != len(fields) {
			return false
		}
		for k, v := range a {
			if other, there := fields[k]; !there || !same(v, other) {
				return false
			}
		}
		return true
	}
	return a == b
}

// odd are arguments that are hard to write, with their types.
const odd = `{"text": "say \"hi\" and 'ho'\n\tC:\\new <b>&amp;</b> 漢字👍 \\n {{ x }}", "empty": "", "line": "\nx\n",
	"digits": "007", "round": "a b", "any": "c d", "word": "true", "nothing": "null", "list": "[1, 2]", "n": 123456789012345678901234567890, "f": -1.5e-7,
	"yes": true, "no": false, "none": null, "nested": {"a": [1, {"b": "c </x> \" ' d"}, [], {}, null, true], "é": "ß"},
	"many": ["a", "b, c", "d]e"], "closing": "a </parameter> b </tool_call> c </arg_value> d [/INST] e"}`

const oddSchema = `{"type": "object", "properties": {"text": {"type": "string"}, "empty": {"type": "string"},
	"line": {"type": "string"}, "digits": {"type": "string"}, "word": {"type": "string"}, "nothing": {"type": "string"},
	"list": {"$ref": "#/$defs/text"}, "n": {"type": "integer"}, "f": {"type": ["number", "null"]}, "yes": {"type": "boolean"},
	"no": {"anyOf": [{"type": "boolean"}, {"type": "null"}]}, "none": {"type": ["string", "null"]},
	"round": {"$ref": "#/$defs/loop"}, "any": {}, "nested": {"type": "object"}, "many": {"type": "array"}, "closing": {"type": "string"}},
	"$defs": {"text": {"type": "string"}, "loop": {"$ref": "#/$defs/loop"}}}`

// What a form writes it reads, whatever the arguments hold, alone and behind text and reasoning.
func TestFormsReadWhatTheyWrite(t *testing.T) {
	tools := []toolcall.Tool{{Name: "odd_one", Parameters: json.RawMessage(oddSchema)}, {Name: "now"}}
	for _, f := range toolcall.All {
		for name, arguments := range map[string]string{"odd_one": odd, "now": "{}"} {
			text := f.Write(name, arguments)
			got := f.Read(text, tools, false, true)
			require.Len(t, got.Calls, 1, "%s: %q %+v", f.Name, text, got)
			require.False(t, got.Open, f.Name)
			require.Empty(t, got.Calls[0].Fault, f.Name)
			require.Equal(t, name, got.Calls[0].Name, f.Name)
			require.True(t, equal(t, got.Calls[0].Arguments, arguments), "%s: %s", f.Name, got.Calls[0].Arguments)
			require.Empty(t, strings.TrimSpace(got.Content), f.Name)
			if f.Bare != "" || f.Whole() {
				continue // nothing is before such calls
			}
			open, end := f.ThinkTags()
			got = f.Read(open+"I draft "+text+end+"I look.\n"+text, tools, false, true)
			require.Len(t, got.Calls, 1, f.Name)
			require.Equal(t, "I look.", got.Content, f.Name)
			require.Equal(t, "I draft "+text, got.Reasoning, f.Name)
			got = f.Read("I draft "+text+end+"It is 4.", tools, true, true)
			require.Empty(t, got.Calls, f.Name)
			require.Equal(t, "It is 4.", got.Content, f.Name)
			require.False(t, got.Open || got.Thinking, f.Name)
			got = f.Read(open+text, tools, false, true)
			require.True(t, got.Thinking, f.Name)
			require.Empty(t, got.Calls, f.Name)
		}
	}
}

// A call that the limit of tokens cuts is open: it is not run, and not the answer. What is certain of it grows.
func TestCutCallsAreOpen(t *testing.T) {
	tools := []toolcall.Tool{{Name: "odd_one", Parameters: json.RawMessage(oddSchema)}}
	for _, f := range toolcall.All {
		text := f.Write("odd_one", `{"text": "a \"b\" c", "n": 12, "many": ["x", "y"]}`)
		begun := ""
		for i := range text {
			least := strings.Index(text, f.Marks[0]) + len(f.Marks[0])
			if i < least && f.Bare == "" || i == 0 || f.Name == "openai" && i < 40 {
				continue // not even the mark is whole
			}
			got := f.Read(text[:i], tools, false, false)
			if len(got.Calls) == 1 && !got.Open {
				require.True(t, equal(t, got.Calls[0].Arguments, `{"text": "a \"b\" c", "n": 12, "many": ["x", "y"]}`),
					"%s: %q", f.Name, text[:i])
				continue // only the end of what is around the calls is missing
			}
			require.True(t, got.Open, "%s: %q %+v", f.Name, text[:i], got)
			require.Empty(t, got.Calls, "%s: %q", f.Name, text[:i])
			require.Empty(t, got.Content, "%s: %q", f.Name, text[:i])
			if got.Begun != nil {
				require.Equal(t, "odd_one", got.Begun.Name, "%s: %q", f.Name, text[:i])
				require.True(t, strings.HasPrefix(got.Begun.Arguments, begun), "%s: %q: %q then %q", f.Name, text[:i],
					begun, got.Begun.Arguments)
				begun = got.Begun.Arguments
			}
		}
	}
}

// Long responses that are full of marks are read in time.
func TestLongResponses(t *testing.T) {
	for _, f := range toolcall.All {
		for _, part := range []string{"<think>", "</think>", "x </think>", f.Marks[0], f.Marks[0] + "{",
			f.Marks[0] + "f\n", f.Marks[0] + "</think>", f.Write("f", `{"k": "v"}`)} {
			f.Read(strings.Repeat(part, 1<<13), nil, false, true)
		}
	}
}

// Every form reads its own example.
func TestExamplesOfForms(t *testing.T) {
	names := map[string]bool{}
	for _, f := range toolcall.All {
		got := f.Read(f.Write("f", `{"k": "v"}`), []toolcall.Tool{{Name: "f"}}, false, true)
		require.Len(t, got.Calls, 1, "%s: %+v", f.Name, got)
		require.Equal(t, "f", got.Calls[0].Name, f.Name)
		require.True(t, equal(t, got.Calls[0].Arguments, `{"k": "v"}`), f.Name)
		for _, name := range append([]string{f.Name}, f.Also...) {
			require.False(t, names[name], name)
			names[name] = true
		}
	}
	_, err := toolcall.Named("nosuch")
	require.ErrorContains(t, err, `no form of calls "nosuch"; there are hermes, seed_oss`)
}
