package recipes

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/internal/spelling"
)

// suggest says what an unknown name inside a section may mean: the nearest name in the section, else the field of that
// name in another section, else the field whose name is nearest in any section, else the list of names in the section.
// rest is what follows the name in a path; it is kept if it exists below the suggestion.
func suggest(parent *Field, name string, rest []string, s scope) string {
	names := parent.childNames(s)
	if near := spelling.Nearest(name, names); near != "" {
		return didYouMean(longer(parent.child(near), rest).Path)
	}
	if f := elsewhere(name, s); f != nil {
		return didYouMean(longer(f, rest).Path)
	}
	return "; there are " + strings.Join(names, ", ")
}

// childNames returns the names of the fields of a section that apply to the recipe.
func (f *Field) childNames(s scope) (names []string) {
	for _, c := range f.Fields {
		if c.belongs(s) {
			names = append(names, c.Name)
		}
	}
	return names
}

// elsewhere returns the field with the given or the nearest name, of several the one nearest to the top, or nil.
func elsewhere(name string, s scope) *Field {
	fields := slices.DeleteFunc(Fields(), func(f *Field) bool { return !f.belongs(s) })
	slices.SortStableFunc(fields, func(a, b *Field) int {
		return cmp.Compare(strings.Count(a.Path, "."), strings.Count(b.Path, "."))
	})
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	near := spelling.Nearest(name, names)
	if near == "" {
		return nil
	}
	return fields[slices.Index(names, near)]
}

// longer follows the rest of a path below a field as far as its names exist or are nearly spelt.
func longer(f *Field, rest []string) *Field {
	for _, name := range rest {
		c := f.child(spelling.Nearest(name, f.childNames(scope{})))
		if c == nil {
			return f
		}
		f = c
	}
	return f
}

// FieldLike returns the path of the field whose name, or path, is name or nearly so, or "". Commands offer it for a
// flag that they do not have.
func FieldLike(name string) string {
	names := strings.Split(strings.ReplaceAll(name, "-", "_"), ".")
	if f := root().find(strings.Join(names, ".")); f != nil {
		return f.Path
	}
	if f := elsewhere(names[len(names)-1], scope{}); f != nil {
		return f.Path
	}
	return ""
}

func didYouMean(what string) string { return "; did you mean " + what + "?" }
