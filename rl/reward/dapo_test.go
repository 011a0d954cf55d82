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
		if got, err := (DAPO{}).Reward(tt.text, tt.gold); err != nil || got != tt.want {
			t.Errorf("%s: %+v, %v, want %+v", tt.name, got, err, tt.want)
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
		if got, err := (DAPO{Form: DAPOMinerva}).Reward(tt.text, tt.gold); err != nil || got != tt.want {
			t.Errorf("%s: %+v, %v, want %+v", tt.name, got, err, tt.want)
		}
	}
	if _, err := (DAPO{Form: "lenient"}).Reward("", ""); err == nil ||
		err.Error() != `DAPO reward: form must be dapo_strict or dapo_minerva, got "lenient"` {
		t.Errorf("unknown form: %v", err)
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

func TestOverlong(t *testing.T) {
	soft := Overlong{Mode: OverlongSoft, MaxLength: 100, Buffer: 20}
	tests := []struct {
		name      string
		overlong  Overlong
		length    int
		truncated bool
		want      float64
	}{
		{"zero value", Overlong{}, 1000, true, 1},
		{"keep", Overlong{Mode: OverlongKeep}, 1000, true, 1},
		{"zero, whole", Overlong{Mode: OverlongZero}, 100, false, 1},
		{"zero, cut off", Overlong{Mode: OverlongZero}, 100, true, 0},
		{"soft, short", soft, 80, false, 1},
		{"soft, a token in", soft, 81, false, 0.95},
		{"soft, at the limit", soft, 100, true, 0},
		{"soft, beyond", soft, 110, true, -0.5},
		{"soft, empty", soft, 0, false, 1},
		{"soft, by half", Overlong{Mode: OverlongSoft, MaxLength: 100, Buffer: 20, Factor: 0.5}, 100, true, 0.5},
	}
	for _, tt := range tests {
		if got, err := tt.overlong.Reward(1, tt.length, tt.truncated); err != nil || !near(got, tt.want) {
			t.Errorf("%s: %g, %v, want %g", tt.name, got, err, tt.want)
		}
	}
	if p := SoftOverlong(80, 100, 20, 1); math.Signbit(p) {
		t.Error("no penalty is a negative zero")
	}
	for name, o := range map[string]Overlong{
		`overlong: mode must be keep, soft or zero, got "hard"`:     {Mode: "hard"},
		"overlong: buffer must be in [1, max length], got 0 of 100": {Mode: OverlongSoft, MaxLength: 100},
		"overlong: buffer must be in [1, max length], got 101 of 100": {
			Mode: OverlongSoft, MaxLength: 100, Buffer: 101,
		},
		"overlong: factor must be finite and ≥ 0, got -1": {
			Mode: OverlongSoft, MaxLength: 100, Buffer: 1, Factor: -1,
		},
		"overlong: factor must be finite and ≥ 0, got NaN": {
			Mode: OverlongSoft, MaxLength: 100, Buffer: 1, Factor: math.NaN(),
		},
	} {
		if _, err := o.Reward(0, 0, false); err == nil || err.Error() != name {
			t.Errorf("%+v: %v, want %s", o, err, name)
		}
	}
	if _, err := (Overlong{}).Reward(0, -1, false); err == nil {
		t.Error("a negative length is taken")
	}
}
