package jinja

import (
	"slices"
	"strconv"
	"strings"
)

// The operators bind, from loosest to tightest: if/else, or, and, not, comparisons, + and -, ~, * and its like, **,
// signs, and then filters and tests.

// tuple reads an expression, or several with commas between them, which are a list.
func (p *parser) tuple() (expression, error) {
	first, err := p.expression()
	if err != nil || !p.is(tokOp, ",") {
		return first, err
	}
	all := []expression{first}
	for p.accept(tokOp, ",") {
		if p.now().kind == tokEnd {
			break
		}
		next, err := p.expression()
		if err != nil {
			return nil, err
		}
		all = append(all, next)
	}
	return listExpr{all}, nil
}

// expression reads an expression with its conditions.
func (p *parser) expression() (expression, error) {
	done, err := p.deeper()
	if err != nil {
		return nil, err
	}
	defer done()
	defer func(links int) { p.links = links }(p.links)
	e, err := p.or()
	for err == nil && p.accept(tokName, "if") {
		c := conditionExpr{then: e}
		if err = p.link(); err != nil {
			break
		}
		if c.if_, err = p.or(); err != nil {
			return nil, err
		}
		if p.accept(tokName, "else") {
			c.otherwise, err = p.expression()
		}
		e = c
	}
	return e, err
}

// chain reads operands with operators of one level between them, from the left.
func (p *parser) chain(k kind, operand func() (expression, error), ops ...string) (expression, error) {
	left, err := operand()
	for err == nil {
		t := p.now()
		if t.kind != k || !slices.Contains(ops, t.text) {
			return left, nil
		}
		p.take()
		var right expression
		if err = p.link(); err == nil {
			right, err = operand()
		}
		left = binaryExpr{t.line, t.text, left, right}
	}
	return nil, err
}

func (p *parser) or() (expression, error)  { return p.chain(tokName, p.and, "or") }
func (p *parser) and() (expression, error) { return p.chain(tokName, p.not, "and") }

func (p *parser) not() (expression, error) {
	if t := p.now(); p.accept(tokName, "not") {
		done, err := p.deeper()
		if err != nil {
			return nil, err
		}
		defer done()
		e, err := p.not()
		return unaryExpr{t.line, "not", e}, err
	}
	return p.comparison()
}

// comparison reads a chain of comparisons: a < b < c is a < b and b < c.
func (p *parser) comparison() (expression, error) {
	left, err := p.sum()
	var all expression
	for err == nil {
		t := p.now()
		op := t.text
		switch {
		case t.kind == tokOp && slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, op):
			p.take()
		case p.accept(tokName, "in"):
		case t.kind == tokName && op == "not" && p.tokens[p.at+1].text == "in":
			p.at += 2
			op = "not in"
		default:
			if all == nil {
				return left, nil
			}
			return all, nil
		}
		var right expression
		if right, err = p.sum(); err == nil {
			err = p.link()
		}
		one := binaryExpr{t.line, op, left, right}
		if left = right; all == nil {
			all = one
		} else {
			all = binaryExpr{t.line, "and", all, one}
		}
	}
	return nil, err
}

func (p *parser) sum() (expression, error)     { return p.chain(tokOp, p.joined, "+", "-") }
func (p *parser) joined() (expression, error)  { return p.chain(tokOp, p.product, "~") }
func (p *parser) product() (expression, error) { return p.chain(tokOp, p.power, "*", "/", "//", "%") }
func (p *parser) power() (expression, error) {
	return p.chain(tokOp, func() (expression, error) { return p.sign(true) }, "**")
}

func (p *parser) sign(filters bool) (expression, error) {
	t := p.now()
	var e expression
	var err error
	if t.kind == tokOp && (t.text == "-" || t.text == "+") {
		p.take()
		done, deep := p.deeper()
		if deep != nil {
			return nil, deep
		}
		e, err = p.sign(false)
		done()
		e = unaryExpr{t.line, t.text, e}
	} else {
		if e, err = p.primary(); err == nil {
			e, err = p.postfix(e)
		}
	}
	if err != nil || !filters {
		return e, err
	}
	return p.filters(e)
}

// primary reads a value that consists of no other, or one in brackets.
func (p *parser) primary() (expression, error) {
	switch t := p.take(); t.kind {
	case tokString:
		var s strings.Builder
		for s.WriteString(t.text); p.now().kind == tokString; { // strings that follow each other are one
			s.WriteString(p.take().text)
		}
		return literal{s.String()}, nil
	case tokInt:
		n, err := strconv.Atoi(t.text)
		if err != nil {
			return nil, syntaxError(t.line, "the number %s is too large", t.text)
		}
		return literal{n}, nil
	case tokFloat:
		x, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			return nil, syntaxError(t.line, "the number %s is too large", t.text)
		}
		return literal{x}, nil
	case tokName:
		switch t.text {
		case "true", "True":
			return literal{true}, nil
		case "false", "False":
			return literal{false}, nil
		case "none", "None":
			return literal{nil}, nil
		}
		return nameExpr{t.text}, nil
	case tokOp:
		switch t.text {
		case "(":
			return p.brackets()
		case "[":
			all, err := p.list("]")
			return listExpr{all}, err
		case "{":
			return p.dict()
		}
	}
	p.at--
	return nil, p.unexpected("a value")
}

// brackets reads an expression in brackets, or a tuple.
func (p *parser) brackets() (expression, error) {
	if p.accept(tokOp, ")") {
		return listExpr{}, nil
	}
	e, err := p.expression()
	if err != nil {
		return nil, err
	}
	if p.accept(tokOp, ",") {
		rest, err := p.list(")")
		return listExpr{append([]expression{e}, rest...)}, err
	}
	return e, p.expect(tokOp, ")")
}

