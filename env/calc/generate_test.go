package calc

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ropewalk/ropewalk/env"
)

// drawn returns n problems with alternating levels.
func drawn(n int, seed uint64) []env.Task {
	rng := rand.New(rand.NewPCG(seed, 9))
	problems := make([]env.Task, n)
	for i := range problems {
		problems[i] = Generate(rng, MinLevel+i%3)
	}
	return problems
}

// read reverses a phrasing. It returns the index of the phrasing and the expression of the text, with / for an exact
// division.
func read(t *testing.T, text string) (phrase int, expression string) {
	t.Helper()
	for i := len(phrasings) - 1; i >= 0; i-- {
		p := phrasings[i]
		inside, ok := strings.CutPrefix(text, p.before)
		if !ok || !strings.HasSuffix(inside, p.after) {
			continue
		}
		inside = strings.TrimSuffix(inside, p.after)
		pythons := []string{"+", "-", "*", "/", "//", "%"}
		if !p.isSequence() {
			for op, s := range p.symbols {
				inside = strings.ReplaceAll(inside, s, pythons[op])
			}
			return i, inside
		}
		parts := strings.Split(inside, ", ")
		expression = parts[0]
		for _, part := range parts[1:] {
			words := strings.Fields(part)
			number := words[len(words)-1]
			for op, s := range inSteps {
				if s == ", "+strings.TrimSuffix(part, number) {
					expression = "(" + expression + ")" + pythons[op] + number
				}
			}
		}
		return i, expression
	}
	t.Fatalf("no phrasing matches %q", text)
	return 0, ""
}

// Every text, read by other means, is the expression of the answer. Python checks the values and that exact divisions
// leave no remainder.
func TestTextAndAnswerAgreeWithPython(t *testing.T) {
	problems := drawn(6000, 1)
	var request []string
	for _, p := range problems {
		_, expression := read(t, p.Text)
		request = append(request, expression)
	}
	var answers []string
	python(t, "evaluate.py", request, &answers)
	for i, p := range problems {
		if answers[i] != p.Answer {
			t.Errorf("%q: Python says %s, the gold answer is %s", p.Text, answers[i], p.Answer)
		}
		n, err := parse(p.Spec)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := n.eval(); err != nil || strconv.FormatInt(v, 10) != p.Answer {
			t.Errorf("%s = %d (%v), the gold answer is %s", p.Spec, v, err, p.Answer)
		}
	}
}

// within fails unless each count equals the expected share of the total, up to four standard errors.
func within(t *testing.T, what string, counts []int, total int) {
	t.Helper()
	want := float64(total) / float64(len(counts))
	slack := 4 * math.Sqrt(want*(1-1/float64(len(counts))))
	for i, c := range counts {
		if math.Abs(float64(c)-want) > slack {
			t.Errorf("%s %d: %d of %d, want %.0f ± %.0f (all: %v)", what, i, c, total, want, slack, counts)
		}
	}
}

func TestDigitsOperatorsAndPhrasingsAreAlike(t *testing.T) {
	for level := MinLevel; level <= MaxLevel; level++ {
		rng := rand.New(rand.NewPCG(7, uint64(level)))
		const n = 12000
		digits := make([][]int, level)
		for i := range digits {
			digits[i] = make([]int, maxDigits)
		}
		ops := make([]int, operators)
		phrases := make([]int, len(phrasings))
		parentheses := 0
		for range n {
			p := Generate(rng, level)
			phrase, expression := read(t, p.Text)
			phrases[phrase]++
			if strings.Contains(p.Spec, "(") {
				parentheses++
			}
			tree, err := parse(p.Spec)
			if err != nil {
				t.Fatal(err)
			}
			values, _ := tree.inOrder()
			for i, v := range values {
				digits[i][len(strconv.FormatInt(v, 10))-1]++
			}
			countOperators(ops, expression)
		}
		for i := range digits {
			within(t, "level "+strconv.Itoa(level)+" operand "+strconv.Itoa(i)+" digits−1 =", digits[i], n)
		}
		within(t, "operator", ops, n*(level-1))
		within(t, "phrasing", phrases, n)
		if share := float64(parentheses) / n; level > 2 && (share < 0.3 || share > 0.8) {
			t.Errorf("level %d: %.2f of the problems need parentheses", level, share)
		}
	}
}

