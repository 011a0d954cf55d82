package reward

import (
	"math"
	"strings"
	"testing"
)

func TestDAPOStrict(t *testing.T) {
	tests := []struct {
		name, text, gold string
		want             Outcome
	}{
		{"right", `so \boxed{34}`, "34", Outcome{1, Exact, "34"}},
		{"as a string", `so \boxed{34.0}`, "34", Outcome{-1, Wrong, "34.0"}},
		{"space counts", `so \boxed{ 34}`, "34", Outcome{-1, Wrong, " 34"}},
		{"last box", `\boxed{34} no \boxed{35}`, "34", Outcome{-1, Wrong, "35"}},
		{"open last box", `\boxed{34} no \boxed{35`, "34", Outcome{-1, NoBox, ""}},
		{"no box", `Answer: 34`, "34", Outcome{-1, NoBox, ""}},
		{"nothing", "", "34", Outcome{-1, NoBox, ""}},
		{"within 100 characters", `\boxed{34}` + strings.Repeat("é", 90), "34", Outcome{1, Exact, "34"}},
		{"beyond 100 characters", `\boxed{34}` + strings.Repeat("é", 91), "34", Outcome{-1, NoBox, ""}},
	}
	for _, tt := range tests {
		if got := DAPOStrict(tt.text, tt.gold); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestDAPOMinerva(t *testing.T) {
	tests := []struct {
		name, text, gold string
		want             Outcome
	}{
		{"right", "so\nAnswer: 34", "34", Outcome{1, Exact, "34"}},
		{"normalised", "Answer: $x = 1,234$ dollars", "1234", Outcome{1, Exact, "1234"}},
		{"gold is normalised too", `answer : \frac12`, `$\frac{1}{2}$`, Outcome{1, Exact, `\frac{1}{2}`}},
		{"on the next line", "ANSWER:\n\n34\n35", "34", Outcome{1, Exact, "34"}},
		{"last line", "Answer: 34\nAnswer: 35", "34", Outcome{-1, Wrong, "35"}},
		{"box", `Answer: \boxed{34}`, "34", Outcome{1, Exact, "34"}},
		{"no line", `\boxed{34}`, "34", Outcome{-1, NoAnswer, "[INVALID]"}},
		{"no line, gold says so", ``, "[INVALID]", Outcome{-1, NoAnswer, "[INVALID]"}},
		{"nothing against nothing", "Answer: $", "", Outcome{-1, Wrong, ""}},
	}
	for _, tt := range tests {
		if got := DAPOMinerva(tt.text, tt.gold); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestLastCharacters(t *testing.T) {
	for _, tt := range []struct {
		text string
		n    int
		want string
	}{{"abc", 2, "bc"}, {"abc", 3, "abc"}, {"abc", 9, "abc"}, {"", 3, ""}, {"aéü", 2, "éü"}, {"a漢字", 1, "字"},
		{"abc", 0, ""}} {
		if got := lastCharacters(tt.text, tt.n); got != tt.want {
			t.Errorf("last %d of %q: %q", tt.n, tt.text, got)
		}
	}
}

func TestSoftOverlong(t *testing.T) {
	tests := []struct {
		name   string
		length int
		factor float64
		want   float64
	}{
		{"short", 80, 1, 0},
		{"a token in", 81, 1, -0.05},
		{"at the limit", 100, 1, -1},
		{"beyond", 110, 1, -1.5},
		{"empty", 0, 1, 0},
		{"by half", 100, 0.5, -0.5},
	}
	for _, tt := range tests {
		if got := SoftOverlong(tt.length, 100, 20, tt.factor); !near(got, tt.want) {
			t.Errorf("%s: %g, want %g", tt.name, got, tt.want)
		}
	}
	if p := SoftOverlong(80, 100, 20, 1); math.Signbit(p) {
		t.Error("no penalty is a negative zero")
	}
}
