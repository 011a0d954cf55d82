package calc

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/ropewalk/ropewalk/env"
)

// Noise holds the probability of each of the teacher's faults. A demonstration has at most one fault. A demonstration
// without a fault is correct. The function that commits a fault describes it.
type Noise env.Noise

// Validate checks that each value is a probability and that their sum is at most one.
func (n Noise) Validate() error {
	total := 0.0
	for _, p := range []float64{n.BadCode, n.WrongOrder, n.MissingPrint, n.NoTool, n.WrongCopy} {
		if !(p >= 0 && p <= 1) {
			return fmt.Errorf("read the teacher's noise: %g is not a chance", p)
		}
		total += p
	}
	if total > 1+1e-9 {
		return fmt.Errorf("read the teacher's noise: chances sum to %g, over 1", total)
	}
	return nil
}

// DefaultNoise makes about a third of the demonstrations correct. The faults that begin with an assignment are together
// more frequent than all correct programs. So the most likely program of a policy cloned from the demonstrations is
// wrong too.
func DefaultNoise() Noise {
	return Noise{BadCode: 0.17, WrongOrder: 0.28, MissingPrint: 0.20, NoTool: 0.07, WrongCopy: 0.09}
}

// Probabilities of the teacher's variations.
const (
	retryAfterError   = 0.5  // after a failing call: write the correct program; otherwise guess
	retryAfterSilence = 0.25 // after a call that showed nothing: the same choice
	bareExpression    = 0.15 // the correct program shows its value without print
)

// Step is one response of a demonstration: a tool call or the final answer.
type Step = env.Move

// Shown is what the tool showed to the teacher.
type Shown = env.Shown

type fault uint8

const (
	faultNone fault = iota
	faultBadCode
	faultWrongOrder
	faultMissingPrint
	faultNoTool
	faultWrongCopy
)

func (n Noise) draw(rng *rand.Rand) fault {
	u := rng.Float64()
	for i, p := range []float64{n.BadCode, n.WrongOrder, n.MissingPrint, n.NoTool, n.WrongCopy} {
		if u -= p; u < 0 {
			return faultBadCode + fault(i)
		}
	}
	return faultNone
}

// teacher solves one problem.
type teacher struct {
	rng     *rand.Rand
	problem env.Task
	tree    *node
	act     func(Step) (Shown, error)
	steps   []Step
}

// Demonstrate solves a problem as the noisy teacher does, in up to three steps: at most two calls and then an answer.
// act runs each call and reports the tool's real output.
func Demonstrate(rng *rand.Rand, problem env.Task, noise Noise, act func(Step) (Shown, error)) ([]Step, error) {
	tree, err := parse(problem.Spec)
	if err != nil {
		return nil, fmt.Errorf("demonstrate problem %s: %w", problem.ID, err)
	}
	t := &teacher{rng: rng, problem: problem, tree: tree, act: act}
	if err := t.solve(noise.draw(rng)); err != nil {
		return nil, fmt.Errorf("demonstrate problem %s: %w", problem.ID, err)
	}
	return t.steps, nil
}

func (t *teacher) solve(f fault) error {
	if f == faultNoTool {
		t.answer(t.guess())
		return nil
	}
	shown, err := t.call(t.program(f))
	if err != nil {
		return err
	}
	if shown.Text == "" || !shown.OK {
		return t.recover(shown)
	}
	if f == faultWrongCopy {
		t.answer(t.miscopy(shown.Text))
		return nil
	}
	t.answer(shown.Text)
	return nil
}

// recover continues after a call that showed no value.
func (t *teacher) recover(shown Shown) error {
	retry := retryAfterError
	if shown.OK {
		retry = retryAfterSilence
	}
	if t.rng.Float64() >= retry {
		t.answer(t.guess())
		return nil
	}
	shown, err := t.call(Step{Code: t.right()})
	if err != nil {
		return err
	}
	t.answer(shown.Text)
	return nil
}

func (t *teacher) call(s Step) (Shown, error) {
	t.steps = append(t.steps, s)
	return t.act(s)
}

func (t *teacher) answer(text string) { t.steps = append(t.steps, Step{Answer: text}) }

func (t *teacher) program(f fault) Step {
	switch f {
	case faultBadCode:
		return t.badCode()
	case faultWrongOrder:
		return Step{Code: t.wrongOrder()}
	case faultMissingPrint:
		return Step{Code: openAssign + t.tree.python()}
	}
	return Step{Code: t.right()}
}

// right returns the correct program: a sequence step by step, anything else as one expression. In both cases the
// program's numbers and operators follow the problem's text in order.
func (t *teacher) right() string {
	if isSequence(t.problem.Text) {
		return stepProgram(t.tree.inOrder())
	}
	if t.rng.Float64() < bareExpression {
		return t.tree.python()
	}
	return printProgram(t.tree)
}

// badCode draws one way to write a failing call.
func (t *teacher) badCode() Step {
	source := t.tree.python()
	switch u := t.rng.Float64(); {
	case u < 0.5: // NameError
		return Step{Code: openAssign + source + closeWrong}
	case u < 0.65: // ZeroDivisionError
		return Step{Code: openPrint + source + "//0)"}
	case u < 0.8: // SyntaxError: a missing closing parenthesis
		return Step{Code: openPrint + source}
	case u < 0.9: // SyntaxError: an operator without an operand
		return Step{Code: openPrint + source + "*)"}
	}
	return Step{Code: printProgram(t.tree), Broken: true}
}

// wrongOrder confuses the two ways to solve a problem. It evaluates an expression from left to right as if it were a
// sequence, and writes a sequence as an expression without parentheses. If the result is correct by chance, it reverses
// the operators or changes the first one.
func (t *teacher) wrongOrder() string {
	values, ops := t.tree.inOrder()
	reversed := make([]operator, len(ops))
	for i, op := range ops {
		reversed[len(ops)-1-i] = op
	}
	other := append([]operator(nil), ops...)
	other[0] = [operators]operator{opSub, opAdd, opAdd, opMul, opMul, opSub}[ops[0]]
	for _, order := range [][]operator{ops, reversed, other} {
		n := chain(values, order)
		if isSequence(t.problem.Text) {
			n = flat(values, order)
		}
		if v, err := n.eval(); err == nil && strconv.FormatInt(v, 10) == t.problem.Answer {
			continue
		}
		if isSequence(t.problem.Text) {
			return printProgram(n)
		}
		return stepProgram(values, order)
	}
	return printProgram(t.tree) // every order gives the answer, as in 1 + 1 // any order is right, as in 1+1//1
}

// flat returns the tree that Python reads from operands and operators in a row without parentheses.
func flat(values []int64, ops []operator) *node {
	source := strconv.FormatInt(values[0], 10)
	for i, op := range ops {
		source += op.python() + strconv.FormatInt(values[i+1], 10)
	}
	n, err := parse(source)
	if err != nil {
		panic(fmt.Sprintf("calc: %v", err)) // a parse cannot fail: operands are positive and short
	}
	return n
}

// guess returns a number of one to four digits.
func (t *teacher) guess() string {
	return strconv.FormatInt(drawOperand(t.rng, 1+t.rng.IntN(maxDigits)), 10)
}

// miscopy drops the last digit, repeats it, or changes it.
func (t *teacher) miscopy(text string) string {
	last := text[len(text)-1]
	switch kind := t.rng.IntN(3); {
	case kind == 0 && len(text) > 2:
		return text[:len(text)-1]
	case kind == 1:
		return text + string(last)
	}
	return text[:len(text)-1] + string('0'+(last-'0'+1)%10)
}
