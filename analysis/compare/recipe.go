package compare

import (
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/recipes"
)

// Recipe compares the resolved recipes that the runs began with, field by field.
type Recipe struct {
	Fields     int                    `json:"fields"`      // that any of the recipes has
	Differ     []Field                `json:"differences"` // those whose values are not equal in all runs
	Amendments [][]analysis.Amendment `json:"amendments"`  // changes during each run
}

// Field is a field whose values differ.
type Field struct {
	Path    string   `json:"path"`
	Values  []string `json:"values"`  // compact JSON, "off", or "" where a recipe lacks the field
	Default string   `json:"default"` // "" if there is none
	Doc     string   `json:"doc"`
}

// Row lists the field's path, its default and its values as people write them.
func (f Field) Row() []string {
	row := []string{f.Path, recipes.Plain(f.Default)}
	for _, v := range f.Values {
		row = append(row, recipes.Plain(v))
	}
	return row
}

// recipeOf compares recipes. The fields have the order of docs/recipes.md.
func recipeOf(origins []analysis.Origin) (Recipe, error) {
	out := Recipe{Differ: []Field{}}
	var all []Field
	at := map[string]int{}
	for i, o := range origins {
		listed, err := recipes.List(o.Recipe)
		if err != nil {
			return out, err
		}
		last := -1 // after which field one that is new belongs
		for _, l := range listed {
			if _, known := at[l.Path]; !known {
				f := Field{Path: l.Path, Values: make([]string, len(origins)), Default: l.Default, Doc: l.Doc}
				all = slices.Insert(all, last+1, f)
				for j := range all {
					at[all[j].Path] = j
				}
			}
			last = at[l.Path]
			all[last].Values[i] = l.Value
		}
		out.Amendments = append(out.Amendments, o.Amendments)
	}
	out.Fields = len(all)
	for _, f := range all {
		if row(f.Path, f.Values).Differ {
			out.Differ = append(out.Differ, f)
		}
	}
	return out, nil
}

// Amended lists the changes during a run in words; "" if there were none.
func (r Recipe) Amended(run int) string {
	var words []string
	for _, a := range r.Amendments[run] {
		words = append(words, a.String())
	}
	return strings.Join(words, "; ")
}
