package toolcall

import (
	"encoding/json"
	"slices"
	"strings"
)

// miniMaxM3 is the form of MiniMax M3: each argument is in an element of its name, and what is nested in elements
// inside it, the items of a list in those named item. A token is before each tag.
var miniMaxM3 = Form{
	Name: "minimax_m3", Families: "MiniMax M3",
	Example: m3 + "<tool_call>\n" + m3 + `<invoke name="f">` + m3 + "<k>v" + m3 + "</k>" + m3 + "</invoke>\n" + m3 +
		"</tool_call>",
	Marks: []string{m3Open}, Think: [2]string{"<mm:think>", "</mm:think>"}, read: readM3,
	write: func(name, arguments string) string {
		return m3Open + "\n" + m3 + `<invoke name="` + name + `">` + m3Fields(arguments) + m3 + "</invoke>\n" + m3 +
			"</tool_call>"
	},
}

const (
	m3     = "]<]minimax[>["
	m3Open = m3 + "<tool_call>"
)

// readM3 reads a block.
func readM3(text string, tools []Tool, ended bool) reading {
	var out reading
	r := m3Reader{rest: strings.TrimPrefix(text, m3Open)}
	for r.skip(`<invoke name="`) {
		name, rest, found := strings.Cut(r.rest, `">`)
		if r.rest = rest; found && !nameText.MatchString(name) {
			return out
		}
		var a arguments
		for found && !r.skip("</invoke>") {
			var f field
			f, found = r.element(find(tools, name), 0)
			a.add(f.name, f.value)
		}
		if out.open = !found; out.open {
			return out
		}
		out.calls, out.n = append(out.calls, a.call(name)), len(text)-len(r.rest)
	}
	blank := strings.TrimSpace(r.rest) == ""
	switch {
	case out.n > 0 && r.skip("</tool_call>"):
		out.n = len(text) - len(r.rest)
	case out.n > 0 && blank && !ended: // the end of the calls is missing
		out.calls, out.open = out.calls[:len(out.calls)-1], true
	case out.n == 0 && strings.HasPrefix(m3+`<invoke name="`, strings.TrimSpace(r.rest)):
		out.open = true
	case out.n == 0:
		return objects{open: m3Open, close: m3 + "</tool_call>"}.mention(text, text[len(m3Open):], len(m3Open))
	}
	return out
}

// m3Reader reads elements. Its methods return false where the text ends first.
type m3Reader struct{ rest string }

// skip skips a tag, after white space.
func (r *m3Reader) skip(tag string) (found bool) {
	rest, found := strings.CutPrefix(strings.TrimLeft(r.rest, spaces), m3+tag)
	if found {
		r.rest = rest
	}
	return found
}

// element reads an element, whose type the schema says.
func (r *m3Reader) element(tool Tool, level int) (f field, ok bool) {
	if !r.skip("<") || level > mostLevels {
		return f, false
	}
	var inner []field
	f.name, r.rest, ok = strings.Cut(r.rest, ">")
	for ok && strings.HasPrefix(r.rest, m3+"<") && !strings.HasPrefix(r.rest, m3+"</") {
		var one field
		one, ok = r.element(tool.within(f.name), level+1)
		inner = append(inner, one)
	}
	if !ok {
		return f, false
	}
	text, rest, ok := strings.Cut(r.rest, m3+"</"+f.name+">")
	r.rest = rest
	kinds := tool.kinds(f.name)
	switch empty := text == "" && !slices.Contains(kinds, "string"); {
	case len(inner) > 0:
		f.value = m3Value(inner)
	case empty && slices.Contains(kinds, "array"):
		f.value = "[]"
	case empty && slices.Contains(kinds, "object"):
		f.value = "{}"
	case kinds == nil:
		f.value = untyped(text)
	default:
		f.value = typed(text, kinds)
	}
	return f, ok
}

// m3Value returns what is nested as JSON.
func m3Value(inner []field) string {
	var list []string
	object := arguments{}
	for _, f := range inner {
		if object.add(f.name, f.value); f.name == "item" {
			list = append(list, f.value)
		}
	}
	if len(list) == len(inner) {
		return "[" + strings.Join(list, ", ") + "]"
	}
	return object.call("").Arguments
}

// within returns the schema of an argument instead of its tool's. The items of a list are its argument item.
func (t Tool) within(argument string) Tool {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var list struct {
		Items json.RawMessage `json:"items"`
	}
	_ = json.Unmarshal(t.Parameters, &schema) // without a schema a text is what it writes
	part := schema.Properties[argument]
	if json.Unmarshal(part, &list) == nil && list.Items != nil {
		part = json.RawMessage(`{"properties": {"item": ` + string(list.Items) + `}}`)
	}
	return Tool{Name: t.Name, Parameters: part}
}

// m3Fields writes the fields of an object as elements.
func m3Fields(object string) string {
	var b strings.Builder
	for _, f := range fieldsOf(object) {
		b.WriteString(m3Element(f.name, f.value))
	}
	return b.String()
}

func m3Element(name, value string) string {
	inside, _ := unquoted(value)
	if fields := m3Fields(value); fields != "" {
		inside = fields
	} else if items := itemsOf(value); len(items) > 0 {
		inside = ""
		for _, item := range items {
			inside += m3Element("item", item)
		}
	}
	return m3 + "<" + name + ">" + inside + m3 + "</" + name + ">"
}
