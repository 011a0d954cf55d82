package gsm8k

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits that real annotations do not come near. They bound the parser's stack and time.
const (
	maxExpressionBytes = 4096
	maxDepth           = 200
)

// Expression is a parsed arithmetic expression.
type Expression struct{ node node }

// Python renders the expression as Python source with the same value.
func (e Expression) Python() string { return e.node.python() }

// Value computes the expression in float64. The result is NaN or infinite where Python raises.
func (e Expression) Value() float64 { return e.node.value() }

// ParseExpression reads an expression in an annotation's notation:
//
//	sum     = product {("+" | "-") product}
//	product = signed {("*" | "×" | "·" | "x" | "/" | "÷" | "//") signed | bracket}
//	signed  = ["+" | "-"] signed | power
//	power   = percent [("**" | "^") signed]
//	percent = atom {"%"}
//	atom    = [currency] number | bracket
//	bracket = "(" sum ")" | "[" sum "]"
//
// Numbers may use commas to group thousands, begin with zeros and have an exponent.
func ParseExpression(text string) (Expression, error) {
	if len(text) > maxExpressionBytes {
		return Expression{}, fmt.Errorf("parse expression: longer than %d bytes", maxExpressionBytes)
	}
	p := &parser{text: text}
	n, err := p.sum()
	if err == nil && p.peek() != "" {
		err = p.unexpected()
	}
	if err != nil {
		return Expression{}, fmt.Errorf("parse expression %q: %w", text, err)
	}
	return Expression{n}, nil
}

// node is one operation or number.
type node interface {
	python() string
	value() float64
}

// literal is a number as Python writes it.
type literal struct {
	text  string
	float float64
}

func (l literal) python() string { return l.text }
func (l literal) value() float64 { return l.float }

// operation applies a Python operator. A prefix sign has no left operand.
type operation struct {
	operator    string
	left, right node
}

func (o operation) python() string {
	if o.left == nil {
		return o.operator + o.right.python()
	}
	return o.left.python() + o.operator + o.right.python()
}

func (o operation) value() float64 {
	b := o.right.value()
	if o.left == nil {
		if o.operator == "-" {
			return -b
		}
		return b
	}
	a := o.left.value()
	switch o.operator {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "/":
		return a / b
	case "//":
		return math.Floor(a / b)
	}
	return math.Pow(a, b)
}

// bracket keeps the order of operations that the text shows. A percentage is a bracket around a quotient.
type bracket struct{ inner node }

func (b bracket) python() string { return "(" + b.inner.python() + ")" }
func (b bracket) value() float64 { return b.inner.value() }

// parser walks the text by recursive descent.
type parser struct {
	text  string
	at    int
	depth int
}

// tokens are the operators and brackets, longer ones first.
var tokens = []string{"**", "//", "+", "-", "*", "/", "×", "·", "x", "X", "÷", "^", "%", "(", ")", "[", "]", "−", "–"}

// spelled gives the Python operator of each token.
var spelled = map[string]string{
	"**": "**", "^": "**", "//": "//", "+": "+", "-": "-", "−": "-", "–": "-",
	"*": "*", "×": "*", "·": "*", "x": "*", "X": "*", "/": "/", "÷": "/",
}

// peek returns the next token, the next rune if no token matches, or "" at the end.
func (p *parser) peek() string {
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\t') {
		p.at++
	}
	rest := p.text[p.at:]
	for _, t := range tokens {
		if strings.HasPrefix(rest, t) {
			return t
		}
	}
	_, n := utf8.DecodeRuneInString(rest)
	return rest[:n]
}

func (p *parser) unexpected() error {
	if t := p.peek(); t != "" {
		return fmt.Errorf("unexpected %q at byte %d", t, p.at)
	}
	return errors.New("unexpected end")
}

// operator consumes the next token if it is one of the allowed Python operators.
func (p *parser) operator(allowed ...string) (string, bool) {
	t := p.peek()
	op := spelled[t]
	for _, a := range allowed {
		if op == a && op != "" {
			p.at += len(t)
			return op, true
		}
	}
	return "", false
}

func (p *parser) sum() (node, error) {
	left, err := p.product()
	for err == nil {
		op, ok := p.operator("+", "-")
		if !ok {
			break
		}
		var right node
		right, err = p.product()
		left = operation{op, left, right}
	}
	return left, err
}

func (p *parser) product() (node, error) {
	left, err := p.signed()
	for err == nil {
		op, ok := p.operator("*", "/", "//")
		if !ok {
			if t := p.peek(); t != "(" && t != "[" {
				break
			}
			op = "*" // 2(3): adjacent factors are multiplied
		}
		var right node
		right, err = p.signed()
		left = operation{op, left, right}
	}
	return left, err
}

func (p *parser) signed() (node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, fmt.Errorf("deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	if op, ok := p.operator("+", "-"); ok {
		inner, err := p.signed()
		return operation{operator: op, right: inner}, err
	}
	return p.power()
}

func (p *parser) power() (node, error) {
	base, err := p.percent()
	if err != nil {
		return nil, err
	}
	if _, ok := p.operator("**"); !ok {
		return base, nil
	}
	exponent, err := p.signed()
	return operation{"**", base, exponent}, err
}

func (p *parser) percent() (node, error) {
	n, err := p.atom()
	for err == nil && p.peek() == "%" {
		p.at++
		n = bracket{operation{"/", n, literal{"100", 100}}}
	}
	return n, err
}

// number matches digits with or without grouped thousands, and an optional exponent.
var number = regexp.MustCompile(
	`^(?:[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]*)?|[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?`)

func (p *parser) atom() (node, error) {
	t := p.peek()
	switch t {
	case "$", "€", "£":
		p.at += len(t)
		p.peek()
	case "(", "[":
		return p.brackets(t)
	}
	digits := number.FindString(p.text[p.at:])
	if digits == "" {
		return nil, p.unexpected()
	}
	p.at += len(digits)
	text := strings.TrimLeft(strings.ReplaceAll(digits, ",", ""), "0")
	if text == "" || text[0] < '0' || text[0] > '9' {
		text = "0" + text // 0, 0.5, 0e3
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(x, 0) {
		return nil, fmt.Errorf("read number %q: %w", digits, err)
	}
	return literal{text, x}, nil
}

func (p *parser) brackets(open string) (node, error) {
	p.at++
	inner, err := p.sum()
	if err != nil {
		return nil, err
	}
	if closing := map[string]string{"(": ")", "[": "]"}[open]; p.peek() != closing {
		return nil, p.unexpected()
	}
	p.at++
	return bracket{inner}, nil
}
