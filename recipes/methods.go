package recipes

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/ropewalk/ropewalk/rl/method"
)

// MethodRow is one line of the table of methods.
type MethodRow struct {
	Method  string                      `json:"method"`
	About   string                      `json:"about"`
	Design  map[method.Dimension]string `json:"design"`
	Built   bool                        `json:"built"`   // its twin runs
	Missing []string                    `json:"missing"` // what its twin needs and no stage does yet
	Presets []string                    `json:"presets"`
}

// MethodTable returns a row for each method, as its first preset sets it.
func MethodTable() ([]MethodRow, error) {
	var rows []MethodRow
	for _, m := range Methods() {
		r, err := Resolve(m.Presets[0], "", nil, nil, nil)
		if err != nil {
			return nil, err
		}
		twin, err := Resolve(m.Presets[0], "", Twin(&r.Recipe), nil, nil)
		if err != nil {
			return nil, err
		}
		missing := twin.Recipe.Planned()
		rows = append(rows, MethodRow{
			Method: m.Name, About: r.Recipe.Description, Design: r.Recipe.Method().Design(),
			Built: len(missing) == 0, Missing: missing, Presets: m.Presets,
		})
	}
	return rows, nil
}

// State says in a word whether a method runs.
func (m MethodRow) State() string {
	if m.Built {
		return "built"
	}
	return "planned"
}

// SlotState says in a word whether a choice can be made in a run.
func SlotState(slot, choice string) string {
	if missingFor(method.Pick{Slot: slot, Choice: choice}) != "" {
		return "planned"
	}
	return "built"
}

// Settings renders what a recipe sets beside a choice, or inside a switch, as name value pairs.
func (r *Recipe) Settings(s method.Slot, c method.Choice) string {
	in := r.scope()
	section, value := root, reflect.ValueOf(r).Elem()
	path := strings.Split(s.Name, ".")
	if !s.IsSwitch() {
		path = path[:len(path)-1]
	}
	for _, name := range path {
		section = section.child(name)
		if value = reflect.Indirect(value.Field(section.index)); !value.IsValid() {
			return ""
		}
	}
	if !section.IsSection() {
		return inWords(value)
	}
	var parts []string
	for _, f := range section.Fields {
		at := value.Field(f.index)
		_, reads := c.Param(f.Name)
		common := len(f.Governors) == 0 && section.opensWith(s)
		if f.IsSection() || f.IsList() || f.Slot != nil || !f.belongs(in) || !s.IsSwitch() && !reads && !common {
			continue
		}
		parts = append(parts, f.Name+" "+inWords(at))
	}
	return strings.Join(parts, ", ")
}

// opensWith reports whether the slot is the first of a section that may be absent: what every choice
// reads there is said beside it.
func (f *Field) opensWith(s method.Slot) bool {
	for _, c := range f.Fields {
		if c.Slot != nil {
			return f.Nullable && c.Path == s.Name
		}
	}
	return false
}

// inWords renders one value; a list by its length.
func inWords(v reflect.Value) string {
	if v.Kind() == reflect.Slice {
		return fmt.Sprintf("%d of them", v.Len())
	}
	return fmt.Sprint(v.Interface())
}
