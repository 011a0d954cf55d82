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

// tolerance is the relative difference within which two values agree. Annotations are rounded.
const tolerance = 1e-6

// annotation matches a closed annotation. An annotation lies within one line.
var annotation = regexp.MustCompile(`<<([^<>\n]*)>>`)

// Call is one annotation read as a tool call.
type Call struct {
	Expression string // as written, without the equals sign
	Value      string // the value that the annotation states; "" without an equals sign
	Code       string // Python that prints the expression's value
	// Parsed is false for an expression that is not arithmetic. Code is then the unchanged expression, which Python
	// rejects.
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

// Tool returns the call as the record and the sandbox see it.
func (c Call) Tool() env.ToolCall {
	arguments, err := json.Marshal(map[string]string{"expression": c.Expression})
	if err != nil {
		panic(err) // a map of strings always encodes
	}
	return env.ToolCall{Name: ToolName, Arguments: string(arguments), Code: c.Code}
}

// Agrees reports whether the calculator's output equals the annotated value within a relative tolerance of 1e-6. If
// either side is not one number, they disagree.
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
