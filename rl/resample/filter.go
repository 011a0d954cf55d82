package resample

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// Filters mask responses out of the loss. The reward of a masked response still counts in its group.

// Masker decides whether a response is masked. It is a value without state: its fields are the parameters that a
// recipe sets.
type Masker interface {
	// Mask reports whether the response is masked.
	Mask(r Response) bool
}

// Response is what filters may read of one trajectory.
type Response struct {
	Text      string  // all that the policy and its tools wrote
	Tokens    []int32 // tokens that the policy wrote, turn after turn; nil unless a filter's declaration asks for them
	Length    int     // tokens of the trajectory, at least Limit if a limit cut it off
	Limit     int     // most tokens that a row may have
	VoidTurns int     // turns with neither a tool call that parsed nor a final answer
}

// Filter is what a filter states about itself. The file of the filter holds it.
type Filter struct {
	// Choice holds name and source. Its Settings are the Masker with the defaults of its parameters. A filter without
	// parameters is true or false in a recipe, one with parameters is a section that may be absent.
	choice.Choice
	Label string // what descriptions of a chain call the filter; "" = its name
	Why   Reason // what the selection says about a row that the filter masks
	// Tokens says that the filter reads Response.Tokens, VoidTurns that it reads Response.VoidTurns. Records of early
	// versions do not hold the latter.
	Tokens, VoidTurns bool
}

// Filters lists the filters that recipes can name, in the order in which they mask: a row that two filters match has
// the reason of the first. A new filter is one more line here.
func Filters() []Filter { return slices.Clone(filters) }

var filters = []Filter{
	overlong,
	voidTurns,
	repetition,
	unreadable,
}

// Mask is the link of a chain that masks the rows which a filter matches: those whose Matched names its reason.
type Mask struct {
	Filter
	Masker Masker // nil where a recipe's value is not one of the filter's; Validate says so
}

// Masks makes the links of the filters that a recipe switches on. A parameter is true, or points to the settings of its
// filter.
func Masks(params choice.Params) []Mask {
	var out []Mask
	for _, f := range filters {
		settings, on, err := f.On(params)
		if !on {
			continue
		}
		m := Mask{Filter: f}
		if err == nil {
			m.Masker, _ = settings.(Masker)
		}
		out = append(out, m)
	}
	return out
}

// Validate reports the first bad field of the filter's settings.
func (m Mask) Validate() error {
	if m.Masker == nil {
		return fmt.Errorf("filters.%s needs settings of the type %T", m.Filter.Name, m.Settings)
	}
	if v, ok := m.Masker.(interface{ Validate() error }); ok {
		return v.Validate()
	}
	return nil
}

func (m Mask) name() string { return cmp.Or(m.Label, m.Filter.Name) + " mask" }

func (Mask) draws() bool { return false }

func (m Mask) apply(s *step) {
	s.maskRows(m.Why, func(r *Row) bool { return slices.Contains(r.Matched, m.Why) })
}
