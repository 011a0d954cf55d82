package rollout

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/calc"
)

// taught is the script of calc's teacher.
func taught(noise calc.Noise, levels ...int) Script {
	return Script{Teacher: &calc.Environment{}, Lesson: env.Lesson{Levels: levels, Noise: env.Noise(noise)}}
}

func TestDemonstrations(t *testing.T) {
	l := newLoop(t, settings, 5)
	script := taught(calc.DefaultNoise(), 2, 3)
	const n = 1500
	all, err := demonstrated(t, l, box(&python{}), script, 0, n)
	if err != nil {
		t.Fatal(err)
	}
	right := 0
	for i, d := range all {
		if len(d.Tokens) != len(d.Mask) || d.Episode.Finish != FinishAnswered {
			t.Fatalf("demonstration %d: %d tokens, %d of mask, finish %q", i, len(d.Tokens), len(d.Mask),
				d.Episode.Finish)
		}
		if calc.IsHeldOut(d.Episode.Task.ID) || d.Episode.Task.Level > 3 {
			t.Errorf("demonstration %d shows %s of level %d", i, d.Episode.Task.Spec, d.Episode.Task.Level)
		}
		if d.Right {
			right++
		}
		checkMask(t, l, d)
	}
	if share := float64(right) / n; share < 0.28 || share > 0.38 {
		t.Errorf("%.3f of the demonstrations are right", share)
	}
	part, err := demonstrated(t, l, box(&python{}), script, 700, 50)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(all[700:750], part); d != "" {
		t.Errorf("demonstrations depend on how many are drawn:\n%s", d)
	}
}

// checkMask checks that exactly the teacher's own words carry loss. Each response starts after a generation prompt and
// ends with the end-of-turn tag.
func checkMask(t *testing.T, l *Loop, d Demonstration) {
	t.Helper()
	var written []int32
	for i, m := range d.Mask {
		if m == 1 {
			written = append(written, d.Tokens[i])
		}
	}
	want := ""
	for _, turn := range d.Episode.Turns {
		want += turn.Text
	}
	if got := l.tok.Decode(written); got != want || !strings.HasSuffix(got, "</answer><|im_end|>") {
		t.Fatalf("loss falls on %q, the responses are %q", got, want)
	}
}

func TestDemonstrationsRefuseBadNoiseAndBreakage(t *testing.T) {
	l := newLoop(t, settings, 5)
	python, broken := box(&python{}), box(&python{failFrom: 1})
	if _, err := demonstrated(t, l, python, taught(calc.Noise{BadCode: 2}, 2), 0, 1); err == nil {
		t.Error("bad noise was accepted")
	}
	if _, err := demonstrated(t, l, python, taught(calc.Noise{}, 9), 0, 1); err == nil {
		t.Error("a level that does not exist was accepted")
	}
	if _, err := demonstrated(t, l, broken, taught(calc.Noise{}, 2), 0, 1); err == nil {
		t.Error("breakage of the sandbox was lost")
	}
}

// A usual trajectory, with one call and its answer, has 40 to 60 tokens.
func TestTokensOfUsualTrajectories(t *testing.T) {
	l := newLoop(t, settings, 5)
	problems, err := calc.Heldout(1536)
	if err != nil {
		t.Fatal(err)
	}
	tokens, prompt, longest := map[int]int{}, map[int]int{}, 0
	total := 0
	for i, p := range problems {
		d := demonstrateRight(t, l, p, i)
		tokens[p.Level] += len(d.Tokens)
		prompt[p.Level] += len(d.Episode.Turns[0].Context)
		total += len(d.Tokens)
		longest = max(longest, len(d.Tokens))
	}
	each := len(problems) / 3
	for level := calc.MinLevel; level <= calc.MaxLevel; level++ {
		t.Logf("level %d: %.1f tokens, %.1f of them the prompt", level,
			float64(tokens[level])/float64(each), float64(prompt[level])/float64(each))
	}
	mean := float64(total) / float64(len(problems))
	t.Logf("all levels: %.1f tokens, longest %d", mean, longest)
	if mean < 35 || mean > 60 || longest > 110 {
		t.Errorf("%.1f tokens on average, %d at most", mean, longest)
	}
}

func demonstrateRight(t *testing.T, l *Loop, p env.Task, index int) Demonstration {
	t.Helper()
	script := taught(calc.Noise{}, 2, 3, 4)
	w := Demonstrator{l, box(&python{}), script}
	d, err := w.teach(t.Context(), newRand(uint64(index)), p, index)
	if err != nil {
		t.Fatal(err)
	}
	if !d.Right {
		t.Fatalf("without noise, %q is answered wrongly:\n%s", p.Text, d.Episode.Text())
	}
	return d
}
