package gsm8k

import (
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/env"
)

// ToolName names the calculator in the tool_calls table.
const ToolName = "calculator"

// tolerance is the relative error within which two values agree: annotations are rounded.
const tolerance = 1e-6

// annotation matches a closed annotation; none crosses a line.
var annotation = regexp.MustCompile(`<<([^<>\n]*)>>`)

// Call is one annotation as a tool call.
type Call struct {
	Expression string // as it was written, without the equals sign
	Value      string // what the annotation says it is worth; "" without an equals sign
	Code       string // Python that prints the expression's value
	// Parsed is false for an expression that is not arithmetic: Code is then the expression as it
	// stands, which Python refuses.
	Parsed bool
}

// newCall reads the inside of an annotation.
func newCall(inside string) Call {
	expression, value, _ := strings.Cut(inside, "=")
	c := Call{Expression: expression, Value: value}
	e, err := ParseExpression(expression)
	if err != nil {
		c.Code = "print(" + expression + ")"
		return c
	}
	c.Code, c.Parsed = "print("+e.Python()+")", true
	return c
}

// Tool is the call as the record and the sandbox see it.
func (c Call) Tool() env.ToolCall {
	arguments, err := json.Marshal(map[string]string{"expression": c.Expression})
	if err != nil {
		panic(err) // a map of strings always encodes
	}
	return env.ToolCall{Name: ToolName, Arguments: string(arguments), Code: c.Code}
}

// Agrees reports whether what the calculator printed is the annotated value, within 1e-6
// relative. Anything but one number on either side disagrees.
func Agrees(stdout, annotated string) bool {
	got, err := strconv.ParseFloat(strings.TrimSpace(stdout), 64)
	if err != nil || math.IsNaN(got) || math.IsInf(got, 0) {
		return false
	}
	e, err := ParseExpression(annotated)
	if err != nil {
		return false
	}
	want := e.Value()
	if math.IsNaN(want) || math.IsInf(want, 0) {
		return false // as far from everything as from itself
	}
	return math.Abs(got-want) <= tolerance*max(math.Abs(got), math.Abs(want))
}
