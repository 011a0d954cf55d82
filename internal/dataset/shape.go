package dataset

import (
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
	Filter  map[string]string // the rows that are read, as the setting filter
	Note    string            // what a reader of the documents should know; "" = nothing
}

// mapping is how fields come from columns: the settings columns and filter, decoded.
type mapping struct {
	columns, filter map[string]string
}

// mapping reads the settings columns and filter.
func (f Fields) mapping() (m mapping, err error) {
	if m.columns, err = textsByName("columns", f.Columns); err == nil {
		m.filter, err = textsByName("filter", f.Filter)
	}
	return m, err
}

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
	shape    string // name of the recognised shape; "" = the fields' own names
	needs    []column
	fields   []field
	required []string
	filters  []condition
}

type field struct {
	name   string
	column column
	many   bool
}

// plans lists the ways in which rows may be read, the shapes first. A field of the mapping is read from its column in
// all of them.
func (f Format) plans(m mapping) (out []plan, err error) {
	for name := range m.columns {
		if !slices.Contains(f.names(), name) {
			return nil, fmt.Errorf("columns.%s: there is no such field; the fields are %s", name,
				strings.Join(f.names(), ", "))
		}
	}
	for _, shape := range append(slices.Clone(f.Shapes), Shape{}) {
		p := plan{shape: shape.Name, required: f.Required}
		for _, name := range f.names() {
			text := name
			if c, ok := shape.Columns[name]; ok {
				text = c
			}
			if c, ok := m.columns[name]; ok {
				text = c
			}
			c, err := parseColumn(text)
			if err != nil {
				return nil, fmt.Errorf("columns.%s: %w", name, err)
			}
			p.fields = append(p.fields, field{name, c, slices.Contains(f.Many, name)})
		}
		for _, text := range shape.Needs {
			c, err := parseColumn(text)
			if err != nil {
				return nil, err
			}
			p.needs = append(p.needs, c)
		}
		filters := maps.Clone(shape.Filter)
		if len(m.filter) > 0 {
			filters = m.filter
		}
		for _, path := range slices.Sorted(maps.Keys(filters)) {
			c, err := parseCondition(path, filters[path])
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
func (f Format) recognise(m mapping, file string, columns []string, first cells) (*plan, error) {
	plans, err := f.plans(m)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(plans, func(p plan) bool { return first.have(p.needs) })
	if i < 0 {
		i = len(plans) - 1
	}
	if columns == nil {
		return &plans[i], nil
	}
	return &plans[i], f.absent(m, file, columns, plans[i])
}

// have reports whether a row has a value for each column, of which there is one at least.
func (from cells) have(needs []column) bool {
	return len(needs) > 0 && !slices.ContainsFunc(needs, func(c column) bool {
		v, err := c.value(from)
		return err != nil || v == nil
	})
}

// absent refuses a file that lacks a column that the mapping or the filter names or, if it has no known shape, that of
// a required field.
func (f Format) absent(m mapping, file string, columns []string, p plan) error {
	for _, field := range p.fields {
		_, mapped := m.columns[field.name]
		wanted := mapped || p.shape == "" && slices.Contains(f.Required, field.name)
		if name := field.column.absent(columns); name != "" && wanted {
			return faultf(file, Missing, "has no column %s for %s; it has %s, and the setting columns says which is "+
				"what", name, field.name, strings.Join(columns, ", "))
		}
	}
	for _, c := range p.filters {
		if name := c.column.absent(columns); name != "" {
			return faultf(file, Missing, "has no column %s for the filter; it has %s", name,
				strings.Join(columns, ", "))
		}
	}
	return nil
}

// roots lists the columns of the file that the plan reads.
func (p *plan) roots() (out []string) {
	for _, f := range p.fields {
		out = f.column.roots(out)
	}
	for _, c := range p.filters {
		out = c.column.roots(out)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// read fills a row. keep is false for one that the filter drops.
func (p *plan) read(row Row, from cells) (keep bool, err error) {
	for _, c := range p.filters {
		if keep, err = c.holds(from); err != nil {
			return false, row.Fault(BadField, "%v", err)
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
			return false, row.Fault(BadField, "%s %v", f.named(), err)
		}
		if err := row.set(f.name, text); err != nil {
			return false, err
		}
		if _, there := row.Values[f.name]; there || !slices.Contains(p.required, f.name) {
			continue
		}
		if f.column.absent(slices.Sorted(maps.Keys(from))) != "" {
			return false, row.Fault(Missing, "%s is missing or blank; the row has %s", f.named(),
				strings.Join(slices.Sorted(maps.Keys(from)), ", "))
		}
		return false, row.Fault(Missing, "%s is missing or blank", f.named())
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
