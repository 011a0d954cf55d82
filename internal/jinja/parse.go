package jinja

import (
	"slices"
	"strconv"
)

// parser reads statements and expressions from tokens.
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

func (p *parser) expect(k kind, text string) error {
	if !p.accept(k, text) {
		return p.unexpected(text)
	}
	return nil
}

func (p *parser) unexpected(wanted string) error {
	t := p.now()
	found := strconv.Quote(t.text)
	if t.kind == tokEOF {
		found = "the end of the template"
	}
	return syntaxError(t.line, "want %s, found %s", wanted, found)
}

func (p *parser) name() (string, error) {
	if p.now().kind != tokName {
		return "", p.unexpected("a name")
	}
	return p.take().text, nil
}

// deeper counts a level of nesting until the returned function is called.
func (p *parser) deeper() (func(), error) {
	if p.depth++; p.depth > mostDepth {
		return nil, syntaxError(p.now().line, "the template is nested too deeply")
	}
	return func() { p.depth-- }, nil
}

// link counts an operand, an attribute or a filter that follows another in the current expression.
func (p *parser) link() error {
	if p.links++; p.links > mostLinks {
		return syntaxError(p.now().line, "the expression has more than %d parts", mostLinks)
	}
	return nil
}

// body reads statements up to a block with one of the given names. It returns the name, whose tag is read as far as
// the name.
func (p *parser) body(until ...string) (out []statement, end string, err error) {
	done, err := p.deeper()
	if err != nil {
		return nil, "", err
	}
	defer done()
	for {
		switch t := p.now(); {
		case t.kind == tokEOF && len(until) == 0:
			return out, "", nil
		case t.kind == tokEOF:
			return nil, "", p.unexpected(until[len(until)-1])
		case t.kind == tokText:
			out = append(out, textNode{p.take().text})
		case t.kind == tokBegin && t.text == "{{":
			p.take()
			e, err := p.tuple()
			if err != nil {
				return nil, "", err
			}
			if err := p.expect(tokEnd, "}}"); err != nil {
				return nil, "", err
			}
			out = append(out, outputNode{t.line, e})
		default:
			p.take()
			name, err := p.name()
			if err != nil {
				return nil, "", err
			}
			if slices.Contains(until, name) {
				return out, name, nil
			}
			s, err := p.statement(name, t.line)
			if err != nil {
				return nil, "", err
			}
			out = append(out, s)
		}
	}
}

// close ends a tag.
func (p *parser) close() error { return p.expect(tokEnd, "%}") }

// statement reads a block whose name is read.
func (p *parser) statement(name string, line int) (statement, error) {
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
		return p.generation()
	case "filter":
		return p.filterBlock(line)
	case "break", "continue":
		return breakNode{name == "continue"}, p.close()
	}
	return nil, syntaxError(line, "the block %q is not supported", name)
}

func (p *parser) ifBlock() (statement, error) {
	var n ifNode
	for end := "elif"; end == "elif"; {
		condition, err := p.tuple()
		if err != nil {
			return nil, err
		}
		if err := p.close(); err != nil {
			return nil, err
		}
		var body []statement
		if body, end, err = p.body("elif", "else", "endif"); err != nil {
			return nil, err
		}
		n.conditions, n.bodies = append(n.conditions, condition), append(n.bodies, body)
		if end == "else" {
			if err := p.close(); err != nil {
				return nil, err
			}
			if n.otherwise, _, err = p.body("endif"); err != nil {
				return nil, err
			}
		}
	}
	return n, p.close()
}

// targets reads the names that a loop or an assignment sets.
func (p *parser) targets() (names []string, err error) {
	inside := p.accept(tokOp, "(")
	for {
		name, err := p.name()
		if err != nil {
			return nil, err
		}
		names = append(names, name)
		if !p.accept(tokOp, ",") {
			break
		}
	}
	if inside {
		err = p.expect(tokOp, ")")
	}
	return names, err
}

func (p *parser) forBlock(line int) (statement, error) {
	n := forNode{line: line}
	var err error
	if n.names, err = p.targets(); err != nil {
		return nil, err
	}
	if err := p.expect(tokName, "in"); err != nil {
		return nil, err
	}
	if n.over, err = p.or(); err != nil {
		return nil, err
	}
	if p.accept(tokName, "if") {
		if n.condition, err = p.expression(); err != nil {
			return nil, err
		}
	}
	if err := p.close(); err != nil {
		return nil, err
	}
	var end string
	if n.body, end, err = p.body("else", "endfor"); err != nil {
		return nil, err
	}
	if end == "else" {
		if err := p.close(); err != nil {
			return nil, err
		}
		if n.otherwise, _, err = p.body("endfor"); err != nil {
			return nil, err
		}
	}
	return n, p.close()
}

func (p *parser) setBlock(line int) (statement, error) {
	n := setNode{line: line}
	var err error
	if n.names, err = p.targets(); err != nil {
		return nil, err
	}
	if len(n.names) == 1 && p.accept(tokOp, ".") {
		n.object = n.names[0]
		if n.attribute, err = p.name(); err != nil {
			return nil, err
		}
	}
	if p.accept(tokOp, "=") {
		if n.of, err = p.tuple(); err != nil {
			return nil, err
		}
		return n, p.close()
	}
	if err := p.close(); err != nil {
		return nil, err
	}
	if n.body, _, err = p.body("endset"); err != nil {
		return nil, err
	}
	return n, p.close()
}

func (p *parser) macroBlock() (statement, error) {
	n := macroNode{defaults: map[string]expression{}}
	var err error
	if n.name, err = p.name(); err != nil {
		return nil, err
	}
	if err := p.expect(tokOp, "("); err != nil {
		return nil, err
	}
	for !p.accept(tokOp, ")") {
		if len(n.names) > 0 {
			if err := p.expect(tokOp, ","); err != nil {
				return nil, err
			}
		}
		name, err := p.name()
		if err != nil {
			return nil, err
		}
		n.names = append(n.names, name)
		if p.accept(tokOp, "=") {
			if n.defaults[name], err = p.expression(); err != nil {
				return nil, err
			}
		}
	}
	if err := p.close(); err != nil {
		return nil, err
	}
	if n.body, _, err = p.body("endmacro"); err != nil {
		return nil, err
	}
	p.accept(tokName, n.name)
	return n, p.close()
}

func (p *parser) generation() (statement, error) {
	if err := p.close(); err != nil {
		return nil, err
	}
	body, _, err := p.body("endgeneration")
	if err != nil {
		return nil, err
	}
	return blockNode{body}, p.close()
}

// filterBlock reads a block whose text goes through filters.
func (p *parser) filterBlock(line int) (statement, error) {
	text := &bodyExpr{}
	of, err := p.filter(text, line)
	if err == nil {
		of, err = p.filters(of)
	}
	if err == nil {
		err = p.close()
	}
	if err == nil {
		text.body, _, err = p.body("endfilter")
	}
	if err != nil {
		return nil, err
	}
	return outputNode{line, of}, p.close()
}
