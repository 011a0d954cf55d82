package jinja

import (
	"slices"
	"strconv"
)

// parser reads statements and expressions from tokens. Its methods panic with a failure at what is no template.
type parser struct {
	tokens []token
	at     int
	depth  int
	links  int
}

func (p *parser) now() token { return p.tokens[p.at] }

// take returns the current token and goes on.
func (p *parser) take() token {
	t := p.tokens[p.at]
	if t.kind != tokEOF {
		p.at++
	}
	return t
}

func (p *parser) is(k kind, text string) bool { t := p.now(); return t.kind == k && t.text == text }

// accept takes the token if it is the wanted one.
func (p *parser) accept(k kind, text string) bool {
	if !p.is(k, text) {
		return false
	}
	p.at++
	return true
}

func (p *parser) expect(k kind, text string) {
	if !p.accept(k, text) {
		panic(p.unexpected(text))
	}
}

func (p *parser) unexpected(wanted string) failure {
	t := p.now()
	found := strconv.Quote(t.text)
	if t.kind == tokEOF {
		found = "the end of the template"
	}
	return syntaxError(t.line, "want %s, found %s", wanted, found)
}

func (p *parser) name() string {
	if p.now().kind != tokName {
		panic(p.unexpected("a name"))
	}
	return p.take().text
}

// deeper counts a level of nesting until the returned function is called.
func (p *parser) deeper() func() {
	if p.depth++; p.depth > mostDepth {
		panic(syntaxError(p.now().line, "the template is nested too deeply"))
	}
	return func() { p.depth-- }
}

// link counts an operand, an attribute or a filter that follows another in the current expression.
func (p *parser) link() {
	if p.links++; p.links > mostLinks {
		panic(syntaxError(p.now().line, "the expression has more than %d parts", mostLinks))
	}
}

// body reads statements up to a block with one of the given names. It returns the name, whose tag is read as far as
// the name.
func (p *parser) body(until ...string) (out []statement, end string) {
	defer p.deeper()()
	for {
		switch t := p.now(); {
		case t.kind == tokEOF && len(until) == 0:
			return out, ""
		case t.kind == tokEOF:
			panic(p.unexpected(until[len(until)-1]))
		case t.kind == tokText:
			out = append(out, textNode{p.take().text})
		case t.kind == tokBegin && t.text == "{{":
			p.take()
			out = append(out, outputNode{t.line, p.tuple()})
			p.expect(tokEnd, "}}")
		default:
			p.take()
			name := p.name()
			if slices.Contains(until, name) {
				return out, name
			}
			out = append(out, p.statement(name, t.line))
			p.close()
		}
	}
}

// close ends a tag.
func (p *parser) close() { p.expect(tokEnd, "%}") }

// statement reads a block whose name is read, up to the end of its last tag.
func (p *parser) statement(name string, line int) statement {
	switch name {
	case "if":
		return p.ifBlock()
	case "for":
		return p.forBlock(line)
	case "set":
		return p.setBlock(line)
	case "macro":
		return p.macroBlock()
	case "generation":
		p.close()
		body, _ := p.body("endgeneration")
		return blockNode{body}
	case "filter":
		return p.filterBlock(line)
	case "break", "continue":
		return breakNode{name == "continue"}
	}
	panic(syntaxError(line, "the block %q is not supported", name))
}

func (p *parser) ifBlock() statement {
	var n ifNode
	for end := "elif"; end == "elif"; {
		n.conditions = append(n.conditions, p.tuple())
		p.close()
		var body []statement
		body, end = p.body("elif", "else", "endif")
		n.bodies = append(n.bodies, body)
		if end == "else" {
			p.close()
			n.otherwise, _ = p.body("endif")
		}
	}
	return n
}

// targets reads the names that a loop or an assignment sets.
func (p *parser) targets() (names []string) {
	inside := p.accept(tokOp, "(")
	names = append(names, p.name())
	for p.accept(tokOp, ",") {
		names = append(names, p.name())
	}
	if inside {
		p.expect(tokOp, ")")
	}
	return names
}

func (p *parser) forBlock(line int) statement {
	n := forNode{line: line, names: p.targets()}
	p.expect(tokName, "in")
	n.over = p.or()
	if p.accept(tokName, "if") {
		n.condition = p.expression()
	}
	p.close()
	var end string
	if n.body, end = p.body("else", "endfor"); end == "else" {
		p.close()
		n.otherwise, _ = p.body("endfor")
	}
	return n
}

func (p *parser) setBlock(line int) statement {
	n := setNode{line: line, names: p.targets()}
	if len(n.names) == 1 && p.accept(tokOp, ".") {
		n.object, n.attribute = n.names[0], p.name()
	}
	if p.accept(tokOp, "=") {
		n.of = p.tuple()
		return n
	}
	p.close()
	n.body, _ = p.body("endset")
	return n
}

func (p *parser) macroBlock() statement {
	n := macroNode{name: p.name(), defaults: map[string]expression{}}
	p.expect(tokOp, "(")
	for !p.accept(tokOp, ")") {
		if len(n.names) > 0 {
			p.expect(tokOp, ",")
		}
		name := p.name()
		n.names = append(n.names, name)
		if p.accept(tokOp, "=") {
			n.defaults[name] = p.expression()
		}
	}
	p.close()
	n.body, _ = p.body("endmacro")
	p.accept(tokName, n.name)
	return n
}

// filterBlock reads a block whose text goes through filters: it sets a name to the text, and writes it filtered.
func (p *parser) filterBlock(line int) statement {
	const text = " " // no name in a template
	of := p.filters(p.filter(nameExpr{text}, line))
	p.close()
	body, _ := p.body("endfilter")
	return blockNode{[]statement{setNode{line: line, names: []string{text}, body: body}, outputNode{line, of}}}
}
