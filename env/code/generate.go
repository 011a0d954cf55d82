package code

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/seed"
)

// The generated tasks: one function of one parameter, described in a line, with a constant or two. Its tests compare
// with values that this program has computed.

// family is a kind of generated task.
type family struct {
	level int
	// doc and body hold A and B where the constants go.
	doc, body string
	value     func(x, a, b int) int
}

var families = []family{
	{1, "Add A to x.", "return x + A", func(x, a, _ int) int { return x + a }},
	{1, "Subtract A from x.", "return x - A", func(x, a, _ int) int { return x - a }},
	{1, "Multiply x by A.", "return x * A", func(x, a, _ int) int { return x * a }},
	{2, "Multiply x by A and add B.", "return x * A + B", func(x, a, b int) int { return x*a + b }},
	{2, "Add A to x and multiply by B.", "return (x + A) * B", func(x, a, b int) int { return (x + a) * b }},
	{2, "Return the larger of x and A.", "return max(x, A)", func(x, a, _ int) int { return max(x, a) }},
	{3, "Return the square of x, plus A.", "return x * x + A", func(x, a, _ int) int { return x*x + a }},
	{3, "Return A if x is even, else B.", "return A if x % 2 == 0 else B", func(x, a, b int) int {
		if x%2 == 0 {
			return a
		}
		return b
	}},
}

// Bounds of the constants.
const (
	least = 2
	most  = 99
)

// inputs are the arguments of a generated test.
var inputs = []int{0, 1, 2, 3, 10, 57, 100}

// fixed are the texts that all generated tasks share.
func fixed() []string { return []string{"def f(x):\n    \"\"\"", "\"\"\"\n", "    return "} }

// generated draws a task of a split. The digest of a task says its split.
func generated(at env.Draw) function {
	if at.Split == env.HeldOut {
		at = env.Draw{Split: env.HeldOut, Index: at.Index} // the same order for all runs
	}
	rng := seed.Rand("code "+string(at.Split), at.Seed, uint64(at.Step), uint64(at.Index))
	for {
		f := families[rng.IntN(len(families))].draw(rng)
		if (f.digest()[0] < '2') == (at.Split == env.HeldOut) { // two of sixteen hexadecimal digits
			return f
		}
	}
}

// draw draws the constants of a task.
func (f family) draw(rng *rand.Rand) function {
	a, b := least+rng.IntN(most-least+1), least+rng.IntN(most-least+1)
	put := strings.NewReplacer("A", fmt.Sprint(a), "B", fmt.Sprint(b)).Replace
	var test strings.Builder
	test.WriteString("def check(candidate):\n")
	for _, x := range inputs {
		fmt.Fprintf(&test, "    assert candidate(%d) == %d\n", x, f.value(x, a, b))
	}
	doc := f.doc[:1] + put(f.doc[1:]) // a sentence may begin with A
	return function{Prompt: "def f(x):\n    \"\"\"" + doc + "\"\"\"\n", Entry: "f", Test: test.String(),
		Solution: "    " + put(f.body) + "\n", level: f.level}
}
