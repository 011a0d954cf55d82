package dataset

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/schema/foreign"
)

// column says where in a row the text of a field is. It is a path with functions after it (solution | boxed), or a text
// with such in braces ("{question} Begin with: {starter_code}"). A path names a column and leads into it by the names
// of fields and the numbers of items (reward_model.ground_truth, answers.0; -1 is the last item). It leads into a text
// that holds JSON, too.
type column struct {
	text   string
	pieces []piece
}

// piece is a literal text, or a path with functions.
type piece struct {
	literal string
	path    string
	calls   []Function
}

// cells are the values of a row by column, without nulls: string, json.Number, bool, a list, a map, or an error.
type cells map[string]any

// parseColumn reads a column of a mapping.
func parseColumn(text string) (column, error) {
	c := column{text: text}
	if !strings.Contains(text, "{") {
		p, err := parsePath(text)
		c.pieces = []piece{p}
		return c, err
	}
	rest := text
	for rest != "" {
		literal, inner, found := strings.Cut(rest, "{")
		c.pieces = append(c.pieces, piece{literal: literal})
		if !found {
			break
		}
		path, after, closed := strings.Cut(inner, "}")
		if !closed {
			return c, fmt.Errorf("%q has a { without its }", text)
		}
		p, err := parsePath(path)
		if err != nil {
			return c, err
		}
		c.pieces, rest = append(c.pieces, p), after
	}
	return c, nil
}

func parsePath(text string) (piece, error) {
	parts := strings.Split(text, "|")
	p := piece{path: strings.TrimSpace(parts[0])}
	if p.path == "" {
		return p, fmt.Errorf("%q names no column", text)
	}
	var names []string
	for _, f := range Functions {
		names = append(names, f.Name)
	}
	for _, part := range parts[1:] {
		name := strings.TrimSpace(part)
		i := slices.Index(names, name)
		if i < 0 {
			return p, fmt.Errorf("%q has an unknown function %q; there are %s", text, name, strings.Join(names, ", "))
		}
		p.calls = append(p.calls, Functions[i])
	}
	return p, nil
}

// root is the column of the file that the path a.b leads into: a, if the file has no column a.b.
func (p piece) root() string {
	root, _, _ := strings.Cut(p.path, ".")
	return root
}

// reads reports whether the column may read a column of the file.
func (c column) reads(name string) bool {
	return slices.ContainsFunc(c.pieces, func(p piece) bool { return p.path == name || p.root() == name })
}

// absent returns the first column that the column reads and the file does not have; "" if it has all.
func (c column) absent(columns []string) string {
	for _, p := range c.pieces {
		if p.path != "" && !slices.Contains(columns, p.path) && !slices.Contains(columns, p.root()) {
			return p.root()
		}
	}
	return ""
}

// value returns what the row has for the column; nil if it has nothing.
func (c column) value(row cells) (any, error) {
	if len(c.pieces) == 1 && c.pieces[0].path != "" {
		return c.pieces[0].value(row)
	}
	var b strings.Builder
	for _, p := range c.pieces {
		b.WriteString(p.literal)
		if p.path == "" {
			continue
		}
		v, err := p.value(row)
		if err != nil {
			return nil, err
		}
		text, err := textOf(v)
		if err != nil {
			return nil, fmt.Errorf("(%s) %w", p.path, err)
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

func (p piece) value(row cells) (v any, err error) {
	v, whole := row[p.path]
	if !whole {
		steps := strings.Split(p.path, ".")
		v = row[steps[0]]
		for _, step := range steps[1:] {
			v = into(v, step)
		}
	}
	if bad, is := v.(error); is {
		return nil, bad
	}
	for _, call := range p.calls {
		if v == nil {
			return nil, nil
		}
		if v, err = call.of(v); err != nil {
			return nil, fmt.Errorf("(%s) %w", call.Name, err)
		}
	}
	return v, nil
}

// into returns a part of a nested value; nil if it has none. A value that could not be read stays an error.
func into(v any, step string) any {
	if text, is := v.(string); is && json.Valid([]byte(text)) {
		v, _ = decoded(text)
	}
	switch v := v.(type) {
	case error:
		return v
	case map[string]any:
		return v[step]
	case []any:
		n, err := strconv.Atoi(step)
		if n < 0 {
			n += len(v)
		}
		if err == nil && n >= 0 && n < len(v) {
			return v[n]
		}
	}
	return nil
}

// decoded reads JSON. Numbers stay as they are written.
func decoded(text string) (out any, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&out); err != nil {
		return nil, fmt.Errorf("is not JSON: %w", err)
	}
	return out, nil
}

// textOf returns the text of a value: a string, or a number as it is written but without an exponent. It is "" for
// null.
func textOf(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case error:
		return "", v
	case json.Number:
		return foreign.Decimal(v.String())
	}
	out, _ := json.Marshal(v) // what was decoded from JSON can be written as such
	return "", fmt.Errorf("must be text or a number, got %.20s", out)
}

// textsOf returns the texts of a value that may be a list of them, without those that are blank.
func textsOf(v any) (texts []string, err error) {
	list, is := v.([]any)
	if !is {
		list = []any{v}
	}
	for _, item := range list {
		text, err := textOf(item)
		if err != nil {
			return nil, err
		}
		if text = strings.TrimSpace(text); text != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts, nil
}
