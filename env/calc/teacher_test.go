package calc

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// actor answers the teacher's calls by Interpret and fails every program that Interpret does not know. A test of
// package rollout checks that those programs fail in Python.
func actor(s Step) (Shown, error) {
	stdout, value, known := Interpret(s.Code)
	if s.Broken || !known {
		return Shown{}, nil
	}
	return Shown{OK: true, Text: strings.TrimSpace(stdout + value)}, nil
}

// demonstrated returns n demonstrations with one kind of noise, and the share with the right answer.
func demonstrated(t *testing.T, noise Noise, n int) (all [][]Step, texts []string, right float64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(11, 13))
	hits := 0
	for i := range n {
		p := Generate(rng, MinLevel+i%2)
		steps, err := Demonstrate(rng, p, noise, actor)
		if err != nil {
			t.Fatal(err)
		}
		if steps[len(steps)-1].Answer == p.Answer {
			hits++
		}
		all, texts = append(all, steps), append(texts, p.Text)
	}
	return all, texts, float64(hits) / float64(n)
}

func TestDemonstrationsEndWithAnAnswerAfterAtMostTwoCalls(t *testing.T) {
	all, _, _ := demonstrated(t, DefaultNoise(), 3000)
	for _, steps := range all {
		if len(steps) > 3 || steps[len(steps)-1].IsCall() || steps[len(steps)-1].Answer == "" {
			t.Fatalf("demonstration %+v", steps)
		}
		for _, s := range steps[:len(steps)-1] {
			if !s.IsCall() {
				t.Fatalf("demonstration %+v answers in the middle", steps)
			}
		}
	}
}

func TestWithoutNoiseTheTeacherIsRight(t *testing.T) {
	all, texts, right := demonstrated(t, Noise{}, 2000)
	if right != 1 {
		t.Errorf("%.3f of the demonstrations are right", right)
	}
	for i, steps := range all {
		if isSequence(texts[i]) != strings.HasPrefix(steps[0].Code, openAssign) {
			t.Fatalf("%q is solved by %s", texts[i], steps[0].Code)
		}
	}
}

func TestEachFaultIsWhatItSays(t *testing.T) {
	for name, c := range map[string]struct {
		noise     Noise
		low, high float64 // share of right answers
		check     func([]Step) bool
	}{
		"bad code": {Noise{BadCode: 1}, 0.4, 0.6, func(s []Step) bool {
			shown, _ := actor(s[0])
			return len(s) >= 2 && !shown.OK
		}},
		"wrong order": {Noise{WrongOrder: 1}, 0, 0.06, func(s []Step) bool { return len(s) >= 2 }},
		"missing print": {Noise{MissingPrint: 1}, 0.15, 0.35, func(s []Step) bool {
			shown, _ := actor(s[0])
			return len(s) >= 2 && shown.OK && shown.Text == ""
		}},
		"no tool":    {Noise{NoTool: 1}, 0, 0.05, func(s []Step) bool { return len(s) == 1 }},
		"wrong copy": {Noise{WrongCopy: 1}, 0, 0, func(s []Step) bool { return len(s) == 2 }},
	} {
		all, texts, right := demonstrated(t, c.noise, 1500)
		if right < c.low || right > c.high {
			t.Errorf("%s: %.3f of the demonstrations are right, want %g…%g", name, right, c.low, c.high)
		}
		for i, steps := range all {
			if !c.check(steps) {
				t.Errorf("%s: %q is demonstrated as %+v", name, texts[i], steps)
				break
			}
		}
	}
}

func TestDefaultNoiseLeavesAThirdRight(t *testing.T) {
	_, _, right := demonstrated(t, DefaultNoise(), 8000)
	t.Logf("%.3f of the demonstrations on levels 2 and 3 are right", right)
	if right < 0.30 || right > 0.36 {
		t.Errorf("%.3f of the demonstrations are right, want 0.30…0.36", right)
	}
}

// The most likely beginning of a program must be wrong. Otherwise greedy decoding would have little to learn.
func TestAssignmentsOutweighPrintsForExpressions(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 19))
	assigns, prints := 0, 0
	for i := range 8000 {
		p := Generate(rng, MinLevel+i%2)
		steps, err := Demonstrate(rng, p, DefaultNoise(), actor)
		if err != nil {
			t.Fatal(err)
		}
		if isSequence(p.Text) || !steps[0].IsCall() {
			continue
		}
		if strings.HasPrefix(steps[0].Code, openPrint) {
			prints++
		}
		if strings.HasPrefix(steps[0].Code, openAssign) {
			assigns++
			if shown, _ := actor(steps[0]); shown.Text == p.Answer {
				t.Fatalf("%s shows the answer of %q", steps[0].Code, p.Text)
			}
		}
	}
	t.Logf("%d programs assign first, %d print at once", assigns, prints)
	if float64(assigns) < 1.15*float64(prints) {
		t.Errorf("%d programs assign first, %d print at once", assigns, prints)
	}
}

func TestNoiseValidate(t *testing.T) {
	for _, bad := range []Noise{{BadCode: -0.1}, {NoTool: 1.5}, {BadCode: 0.6, WrongCopy: 0.6}} {
		if bad.Validate() == nil {
			t.Errorf("noise %+v was accepted", bad)
		}
	}
	if err := DefaultNoise().Validate(); err != nil {
		t.Error(err)
	}
}

func TestInterpret(t *testing.T) {
	type result struct {
		Stdout, Value string
		Known         bool
	}
	for code, want := range map[string]result{
		"print(1+2*3)":                         {"7\n", "", true},
		"(1+2)*3":                              {"", "9", true},
		"x=7":                                  {"", "", true},
		"x=7;x+=3;x*=2;print(x)":               {"20\n", "", true},
		"x=7;x//=2;x%=2;x-=9":                  {"", "", true},
		"x=1;x-=5;x//=3;print(x)":              {"-2\n", "", true},
		"x=2;x*=(1+2)*3;print(x)":              {"18\n", "", true},
		"print(1//0)":                          {},
		"x=1;x%=0;print(x)":                    {},
		"print(1+2":                            {},
		"print(1+2))":                          {},
		"x=1;print(y)":                         {},
		"x=1;;print(x)":                        {},
		"x=":                                   {},
		"":                                     {},
		"print(1 + 2)":                         {},
		"x=1;y=2;print(x)":                     {},
		"x=1;print(x);print(x)":                {},
		"print(999999999*999999999*999999999)": {},
	} {
		var got result
		got.Stdout, got.Value, got.Known = Interpret(code)
		if !got.Known {
			got = result{}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("interpret %q (-want +got):\n%s", code, d)
		}
	}
}
