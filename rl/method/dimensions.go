package method

import (
	"fmt"
	"strconv"
	"strings"
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

// clip names the loss with what it bounds the ratio by.
func (m Method) clip() string {
	l := m.Loss
	text := l.Name
	switch l.Name {
	case "":
		return "none"
	case "sapo":
		text += fmt.Sprintf(" τ %s/%s", number(l.TauPositive), number(l.TauNegative))
	case "kl_cov":
		text += fmt.Sprintf(" %s of the tokens", number(l.CovRatio))
	default:
		text += fmt.Sprintf(" −%s/+%s", number(l.ClipLow), number(l.ClipHigh))
	}
	if l.DualClip > 0 {
		text += " dual " + number(l.DualClip)
	}
	if l.SequenceMask != nil {
		text += " + sequence mask " + number(l.SequenceMask.Delta)
	}
	return text
}

// filtering names the chain in its order.
func (m Method) filtering() string {
	var parts []string
	r := m.Resample
	if r.Dynamic != nil {
		parts = append(parts, fmt.Sprintf("dynamic, %d tries", r.Dynamic.Tries))
	}
	if r.RejectEqual {
		parts = append(parts, "equal rewards rejected")
	}
	if r.LowVariance != nil {
		parts = append(parts, "most varied "+number(r.LowVariance.Keep))
	}
	if r.VSPO != nil {
		parts = append(parts, "VSPO")
	}
	if r.RoC != nil {
		parts = append(parts, fmt.Sprintf("RoC %d", r.RoC.Keep))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, " → ")
}

// advantage names the estimator and what modifies it.
func (m Method) advantage() string {
	text := m.Advantage.Name
	if among(text, "grpo", "gigpo", "empg") && !m.Advantage.Std {
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
