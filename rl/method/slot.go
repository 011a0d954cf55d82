package method

import "slices"

// Slot is a place where a method makes a choice.
type Slot struct {
	Name      string    `json:"name"` // its path in a recipe: loss.name, resample.roc
	Doc       string    `json:"doc"`
	Dimension Dimension `json:"dimension,omitempty"` // "" where ARLArena's four do not cover it
	Choices   []Choice  `json:"choices"`
}

// Choice is one name that a slot takes.
type Choice struct {
	Name    string  `json:"name"`
	Doc     string  `json:"doc"`
	Source  string  `json:"source,omitempty"`  // paper and equation
	Params  []Param `json:"params,omitempty"`  // fields beside the slot that it alone, or not every choice, reads
	Planned string  `json:"planned,omitempty"` // what is missing before anything can build it; "" = nothing
	Needs   []Need  `json:"needs,omitempty"`
}

// Param is a field that a choice reads, named from the section that the slot lies in.
type Param struct {
	Name    string `json:"name"`
	Default string `json:"default,omitempty"` // as YAML; "" = the field's own
}

// On is the choice of a slot that is a switch: a section that may be absent, a flag, a number.
const On = "on"

// Dimension is one of the four by which ARLArena sorts methods.
type Dimension string

// The dimensions.
const (
	LossAggregation  Dimension = "loss aggregation"
	ImportanceClip   Dimension = "importance-sampling clip"
	DynamicFiltering Dimension = "dynamic filtering"
	AdvantageDesign  Dimension = "advantage design"
)

// Dimensions lists them in the paper's order.
func Dimensions() []Dimension {
	return []Dimension{LossAggregation, ImportanceClip, DynamicFiltering, AdvantageDesign}
}

// slots is the slot table; nothing changes it.
var slots = slices.Concat(advantageSlots(), lossSlots(), termSlots(), resampleSlots(), rewardSlots(), stepSlots())

// Slots returns the slot table, in the order of a recipe's sections.
func Slots() []Slot { return slices.Clone(slots) }

// IsSwitch reports whether the slot is on or off.
func (s Slot) IsSwitch() bool { return len(s.Choices) == 1 && s.Choices[0].Name == On }

// Names lists the choices.
func (s Slot) Names() []string {
	names := make([]string, len(s.Choices))
	for i, c := range s.Choices {
		names[i] = c.Name
	}
	return names
}

// Choice returns the choice of that name.
func (s Slot) Choice(name string) (Choice, bool) {
	i := slices.IndexFunc(s.Choices, func(c Choice) bool { return c.Name == name })
	if i < 0 {
		return Choice{}, false
	}
	return s.Choices[i], true
}

// Governs reports whether it depends on the choice whether the parameter is read: some choices
// read it and others do not, or its default differs between them.
func (s Slot) Governs(param string) bool { return len(s.Readers(param)) > 0 }

// Readers names the choices that list the parameter.
func (s Slot) Readers(param string) []string {
	var names []string
	for _, c := range s.Choices {
		if _, ok := c.Param(param); ok {
			names = append(names, c.Name)
		}
	}
	return names
}

// Param returns the parameter of that name.
func (c Choice) Param(name string) (Param, bool) {
	i := slices.IndexFunc(c.Params, func(p Param) bool { return p.Name == name })
	if i < 0 {
		return Param{}, false
	}
	return c.Params[i], true
}

// params lists parameters that keep their fields' defaults.
func params(names ...string) []Param {
	out := make([]Param, len(names))
	for i, n := range names {
		out[i] = Param{Name: n}
	}
	return out
}

// with gives parameters defaults of their own: name, default, name, default, …
func with(pairs ...string) []Param {
	var out []Param
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, Param{Name: pairs[i], Default: pairs[i+1]})
	}
	return out
}

// switchSlot is a slot with the one choice "on".
func switchSlot(name, doc, source string, dimension Dimension, needs ...Need) Slot {
	return Slot{Name: name, Doc: doc, Dimension: dimension, Choices: []Choice{{Name: On, Doc: doc, Source: source, Needs: needs}}}
}
