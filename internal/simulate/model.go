package simulate

import (
	"fmt"
	"math"
)

// Model says how fast an engine is and what it holds.
type Model struct {
	Tokens  int     `yaml:"kv_tokens"` // of its cache
	Rows    int     `yaml:"rows"`      // that it decodes at once, at most
	Base    float64 `yaml:"base"`      // seconds of a decode step
	Row     float64 `yaml:"row"`       // for each row
	Context float64 `yaml:"context"`   // for each token that the rows hold
	Prefill float64 `yaml:"prefill"`   // tokens a second
	Speed   float64 `yaml:"speed"`     // divides all times; 0 = 1
}

// validate reports the first bad field.
func (m Model) validate() error {
	for name, x := range map[string]float64{"base": m.Base, "row": m.Row, "context": m.Context, "speed": m.Speed} {
		if !(x >= 0) || math.IsInf(x, 0) {
			return fmt.Errorf("%s: must be finite and ≥ 0, got %g", name, x)
		}
	}
	switch {
	case m.Tokens < 1:
		return fmt.Errorf("kv_tokens: must be ≥ 1, got %d", m.Tokens)
	case m.Rows < 1:
		return fmt.Errorf("rows: must be ≥ 1, got %d", m.Rows)
	case m.Base+m.Row <= 0:
		return fmt.Errorf("base and row: a step must take time")
	case !(m.Prefill > 0) || math.IsInf(m.Prefill, 0):
		return fmt.Errorf("prefill: must be finite and > 0, got %g", m.Prefill)
	}
	return nil
}

// seconds is how long k steps of n rows take that hold read tokens at the beginning, at speed 1. Each step adds n
// tokens, so that the sum over the steps is a quadratic in k.
func (m *Model) seconds(k float64, n int, read float64) float64 {
	return k*(m.Base+m.Row*float64(n)+m.Context*read) + m.Context*float64(n)*k*k/2
}

// steps is the inverse of seconds.
func (m *Model) steps(seconds float64, n int, read float64) float64 {
	a, b := m.Base+m.Row*float64(n)+m.Context*read, 2*m.Context*float64(n)
	return 2 * seconds / (a + math.Sqrt(a*a+b*seconds))
}
