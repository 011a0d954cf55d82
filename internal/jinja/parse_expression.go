package jinja

import (
	"slices"
	"strconv"
	"strings"
)

// The operators bind, from loosest to tightest: if/else, or, and, not, comparisons, + and -, ~, * and its like, **,
// signs, and then filters and tests.

// tuple reads an expression, or several with commas between them, which are a list.
func (p *parser) tuple() expression {
	first := p.expression()
	if !p.is(tokOp, ",") {
		return first
	}
	all := []expression{first}
	for p.accept(tokOp, ",") && p.now().kind != tokEnd {
		all = append(all, p.expression())
	}
	return listExpr{all}
}

// expression reads an expression with its conditions.
func (p *parser) expression() expression {
	defer p.deeper()()
	defer func(links int) { p.links = links }(p.links)
	e := p.or()
	for p.accept(tokName, "if") {
		p.link()
		c := conditionExpr{then: e, if_: p.or()}
		if p.accept(tokName, "else") {
			c.otherwise = p.expression()
		}
		e = c
	}
	return e
}

// chain reads operands with operators of one level between them, from the left.
func (p *parser) chain(k kind, operand func() expression, ops ...string) expression {
	left := operand()
	for {
		t := p.now()
		if t.kind != k || !slices.Contains(ops, t.text) {
			return left
		}
		p.take()
		p.link()
		left = binaryExpr{t.line, t.text, left, operand()}
	}
}

func (p *parser) or() expression  { return p.chain(tokName, p.and, "or") }
func (p *parser) and() expression { return p.chain(tokName, p.not, "and") }

func (p *parser) not() expression {
	if t := p.now(); p.accept(tokName, "not") {
		defer p.deeper()()
		return unaryExpr{t.line, "not", p.not()}
	}
	return p.comparison()
}

// comparison reads a chain of comparisons: a < b < c is a < b and b < c.
func (p *parser) comparison() expression {
	left := p.sum()
	var all expression
	for {
		t := p.now()
		op := t.text
		switch {
		case t.kind == tokOp && slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, op):
			p.take()
		case p.accept(tokName, "in"):
		case t.kind == tokName && op == "not" && p.tokens[p.at+1].text == "in":
			p.at += 2
			op = "not in"
		case all == nil:
			return left
		default:
			return all
		}
		right := p.sum()
		p.link()
		one := binaryExpr{t.line, op, left, right}
		if left = right; all == nil {
			all = one
		} else {
			all = binaryExpr{t.line, "and", all, one}
		}
	}
}

func (p *parser) sum() expression     { return p.chain(tokOp, p.joined, "+", "-") }
func (p *parser) joined() expression  { return p.chain(tokOp, p.product, "~") }
func (p *parser) product() expression { return p.chain(tokOp, p.power, "*", "/", "//", "%") }
func (p *parser) power() expression {
	return p.chain(tokOp, func() expression { return p.filters(p.sign()) }, "**")
}

// sign reads a value with its signs, without filters.
func (p *parser) sign() expression {
	t := p.now()
	if p.accept(tokOp, "-") || p.accept(tokOp, "+") {
		defer p.deeper()()
		return unaryExpr{t.line, t.text, p.sign()}
	}
	return p.postfix(p.primary())
}

// primary reads a value that consists of no other, or one in brackets.
func (p *parser) primary() expression {
	switch t := p.take(); t.kind {
	case tokString:
		var s strings.Builder
		for s.WriteString(t.text); p.now().kind == tokString; { // strings that follow each other are one
			s.WriteString(p.take().text)
		}
		return literal{s.String()}
	case tokInt:
		n, err := strconv.Atoi(t.text)
		return p.number(t, n, err)
	case tokFloat:
		x, err := strconv.ParseFloat(t.text, 64)
		return p.number(t, x, err)
	case tokName:
		switch t.text {
		case "true", "True":
			return literal{true}
		case "false", "False":
			return literal{false}
		case "none", "None":
			return literal{nil}
		}
		return nameExpr{t.text}
	case tokOp:
		switch t.text {
		case "(":
			return p.brackets()
		case "[":
			return listExpr{p.list("]")}
		case "{":
			return p.dict()
		}
	}
	p.at--
	panic(p.unexpected("a value"))
}

func (p *parser) number(t token, value any, err error) expression {
	if err != nil {
		panic(syntaxError(t.line, "the number %s is too large", t.text))
	}
	return literal{value}
}