func countOperators(counts []int, expression string) {
	expression = strings.ReplaceAll(expression, "//", "f")
	for op, symbol := range []string{"+", "-", "*", "/", "f", "%"} {
		counts[op] += strings.Count(expression, symbol)
	}
}

func TestHeldOutIsTheSameForEveryoneAndDisjoint(t *testing.T) {
	all, err := Heldout(1536)
	if err != nil {
		t.Fatal(err)
	}
	few, err := Heldout(513)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(all[:513], few); d != "" {
		t.Errorf("fewer held-out problems are not the first of more:\n%s", d)
	}
	held := map[string]bool{}
	levels := map[int]int{}
	for _, p := range all {
		if !IsHeldOut(p.ID) || held[p.ID] {
			t.Errorf("%s (%s) is not held out, or is there twice", p.ID, p.Spec)
		}
		held[p.ID] = true
		levels[p.Level]++
	}
	if d := cmp.Diff(map[int]int{2: 512, 3: 512, 4: 512}, levels); d != "" {
		t.Errorf("levels (-want +got):\n%s", d)
	}
	shares := EqualShares(2, 3, 4)
	for runSeed := range uint64(3) {
		for i := range 3000 {
			p := Training(runSeed, i/100, i%100, shares)
			if held[p.ID] || IsHeldOut(p.ID) {
				t.Fatalf("training problem %s is held out", p.Spec)
			}
			if again := Training(runSeed, i/100, i%100, shares); again != p {
				t.Fatalf("the same prompt differs: %v, %v", p, again)
			}
		}
	}
	for _, n := range []int{0, -3, 100} {
		if _, err := Heldout(n); err == nil {
			t.Errorf("%d held-out problems were drawn", n)
		}
	}
}

func TestEqualProblemsHaveEqualIDsWhateverThePhrasing(t *testing.T) {
	tree := chain([]int64{12, 5, 7}, []operator{opAdd, opMul})
	texts := map[string]bool{}
	for _, phrase := range phrasings {
		p := problem(tree, 119, 3, phrase)
		texts[p.Text] = true
		if p.ID != problemID("(12+5)*7") || p.Answer != "119" {
			t.Errorf("%q has id %s and answer %s", p.Text, p.ID, p.Answer)
		}
	}
	want := map[string]bool{
		"What is (12 + 5) × 7?": true, "Compute (12 + 5) × 7.": true, "(12 + 5) × 7 = ?": true,
		"Work out (12 plus 5) times 7.": true, "Find the value of (12 plus 5) times 7.": true,
		"Start with 12, add 5, multiply by 7.": true,
	}
	if d := cmp.Diff(want, texts); d != "" {
		t.Errorf("texts (-want +got):\n%s", d)
	}
}

func TestShares(t *testing.T) {
	shares, err := ParseShares(map[string]float64{"2": 1, "3": 0, "4": 3})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(5, 5))
	counts := map[int]int{}
	for range 8000 {
		counts[Sample(rng, shares).Level]++
	}
	if counts[3] != 0 || counts[2] < 1850 || counts[2] > 2150 {
		t.Errorf("shares 1 : 0 : 3 gave %v", counts)
	}
	for _, bad := range []map[string]float64{nil, {"2": 0}, {"5": 1}, {"x": 1}, {"2": -1}, {"2": math.NaN()},
		{"2": math.Inf(1)}} {
		if _, err := ParseShares(bad); err == nil {
			t.Errorf("shares %v were accepted", bad)
		}
	}
}
