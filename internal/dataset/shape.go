package dataset

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Shape is the columns of a public set, or of sets alike.
type Shape struct {
	Name    string            // of the set, or of several
	Columns map[string]string // the column of each field; a field without one is the column of its own name
	Needs   []string          // columns for which the first row of a file of this shape has a value, or ""
	Note    string            // what a reader of the documents should know; "" = nothing
}

// textsByName reads the settings columns and filter.
func textsByName(setting, text string) (map[string]string, error) {
	if text == "" {
		return nil, nil
	}
	var values map[string]any
	if err := json.Unmarshal([]byte(text), &values); err != nil {
		return nil, fmt.Errorf("%s: must be a mapping of texts, got %.40q", setting, text)
	}
	out := map[string]string{}
	for name, value := range values {
		switch value.(type) {
		case string, float64, bool:
			out[name] = fmt.Sprint(value)
		default:
			return nil, fmt.Errorf("%s.%s: must be text, got %.40v", setting, name, value)
		}
	}
	return out, nil
}

// plan says how the rows of a file are read.
type plan struct {
	shape   string // name of the recognised shape; "" = the fields' own names
	needs   []column
	fields  []field
	filters []condition
}

type field struct {
	name     string
	column   column
	many     bool // a list of texts
	required bool // in each row
	wanted   bool // as a column of a file that has columns
}

// plans lists the ways in which rows may be read: the shapes, and last the fields' own names. The settings columns and
// filter apply to all of them.
func (f Format) plans(mapped, filter map[string]string) (out []plan, err error) {
	for name := range mapped {
		if !slices.Contains(f.names(), name) {
			return nil, fmt.Errorf("columns.%s: there is no such field; the fields are %s", name,
				strings.Join(f.names(), ", "))
		}
	}
	for _, shape := range append(slices.Clone(f.Shapes), Shape{}) {
		p := plan{shape: shape.Name}
		for _, name := range f.names() {
			text, isMapped := mapped[name]
			if !isMapped {
				text = cmp.Or(shape.Columns[name], name)
			}
			c, err := parseColumn(text)
			if err != nil {
				return nil, fmt.Errorf("columns.%s: %w", name, err)
			}
			required := slices.Contains(f.Required, name)
			p.fields = append(p.fields, field{name: name, column: c, many: slices.Contains(f.Many, name),
				required: required, wanted: isMapped || required && shape.Name == ""})
		}
		for _, text := range shape.Needs {
			c, err := parseColumn(text)
			if err != nil {
				return nil, err
			}
			p.needs = append(p.needs, c)
		}
		for _, path := range slices.Sorted(maps.Keys(filter)) {
			c, err := parseCondition(path, filter[path])
			if err != nil {
				return nil, fmt.Errorf("filter: %w", err)
			}
			p.filters = append(p.filters, c)
		}
		out = append(out, p)
	}
	return out, nil
}

// recognise chooses how a file is read by its first row. columns are the file's, nil if each row has its own.
func (s source) recognise(file string, columns []string, first cells) (*plan, error) {
	p := &s.plans[slices.IndexFunc(s.plans, func(p plan) bool { return first.have(p.needs) })] // the last needs nothing
	if columns == nil {
		return p, nil
	}
	return p, p.absent(file, columns)
}

// have reports whether a row has a value for each column.
func (from cells) have(needs []column) bool {
	return !slices.ContainsFunc(needs, func(c column) bool {
		v, err := c.value(from)
		return err != nil || v == nil
	})
}

// absent refuses a file that lacks a column that the mapping or the filter names or, if it has no known shape, that of
// a required field.
func (p *plan) absent(file string, columns []string) error {
	for _, f := range p.fields {
		if name := f.column.absent(columns); name != "" && f.wanted {
			return faultf(file, "has no column %s for %s; it has %s, and the setting columns says which is what", name,
				f.name, strings.Join(columns, ", "))
		}
	}
	for _, c := range p.filters {
		if name := c.column.absent(columns); name != "" {
			return faultf(file, "has no column %s for the filter; it has %s", name, strings.Join(columns, ", "))
		}
	}
	return nil
}

// reads reports whether the plan may read a column of the file.
func (p *plan) reads(name string) bool {
	return slices.ContainsFunc(p.fields, func(f field) bool { return f.column.reads(name) }) ||
		slices.ContainsFunc(p.filters, func(c condition) bool { return c.column.reads(name) })
}

// read fills a row. keep is false for one that the filter drops.
func (p *plan) read(row Row, from cells) (keep bool, err error) {
	for _, c := range p.filters {
		if keep, err = c.holds(from); err != nil {
			return false, row.Fault("%v", err)
		} else if !keep {
			return false, nil
		}
	}
	for _, f := range p.fields {
		v, err := f.column.value(from)
		if err == nil && f.many {
			row.Lists[f.name], err = textsOf(v)
			v = strings.Join(row.Lists[f.name], "\n")
		}
		var text string
		if err == nil {
			text, err = textOf(v)
		}
		if err != nil {
			return false, row.Fault("%s %v", f.named(), err)
		}
		if err := row.set(f.name, text); err != nil {
			return false, err
		}
		if _, there := row.Values[f.name]; there || !f.required {
			continue
		}
		names, more := slices.Sorted(maps.Keys(from)), ""
		if f.column.absent(names) != "" {
			more = "; the row has " + strings.Join(names, ", ")
		}
		return false, row.Fault("%s is missing or blank%s", f.named(), more)
	}
	return true, nil
}

// named is the field's name in messages, with its column where that has another.
func (f field) named() string {
	if f.column.text == f.name {
		return f.name
	}
	return f.name + " (" + f.column.text + ")"
}