// brackets reads an expression in brackets, or a tuple.
func (p *parser) brackets() expression {
	if p.accept(tokOp, ")") {
		return listExpr{}
	}
	e := p.expression()
	if p.accept(tokOp, ",") {
		return listExpr{append([]expression{e}, p.list(")")...)}
	}
	p.expect(tokOp, ")")
	return e
}

// another reports whether an item follows before a closing bracket, and takes the comma or the bracket. n is the number
// of items before it.
func (p *parser) another(n int, closing string) bool {
	if n > 0 && !p.is(tokOp, closing) {
		p.expect(tokOp, ",")
	}
	return !p.accept(tokOp, closing)
}

// list reads expressions up to a closing bracket.
func (p *parser) list(closing string) (all []expression) {
	for p.another(len(all), closing) {
		all = append(all, p.expression())
	}
	return all
}

func (p *parser) dict() expression {
	var d dictExpr
	for p.another(len(d.keys), "}") {
		d.keys = append(d.keys, p.expression())
		p.expect(tokOp, ":")
		d.values = append(d.values, p.expression())
	}
	return d
}

// postfix reads attributes, indices and calls.
func (p *parser) postfix(e expression) expression {
	for {
		p.link()
		t := p.now()
		switch {
		case p.accept(tokOp, "."):
			if p.now().kind == tokInt {
				e = indexExpr{t.line, e, p.primary()}
			} else {
				e = attribute{t.line, e, p.name()}
			}
		case p.accept(tokOp, "["):
			e = p.subscript(e, t.line)
		case p.accept(tokOp, "("):
			e = callExpr{t.line, e, p.arguments()}
		default:
			return e
		}
	}
}

// subscript reads an index or a slice.
func (p *parser) subscript(of expression, line int) expression {
	var parts [3]expression
	n := 0
	for n < 3 {
		if !p.is(tokOp, ":") && !p.is(tokOp, "]") {
			parts[n] = p.expression()
		}
		if !p.accept(tokOp, ":") {
			break
		}
		n++
	}
	p.expect(tokOp, "]")
	switch {
	case n > 0:
		return sliceExpr{line, of, parts[0], parts[1], parts[2]}
	case parts[0] == nil:
		panic(syntaxError(line, "an index is missing"))
	}
	return indexExpr{line, of, parts[0]}
}

// arguments reads what a call is given, up to its closing bracket.
func (p *parser) arguments() (g given) {
	for n := 0; p.another(n, ")"); n++ {
		if p.now().kind == tokName && p.tokens[p.at+1].kind == tokOp && p.tokens[p.at+1].text == "=" {
			g.names = append(g.names, p.take().text)
			p.take()
			g.named = append(g.named, p.expression())
			continue
		}
		list, mapping := p.accept(tokOp, "*"), p.accept(tokOp, "**")
		switch e := p.expression(); {
		case list:
			g.args = append(g.args, spreadExpr{e})
		case mapping:
			g.names, g.named = append(g.names, ""), append(g.named, e)
		default:
			g.args = append(g.args, e)
		}
	}
	return g
}

// filters reads filters and tests.
func (p *parser) filters(e expression) expression {
	for {
		p.link()
		t := p.now()
		switch {
		case p.accept(tokOp, "|"):
			e = p.filter(e, t.line)
		case p.accept(tokName, "is"):
			negated := p.accept(tokName, "not")
			if e = p.test(e, t.line); negated {
				e = unaryExpr{t.line, "not", e}
			}
		case p.accept(tokOp, "("):
			e = callExpr{t.line, e, p.arguments()}
		default:
			return e
		}
	}
}

// filter reads the name of a filter and its arguments.
func (p *parser) filter(of expression, line int) expression {
	f := filterExpr{line: line, name: p.name(), of: of}
	if p.accept(tokOp, "(") {
		f.given = p.arguments()
	}
	return f
}

// test reads the name of a test and its argument.
func (p *parser) test(of expression, line int) expression {
	t := testExpr{line: line, name: p.name(), of: of}
	switch next := p.now(); {
	case p.accept(tokOp, "("):
		t.args = p.arguments().args
	case next.kind == tokString || next.kind == tokInt || next.kind == tokFloat || next.kind == tokOp &&
		(next.text == "[" || next.text == "{") || next.kind == tokName &&
		!slices.Contains([]string{"else", "or", "and", "is", "if", "not", "in"}, next.text):
		t.args = []expression{p.postfix(p.primary())}
	}
	return t
}
