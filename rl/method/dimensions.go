package method

import (
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/rl/resample"
)

// Design says in a few words what a method chooses in each of the four dimensions.
func (m Method) Design() map[Dimension]string {
	return map[Dimension]string{
		LossAggregation:  m.Loss.Aggregation,
		ImportanceClip:   m.clip(),
		DynamicFiltering: m.filtering(),
		AdvantageDesign:  m.advantage(),
	}
}

// clip names the loss with the bounds of its ratio.
func (m Method) clip() string {
	l := m.Loss
	if l.Name == "" {
		return "none"
	}
	text := l.Name
	if d, ok := loss.Declared(l.Name); ok {
		if described, err := d.Describe(l.Params); err == nil { // a recipe's parameters were validated
			text = described
		}
	}
	if mask := l.SequenceMask(); mask != nil {
		text += " + sequence mask " + number(mask.Delta)
	}
	return text
}

// filtering names the chain in its order.
func (m Method) filtering() string {
	var parts []string
	r := m.Resample
	for _, rule := range resample.Rules() {
		if text := rule.Describe(r.Params); text != "" {
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, " → ")
}

// advantage names the estimator and what modifies it.
func (m Method) advantage() string {
	text := m.Advantage.Name
	if m.Advantage.Params["std"] == false {
		text += " without std"
	}
	if m.Advantage.EntropyAware != nil {
		text += " × entropy"
	}
	if m.Replay != nil {
		text += " + replay"
	}
	return text
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
