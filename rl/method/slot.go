package method

import (
	"slices"

	"github.com/ropewalk/ropewalk/rl/choice"
	"github.com/ropewalk/ropewalk/rl/optimizer"
	"github.com/ropewalk/ropewalk/rl/schedule"
)

// Slot is a place where a method makes a choice.
type Slot struct {
	Name      string    `json:"name"` // its path in a recipe: loss.name, resample.roc
	Doc       string    `json:"doc"`
	Dimension Dimension `json:"dimension,omitempty"` // "" where ARLArena's four do not cover it
	Choices   []Choice  `json:"choices"`
}

// Choice is one name that a slot takes.
type Choice struct {
	Name   string  `json:"name"`
	Doc    string  `json:"doc"`
	Source string  `json:"source,omitempty"` // paper and equation
	Params []Param `json:"params,omitempty"` // fields of the section that only some choices of the slot read
	Needs  []Need  `json:"needs,omitempty"`
}

// Param is a field that a choice reads, named from the section that the slot is in.
type Param = choice.Param

// Params are parameters by name, as a recipe sets them.
type Params = choice.Params

// On is the choice of a slot that is a switch: a section that may be absent, a flag, a number.
const On = "on"

// Dimension is one of the four by which ARLArena sorts methods.
type Dimension = choice.Dimension

// The dimensions.
const (
	LossAggregation  = choice.LossAggregation
	ImportanceClip   = choice.ImportanceClip
	DynamicFiltering = choice.DynamicFiltering
	AdvantageDesign  = choice.AdvantageDesign
)

// Dimensions lists them in the paper's order.
func Dimensions() []Dimension {
	return []Dimension{LossAggregation, ImportanceClip, DynamicFiltering, AdvantageDesign}
}

// slots is the slot table; nothing changes it.
var slots = slices.Concat(advantageSlots(), lossSlots(), resampleSlots(), rewardSlots(), stepSlots())

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

// Governs reports whether the choice decides whether the parameter is read: at least one choice lists it.
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

// choices are what the declarations of a list state about themselves.
func choices[D choice.Declaration](list []D) []choice.Choice {
	out := make([]choice.Choice, len(list))
	for i, d := range list {
		out[i] = d.Self()
	}
	return out
}

// switchSlots are slots for the declared switches of a section, each with the one choice "on".
func switchSlots(section string, switches []choice.Choice) []Slot {
	out := make([]Slot, len(switches))
	for i, c := range switches {
		out[i] = switchSlot(section+"."+c.Name, c.Doc, c.Source, c.Dimension, c.Needs...)
	}
	return out
}

// declaredSlot is a slot whose choices the packages below rl declare, each in its own file.
func declaredSlot(name, doc string, dimension Dimension, choices []choice.Choice) Slot {
	s := Slot{Name: name, Doc: doc, Dimension: dimension}
	for _, c := range choices {
		s.Choices = append(s.Choices, Choice{
			Name: c.Name, Doc: c.Doc, Source: c.Source, Params: c.Params(choices), Needs: c.Needs,
		})
	}
	return s
}

// OptimizerSlot is the slot of the rule in a section of a recipe with an optimiser.
func OptimizerSlot(section, doc string) Slot {
	return declaredSlot(section+".name", doc, "", optimizers())
}

// DecaySlot is the slot of the learning rate's decay.
func DecaySlot() Slot {
	return declaredSlot("optimizer.decay", "how the learning rate decays after the warm-up", "", schedule.Decays())
}

// optimizers lists the rules as choices.
func optimizers() (out []choice.Choice) {
	for _, d := range optimizer.Declarations() {
		out = append(out, choice.Choice{Name: d.Name, Doc: d.Doc, Source: d.Source, Settings: d.Settings})
	}
	return out
}

// Parameters describes the fields that the choices of a slot, or the switches of a section, declare themselves. Recipes
// have these fields in that section.
func Parameters(slot string) []choice.Field {
	switch slot {
	case "advantage.name":
		return choice.Fields(estimatorChoices())
	case "filters":
		return choice.Switches(filterChoices())
	case "loss":
		return choice.Switches(termChoices())
	case "loss.name":
		return choice.Fields(lossChoices())
	case "optimizer.name":
		return choice.Fields(optimizers())
	case "resample":
		return choice.Switches(ruleChoices())
	case "reward.name":
		return choice.Fields(rewardChoices())
	case "schedule":
		return choice.Switches(schedule.Declarations())
	}
	panic("method: the choices of " + slot + " declare no parameters")
}

// switchSlot is a slot with the one choice "on".
func switchSlot(name, doc, source string, dimension Dimension, needs ...Need) Slot {
	return Slot{
		Name: name, Doc: doc, Dimension: dimension,
		Choices: []Choice{{Name: On, Doc: doc, Source: source, Needs: needs}},
	}
}
