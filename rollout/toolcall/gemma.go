package toolcall

import (
	"encoding/json"
	"regexp"
	"strings"
)

// gemma is the form of Gemma 4: keys without quotes, and texts between marks. Results come back in the model's own
// turn.
var gemma = Form{
	Name: "gemma4", Families: "Gemma 4", Marks: []string{"<|tool_call>call:"}, Stops: []string{"<|tool_response>"},
	Think:   [2]string{"<|channel>thought\n", "<channel|>"},
	grammar: keyed{open: "<|tool_call>call:", close: "<tool_call|>", quote: `<|"|>`},
}

// functionGemma is the form of FunctionGemma: the same with other marks. Its templates write all values as texts.
var functionGemma = Form{
	Name: "functiongemma", Families: "FunctionGemma", Marks: []string{"<start_function_call>call:"},
	Stops: []string{"<start_function_response>"},
	grammar: keyed{open: "<start_function_call>call:", close: "<end_function_call>", quote: "<escape>",
		texts: true},
}

// keyed are forms that write arguments as a mapping whose keys are bare words.
type keyed struct {
	open, close, quote string
	texts              bool // values are written as texts, and the schema types them
}

var keyedName = regexp.MustCompile(`^\s*([\pL\pN_.:-]+)\s*`)

// read reads a call.
func (k keyed) read(text string, tools []Tool, ended bool) reading {
	body := text[len(k.open):]
	m := keyedName.FindStringSubmatch(body)
	if m == nil {
		return reading{open: unfinished(text) && strings.TrimSpace(body) == ""}
	}
	start := len(k.open) + len(m[0])
	l := &literals{text: text, at: start, quote: k.quote}
	if strings.HasPrefix(text[l.at:], "{") {
		if raw, ok := l.mapping(0); ok {
			c := k.typed(checked(Call{Name: m[1], Arguments: raw}), find(tools, m[1]))
			switch {
			case l.skip(k.close), ended && strings.TrimSpace(text[l.at:]) == "", strings.HasPrefix(text[l.at:], k.open):
				return reading{calls: []Call{c}, n: l.at}
			}
		}
	}
	if end := strings.Index(text, k.close); end >= 0 && ended {
		return reading{n: end + len(k.close), calls: []Call{{Name: m[1], Arguments: text[start:end],
			Fault: "the arguments cannot be read"}}}
	}
	if len(text) == start {
		return reading{open: true} // the name may go on
	}
	return reading{open: true, begun: &Call{Name: m[1]}}
}

// typed gives texts the types that the schema allows.
func (k keyed) typed(c Call, tool Tool) Call {
	if !k.texts || c.Fault != "" {
		return c
	}
	var a arguments
	for _, f := range fieldsOf(c.Arguments) {
		if text, is := unquoted(f.value); is && tool.kinds(f.name) != nil {
			f.value = typed(text, tool.kinds(f.name))
		}
		a.add(f.name, f.value)
	}
	return a.call(c.Name)
}

func (k keyed) write(name, arguments string) string {
	return k.open + name + k.text(arguments) + k.close
}

// text writes a JSON value.
func (k keyed) text(value string) string {
	if s, text := unquoted(value); text {
		return k.quote + s + k.quote
	}
	var parts []string
	switch value[0] {
	case '{':
		for _, f := range fieldsOf(value) {
			parts = append(parts, f.name+":"+k.text(f.value))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case '[':
		var list []json.RawMessage
		_ = json.Unmarshal([]byte(value), &list) // fieldsOf has read it
		for _, v := range list {
			parts = append(parts, k.text(string(v)))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	return value
}
