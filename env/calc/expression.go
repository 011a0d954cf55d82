package calc

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// operator is one of the six operators.
type operator uint8

const (
	opAdd operator = iota
	opSub
	opMul
	opExact // ÷ without remainder
	opFloor
	opMod
	operators = 6
)

// python returns the operator in Python source. ÷ becomes //, because its quotient is whole.
func (o operator) python() string { return [operators]string{"+", "-", "*", "//", "//", "%"}[o] }

// binds returns the precedence of an operator, as in Python.
func (o operator) binds() int {
	if o == opAdd || o == opSub {
		return 1
	}
	return 2
}

// node is an operand (left and right nil) or an operator over two nodes.
type node struct {
	left, right *node
	op          operator
	value       int64
}

func (n *node) isLeaf() bool { return n.left == nil }

// Errors of evaluation.
var (
	errZeroDivisor = errors.New("divide by zero")
	errOverflow    = errors.New("exceed 64 bits")
	errInexact     = errors.New("divide with a remainder where none is allowed")
)

// eval evaluates the tree in exact integers with Python's floor semantics.
func (n *node) eval() (int64, error) {
	if n.isLeaf() {
		return n.value, nil
	}
	a, err := n.left.eval()
	if err != nil {
		return 0, err
	}
	b, err := n.right.eval()
	if err != nil {
		return 0, err
	}
	return apply(n.op, a, b)
}

func apply(op operator, a, b int64) (int64, error) {
	switch op {
	case opAdd:
		return sum(a, b)
	case opSub:
		if b == math.MinInt64 {
			return 0, errOverflow
		}
		return sum(a, -b)
	case opMul:
		return product(a, b)
	}
	if b == 0 {
		return 0, errZeroDivisor
	}
	if a == math.MinInt64 {
		return 0, errOverflow
	}
	q, r := a/b, a%b
	if r != 0 && (r < 0) != (b < 0) {
		q, r = q-1, r+b
	}
	switch {
	case op == opMod:
		return r, nil
	case op == opExact && r != 0:
		return 0, errInexact
	}
	return q, nil
}

func sum(a, b int64) (int64, error) {
	c := a + b
	if (c > a) != (b > 0) && b != 0 {
		return 0, errOverflow
	}
	return c, nil
}

func product(a, b int64) (int64, error) {
	if a == 0 || b == 0 {
		return 0, nil
	}
	c := a * b
	if c/b != a || (a == -1 && b == math.MinInt64) || (b == -1 && a == math.MinInt64) {
		return 0, errOverflow
	}
	return c, nil
}

// write renders the tree with as few parentheses as Python needs. symbol renders the operators. A right operand keeps
// its parentheses unless it binds tighter than its operator.
func (n *node) write(b *strings.Builder, symbol func(operator) string) {
	if n.isLeaf() {
		b.WriteString(strconv.FormatInt(n.value, 10))
		return
	}
	writeSide(b, n.left, symbol, !n.left.isLeaf() && n.left.op.binds() < n.op.binds())
	b.WriteString(symbol(n.op))
	writeSide(b, n.right, symbol, !n.right.isLeaf() && n.right.op.binds() <= n.op.binds())
}

func writeSide(b *strings.Builder, n *node, symbol func(operator) string, parentheses bool) {
	if parentheses {
		b.WriteByte('(')
	}
	n.write(b, symbol)
	if parentheses {
		b.WriteByte(')')
	}
}

// render returns the output of write as a string.
func (n *node) render(symbol func(operator) string) string {
	var b strings.Builder
	n.write(&b, symbol)
	return b.String()
}

// python returns the canonical source of the tree.
func (n *node) python() string { return n.render(operator.python) }

// inOrder returns the operands and the operators between them, left to right.
func (n *node) inOrder() (values []int64, ops []operator) {
	if n.isLeaf() {
		return []int64{n.value}, nil
	}
	lv, lo := n.left.inOrder()
	rv, ro := n.right.inOrder()
	return append(lv, rv...), append(append(lo, n.op), ro...)
}

// chain returns the tree that applies the operators from left to right.
func chain(values []int64, ops []operator) *node {
	n := &node{value: values[0]}
	for i, op := range ops {
		n = &node{left: n, op: op, right: &node{value: values[i+1]}}
	}
	return n
}

// parser reads canonical source: operands, + - * // %, parentheses.
type parser struct{ rest string }

// parse reads an expression. // becomes floor division, which equals ÷ for an exact division.
func parse(source string) (*node, error) {
	p := parser{rest: source}
	n, err := p.level(1)
	if err == nil && p.rest != "" {
		err = errors.New("unexpected text")
	}
	if err != nil {
		return nil, fmt.Errorf("parse %q before %q: %w", source, p.rest, err)
	}
	return n, nil
}

// level reads operators of the given precedence from left to right. Level 3 reads an operand.
func (p *parser) level(tightness int) (*node, error) {
	if tightness == 3 {
		return p.operand()
	}
	n, err := p.level(tightness + 1)
	for err == nil {
		op, ok := p.operator(tightness)
		if !ok {
			return n, nil
		}
		var right *node
		right, err = p.level(tightness + 1)
		n = &node{left: n, op: op, right: right}
	}
	return nil, err
}

func (p *parser) operator(tightness int) (operator, bool) {
	for _, op := range []operator{opAdd, opSub, opMul, opFloor, opMod} {
		if op.binds() == tightness && strings.HasPrefix(p.rest, op.python()) {
			if op == opMul && strings.HasPrefix(p.rest, "**") {
				return 0, false
			}
			p.rest = p.rest[len(op.python()):]
			return op, true
		}
	}
	return 0, false
}

func (p *parser) operand() (*node, error) {
	if inside, ok := strings.CutPrefix(p.rest, "("); ok {
		p.rest = inside
		n, err := p.level(1)
		if err != nil {
			return nil, err
		}
		if p.rest, ok = strings.CutPrefix(p.rest, ")"); !ok {
			return nil, errors.New("missing parenthesis")
		}
		return n, nil
	}
	digits := len(p.rest) - len(strings.TrimLeft(p.rest, "0123456789"))
	if digits == 0 || digits > maxLiteral || (p.rest[0] == '0' && digits > 1) {
		return nil, errors.New("missing number")
	}
	v, err := strconv.ParseInt(p.rest[:digits], 10, 64)
	p.rest = p.rest[digits:]
	return &node{value: v}, err
}

// maxLiteral is the maximum number of digits of a number. Such a number always fits in 64 bits.
const maxLiteral = 18
