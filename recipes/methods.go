package recipes

import "github.com/ropewalk/ropewalk/rl/method"

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
