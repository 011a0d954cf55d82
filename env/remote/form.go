package remote

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// form makes a server's action from what a policy wrote.
type form struct {
	object  map[string]any // texts in it may hold marks; nil if the policy writes the object
	actions []string
}

// The marks of a form.
const (
	actionMark = "{action}" // the text; a part of a text or all of it
	indexMark  = "{index}"  // the number of a named action
	numberMark = "{number}" // a number that the policy writes
	jsonMark   = "{json}"   // the whole object
)

// newForm reads a form.
func newForm(text string, actions []string) (form, error) {
	if strings.TrimSpace(text) == jsonMark {
		return form{actions: actions}, nil
	}
	f := form{actions: actions}
	value, err := readJSON([]byte(text))
	object, ok := value.(map[string]any)
	if err != nil || !ok {
		return f, fmt.Errorf("action: must be a JSON object or %s, got %s", jsonMark, text)
	}
	f.object = object
	switch {
	case strings.Contains(text, indexMark) && actions == nil:
		return f, fmt.Errorf("action: %s wants names in actions", indexMark)
	case !strings.Contains(text, actionMark) && !strings.Contains(text, indexMark) &&
		!strings.Contains(text, numberMark):
		return f, fmt.Errorf("action: holds neither %s nor %s nor %s, so all actions would be the same", actionMark,
			indexMark, numberMark)
	}
	return f, nil
}

// fill returns the action. refused says why the policy's text cannot become one; "" if it can.
func (f form) fill(action string) (value any, refused string) {
	if f.object == nil {
		value, err := readJSON([]byte(action))
		if _, ok := value.(map[string]any); err != nil || !ok {
			return nil, "The action is not a JSON object."
		}
		return value, ""
	}
	return f.put(f.object, action)
}

// put fills the marks of a value.
func (f form) put(value any, action string) (any, string) {
	switch v := value.(type) {
	case string:
		switch v {
		case indexMark:
			return slices.Index(f.actions, action), ""
		case numberMark:
			n, err := readJSON([]byte(strings.TrimSpace(action)))
			if number, ok := n.(json.Number); err == nil && ok {
				return number, ""
			}
			return nil, "The action is not a number."
		}
		return strings.ReplaceAll(v, actionMark, action), ""
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, x := range v {
			filled, refused := f.put(x, action)
			if refused != "" {
				return nil, refused
			}
			out[name] = filled
		}
		return out, ""
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			filled, refused := f.put(x, action)
			if refused != "" {
				return nil, refused
			}
			out[i] = filled
		}
		return out, ""
	}
	return value, ""
}

// fits compares the form with the JSON schema of the server's actions, which is nil if the server describes none. A
// call of an MCP tool is an action of servers whose schema does not mention it.
func (f form) fits(schema *actionSchema) error {
	if f.object == nil || schema == nil || schema.Properties == nil || f.object["type"] == "call_tool" {
		return nil
	}
	has := strings.Join(slices.Sorted(maps.Keys(schema.Properties)), ", ")
	for name := range f.object {
		if _, ok := schema.Properties[name]; !ok && string(schema.Additional) == "false" {
			return fmt.Errorf("action: the server's actions have no field %q; they have %s", name, has)
		}
	}
	for _, name := range schema.Required {
		if _, ok := f.object[name]; !ok {
			return fmt.Errorf("action: lacks the field %q, which the server requires; its actions have %s", name, has)
		}
	}
	return nil
}

// actionSchema is what a form is compared with.
type actionSchema struct {
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
	Additional json.RawMessage            `json:"additionalProperties"`
}

// readJSON reads one JSON value and keeps its numbers as they are written.
func readJSON(text []byte) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("more follows the value")
	}
	return value, nil
}
