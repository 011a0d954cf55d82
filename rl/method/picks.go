package method

import (
	"reflect"
	"strings"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// Pick is the choice made in a slot.
type Pick struct {
	Slot   string `json:"slot"`
	Choice string `json:"choice"`
}

func (p Pick) choice() (Choice, bool) {
	for _, s := range slots {
		if s.Name == p.Slot {
			return s.Choice(p.Choice)
		}
	}
	return Choice{}, false
}

// Picks returns the method's choices in the order of the slot table. Switches that are off, and
// slots of sections that are absent, make none.
func (m Method) Picks() []Pick { return PicksOf(m, slots) }

// PicksOf reads the choices of slots from a struct whose fields have the slots' paths as json names.
func PicksOf(root any, table []Slot) []Pick {
	var picks []Pick
	for _, s := range table {
		v := at(reflect.ValueOf(root), strings.Split(s.Name, "."))
		switch {
		case !v.IsValid() || v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0:
		case s.IsSwitch():
			picks = append(picks, Pick{s.Name, On})
		case v.Kind() == reflect.String:
			picks = append(picks, Pick{s.Name, v.String()})
		}
	}
	return picks
}

// at walks down to the field of a path, or returns the zero Value where a section is absent.
func at(v reflect.Value, path []string) reflect.Value {
	for len(path) > 0 {
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if !v.IsValid() || v.Kind() != reflect.Struct {
			return reflect.Value{}
		}
		v = field(v, path[0])
		path = path[1:]
	}
	return v
}

// field finds a struct's field by its json name, or a parameter of its choice.
func field(v reflect.Value, name string) reflect.Value {
	for i := range v.NumField() {
		if params, ok := v.Field(i).Interface().(choice.Params); ok {
			if value, set := params[name]; set {
				return reflect.ValueOf(value)
			}
			continue
		}
		tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if tag == name {
			return v.Field(i)
		}
	}
	return reflect.Value{}
}
