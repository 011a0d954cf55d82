package recipes

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/rl/method"
)

// MethodPresets is a method with its presets, one for each task or stage.
type MethodPresets struct {
	Name    string
	Presets []string // built-in names
}

// taskSuffixes lists the name endings of presets that differ only in the task or the stage.
var taskSuffixes = []string{"-alfworld", "-webshop", "-sokoban", "-dapo-math", "-tir-math", "-sft", "-stage1",
	"-stage2", "-stage3", "-deep-research"}

// variants begins what a preset has besides its method, or without: spear-on-gigpo, aepo-without-clip.
var variants = []string{"-with", "-on-"}

// Methods groups the presets by method, sorted by name.
func Methods() []MethodPresets {
	var all []MethodPresets
	for _, preset := range Presets() {
		name := strings.TrimPrefix(preset, presetFolder)
		for _, s := range taskSuffixes {
			name = strings.TrimSuffix(name, s)
		}
		for _, v := range variants {
			name, _, _ = strings.Cut(name, v)
		}
		i := slices.IndexFunc(all, func(m MethodPresets) bool { return m.Name == name })
		if i < 0 {
			all = append(all, MethodPresets{Name: name})
			i = len(all) - 1
		}
		all[i].Presets = append(all[i].Presets, preset)
	}
	slices.SortFunc(all, func(a, b MethodPresets) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// MethodRow is one line of the table of methods.
type MethodRow struct {
	Method  string                      `json:"method"`
	About   string                      `json:"about"`
	Design  map[method.Dimension]string `json:"design"`
	Presets []string                    `json:"presets"`
}

// MethodTable returns a row for each method. The method's first preset gives the settings of the row.
func MethodTable() ([]MethodRow, error) {
	var rows []MethodRow
	for _, m := range Methods() {
		r, err := Resolve(m.Presets[0], "", nil, nil, nil)
		if err != nil {
			return nil, err
		}
		rows = append(rows, MethodRow{
			Method: m.Name, About: r.Recipe.Description, Design: r.Recipe.Method().Design(), Presets: m.Presets,
		})
	}
	return rows, nil
}

// Settings renders the fields that a recipe sets along with a choice, or inside a switch, as name value pairs.
func (r *Recipe) Settings(s method.Slot, c method.Choice) string {
	in := r.scope()
	section, value := root(), reflect.ValueOf(r).Elem()
	path := strings.Split(s.Name, ".")
	if !s.IsSwitch() {
		path = path[:len(path)-1]
	}
	for _, name := range path {
		section = section.child(name)
		if value = reflect.Indirect(section.in(value)); !value.IsValid() {
			return ""
		}
	}
	if !section.IsSection() {
		return inWords(value)
	}
	var parts []string
	for _, f := range section.Fields {
		at := f.in(value)
		_, reads := c.Param(f.Name)
		common := len(f.Governors) == 0 && section.opensWith(s)
		if f.IsSection() || f.IsList() || f.Slot != nil || !f.belongs(in) || !s.IsSwitch() && !reads && !common {
			continue
		}
		parts = append(parts, f.Name+" "+inWords(at))
	}
	return strings.Join(parts, ", ")
}

// opensWith reports whether the slot is the first slot of a nullable section. Fields that every choice of such a
// section reads are listed with that slot.
func (f *Field) opensWith(s method.Slot) bool {
	for _, c := range f.Fields {
		if c.Slot != nil {
			return f.Nullable && c.Path == s.Name
		}
	}
	return false
}

// inWords renders one value. It renders a list by its length.
func inWords(v reflect.Value) string {
	if v.Kind() == reflect.Slice {
		return fmt.Sprintf("%d of them", v.Len())
	}
	return fmt.Sprint(v.Interface())
}
