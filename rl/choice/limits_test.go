package choice

import (
	"math"
	"testing"
)

// bounded has a field of each kind of limit.
type bounded struct {
	Share   float64 `min:"0" max:"1"`
	Cut     float64 `json:"cut_off" above:"0" below:"1"`
	Least   float64 `min:"2"`
	AnyReal float64
	Count   int      `min:"1"`
	Mode    string   `enum:"a|b|c"`
	Base    *float64 `max:"5"`
	hidden  int      `min:"9"`
}

func TestCheck(t *testing.T) {
	ten := 10.0
	for want, change := range map[string]func(*bounded){
		"":                                          func(*bounded) {},
		"x: share must be in [0, 1], got 1.5":       func(b *bounded) { b.Share = 1.5 },
		"x: share must be in [0, 1], got NaN":       func(b *bounded) { b.Share = math.NaN() },
		"x: cut_off must be in (0, 1), got 0":       func(b *bounded) { b.Cut = 0 },
		"x: cut_off must be in (0, 1), got 1":       func(b *bounded) { b.Cut = 1 },
		"x: least must be finite and ≥ 2, got 1":    func(b *bounded) { b.Least = 1 },
		"x: least must be finite and ≥ 2, got +Inf": func(b *bounded) { b.Least = math.Inf(1) },
		"x: any_real must be finite, got -Inf":      func(b *bounded) { b.AnyReal = math.Inf(-1) },
		"x: count must be ≥ 1, got 0":               func(b *bounded) { b.Count = 0 },
		`x: mode must be a, b or c, got "d"`:        func(b *bounded) { b.Mode = "d" },
		"x: base must be finite and ≤ 5, got 10":    func(b *bounded) { b.Base = &ten },
	} {
		b := bounded{Share: 1, Cut: 0.5, Least: 2, Count: 1, hidden: 1}
		change(&b)
		got := ""
		if err := Check("x: ", b); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%+v: %q, want %q", b, got, want)
		}
	}
}