// list reads expressions up to a closing bracket.
func (p *parser) list(closing string) (all []expression, err error) {
	for !p.accept(tokOp, closing) {
		if len(all) > 0 {
			if err := p.expect(tokOp, ","); err != nil {
				return nil, err
			}
			if p.accept(tokOp, closing) {
				break
			}
		}
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

func (p *parser) dict() (expression, error) {
	var d dictExpr
	for !p.accept(tokOp, "}") {
		if len(d.keys) > 0 {
			if err := p.expect(tokOp, ","); err != nil {
				return nil, err
			}
			if p.accept(tokOp, "}") {
				break
			}
		}
		key, err := p.expression()
		if err != nil {
			return nil, err
		}
		if err := p.expect(tokOp, ":"); err != nil {
			return nil, err
		}
		value, err := p.expression()
		if err != nil {
			return nil, err
		}
		d.keys, d.values = append(d.keys, key), append(d.values, value)
	}
	return d, nil
}

// postfix reads attributes, indices and calls.
func (p *parser) postfix(e expression) (expression, error) {
	for {
		if err := p.link(); err != nil {
			return nil, err
		}
		t := p.now()
		switch {
		case p.accept(tokOp, "."):
			if p.now().kind == tokInt {
				i, err := p.primary()
				if err != nil {
					return nil, err
				}
				e = indexExpr{t.line, e, i}
				continue
			}
			name, err := p.name()
			if err != nil {
				return nil, err
			}
			e = attribute{t.line, e, name}
		case p.accept(tokOp, "["):
			var err error
			if e, err = p.subscript(e, t.line); err != nil {
				return nil, err
			}
		case p.accept(tokOp, "("):
			c := callExpr{line: t.line, of: e}
			var err error
			if c.args, c.names, c.named, err = p.arguments(); err != nil {
				return nil, err
			}
			e = c
		default:
			return e, nil
		}
	}
}

// subscript reads an index or a slice.
func (p *parser) subscript(of expression, line int) (expression, error) {
	var parts [3]expression
	n, err := 0, error(nil)
	for n < 3 {
		if !p.is(tokOp, ":") && !p.is(tokOp, "]") {
			if parts[n], err = p.expression(); err != nil {
				return nil, err
			}
		}
		if !p.accept(tokOp, ":") {
			break
		}
		n++
	}
	if err := p.expect(tokOp, "]"); err != nil {
		return nil, err
	}
	if n == 0 && parts[0] == nil {
		return nil, syntaxError(line, "an index is missing")
	}
	if n == 0 {
		return indexExpr{line, of, parts[0]}, nil
	}
	return sliceExpr{line, of, parts[0], parts[1], parts[2]}, nil
}

// arguments reads what a call is given, up to its closing bracket. A named argument without a name is a mapping of
// further ones.
func (p *parser) arguments() (args []expression, names []string, named []expression, err error) {
	for first := true; !p.accept(tokOp, ")"); first = false {
		if !first {
			if err := p.expect(tokOp, ","); err != nil {
				return nil, nil, nil, err
			}
			if p.accept(tokOp, ")") {
				break
			}
		}
		if p.now().kind == tokName && p.tokens[p.at+1].kind == tokOp && p.tokens[p.at+1].text == "=" {
			names = append(names, p.take().text)
			p.take()
			e, err := p.expression()
			if err != nil {
				return nil, nil, nil, err
			}
			named = append(named, e)
			continue
		}
		list, mapping := p.accept(tokOp, "*"), p.accept(tokOp, "**")
		e, err := p.expression()
		switch {
		case err != nil:
			return nil, nil, nil, err
		case list:
			e = spreadExpr{e}
		case mapping:
			names, named = append(names, ""), append(named, e)
			continue
		}
		args = append(args, e)
	}
	return args, names, named, nil
}

// filters reads filters and tests.
func (p *parser) filters(e expression) (expression, error) {
	for {
		if err := p.link(); err != nil {
			return nil, err
		}
		t := p.now()
		switch {
		case p.accept(tokOp, "|"):
			var err error
			if e, err = p.filter(e, t.line); err != nil {
				return nil, err
			}
		case p.accept(tokName, "is"):
			negated := p.accept(tokName, "not")
			test, err := p.test(e, t.line)
			if err != nil {
				return nil, err
			}
			if e = test; negated {
				e = unaryExpr{t.line, "not", e}
			}
		case p.accept(tokOp, "("):
			c := callExpr{line: t.line, of: e}
			var err error
			if c.args, c.names, c.named, err = p.arguments(); err != nil {
				return nil, err
			}
			e = c
		default:
			return e, nil
		}
	}
}

// filter reads the name of a filter and its arguments.
func (p *parser) filter(of expression, line int) (expression, error) {
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	f := filterExpr{line: line, name: name, of: of}
	if p.accept(tokOp, "(") {
		f.args, f.names, f.named, err = p.arguments()
	}
	return f, err
}

// test reads the name of a test and its argument.
func (p *parser) test(of expression, line int) (expression, error) {
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	t := testExpr{line: line, name: name, of: of}
	switch next := p.now(); {
	case p.accept(tokOp, "("):
		t.args, _, _, err = p.arguments()
	case next.kind == tokString || next.kind == tokInt || next.kind == tokFloat || next.kind == tokOp &&
		(next.text == "[" || next.text == "{") || next.kind == tokName &&
		!slices.Contains([]string{"else", "or", "and", "is", "if", "not", "in"}, next.text):
		var arg expression
		if arg, err = p.primary(); err == nil {
			arg, err = p.postfix(arg)
		}
		t.args = []expression{arg}
	}
	return t, err
}
