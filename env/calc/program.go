package calc

import (
	"strconv"
	"strings"
)

// The fixed strings of usual code.
const (
	openPrint  = "print("
	openAssign = "x="
	closePrint = ";print(x)"
	closeWrong = ";print(y)" // a name that is not defined
)

// assignStep is the statement that applies one step of a sequence.
func assignStep(op operator) string { return ";x" + op.python() + "=" }

// printProgram prints an expression.
func printProgram(n *node) string { return openPrint + n.python() + ")" }

// stepProgram applies the operators from left to right, one statement for each, and prints the result.
func stepProgram(values []int64, ops []operator) string {
	var b strings.Builder
	b.WriteString(openAssign + strconv.FormatInt(values[0], 10))
	for i, op := range ops {
		b.WriteString(assignStep(op) + strconv.FormatInt(values[i+1], 10))
	}
	return b.String() + closePrint
}

// Interpret runs a program of the language in which the teacher writes its correct programs: an expression,
// print(expression), or x=expression;x+=expression;…[;print(x)]. known is false for every other program, and if Python
// would raise or a value exceeds 64 bits. stdout is what Python prints, and value is what a notebook shows.
func Interpret(code string) (stdout, value string, known bool) {
	if inside, ok := strings.CutPrefix(code, openPrint); ok {
		v, ok := interpretExpression(strings.TrimSuffix(inside, ")"))
		return v + "\n", "", ok && strings.HasSuffix(inside, ")")
	}
	if steps, ok := strings.CutPrefix(code, openAssign); ok {
		return interpretSteps(steps)
	}
	value, known = interpretExpression(code)
	return "", value, known
}

func interpretExpression(source string) (string, bool) {
	n, err := parse(source)
	if err != nil {
		return "", false
	}
	v, err := n.eval()
	return strconv.FormatInt(v, 10), err == nil
}

func interpretSteps(steps string) (stdout, value string, known bool) {
	steps, prints := strings.CutSuffix(steps, closePrint)
	var x int64
	for i, statement := range strings.Split(steps, ";") {
		op, source := opAdd, statement
		if i > 0 {
			var ok bool
			if op, source, ok = cutStep(statement); !ok {
				return "", "", false
			}
		}
		n, err := parse(source)
		if err != nil {
			return "", "", false
		}
		v, err := n.eval()
		if err == nil {
			x, err = apply(op, x, v) // the first statement adds to zero
		}
		if err != nil {
			return "", "", false
		}
	}
	if prints {
		stdout = strconv.FormatInt(x, 10) + "\n"
	}
	return stdout, "", true
}

// cutStep splits one statement x?=source.
func cutStep(statement string) (operator, string, bool) {
	for _, op := range []operator{opAdd, opSub, opMul, opFloor, opMod} {
		if source, ok := strings.CutPrefix(statement, assignStep(op)[1:]); ok {
			return op, source, true
		}
	}
	return 0, "", false
}
