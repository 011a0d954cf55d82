package reward

import (
	"math/big"
	"regexp"
	"strings"
)

// parser reads a number by recursive descent:
//
//	signed  = ["-" | "+"] quotient
//	quotient = term ["/" term]
//	term    = integer fraction        a mixed number
//	        | [factor] root           a multiple of a root
//	        | factor
//	factor  = number | frac | "(" signed ")" | "{" signed "}"
//	frac    = "\frac" argument argument
//	root    = "\sqrt" ["[" digit "]"] argument
//	argument = "{" signed "}" | digit
//
// where a mixed number's fraction is a frac, or integer "/" integer after a space.
type parser struct {
	text   string
	at     int
	depth  int // open brackets: inside them a comma separates and never groups digits
	failed bool
}

var (
	grouped   = regexp.MustCompile(`^[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]*)?`)
	decimal   = regexp.MustCompile(`^(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)`)
	mixedTail = regexp.MustCompile(`^ +([0-9]+) ?/ ?([0-9]+)`)
	rootIndex = regexp.MustCompile(`^\[([2-9])\]`)
)

func (p *parser) rest() string { return p.text[p.at:] }

func (p *parser) space() {
	for p.at < len(p.text) && p.text[p.at] == ' ' {
		p.at++
	}
}

// take steps over a token and the space before it.
func (p *parser) take(token string) bool {
	p.space()
	if !strings.HasPrefix(p.rest(), token) {
		return false
	}
	p.at += len(token)
	return true
}

// check notes that something cannot be read or has no value. Then the whole text is no number, whatever follows.
func (p *parser) check(v value, ok bool) value {
	p.failed = p.failed || !ok
	return v
}

func (p *parser) signed() value {
	if p.take("-") {
		return p.quotient().negated()
	}
	p.take("+")
	return p.quotient()
}

func (p *parser) quotient() value {
	v := p.term()
	if !p.take("/") {
		return v
	}
	return p.check(v.divide(p.term()))
}

func (p *parser) term() value {
	if p.take(`\sqrt`) {
		return p.root()
	}
	v := p.factor()
	if v.literal && v.rat.IsInt() {
		if part, mixed := p.fraction(); mixed {
			if part == nil || part.Sign() < 0 {
				return p.check(value{}, false)
			}
			return exact(new(big.Rat).Add(v.rat, part))
		}
	}
	if !p.take(`\sqrt`) {
		return v
	}
	return p.check(v.times(p.root()))
}

// fraction reads what makes an integer a mixed number; mixed says whether there is such a thing.
func (p *parser) fraction() (part *big.Rat, mixed bool) {
	if m := mixedTail.FindStringSubmatch(p.rest()); m != nil {
		p.at += len(m[0])
		part, _ = new(big.Rat).SetString(m[1] + "/" + m[2])
		return part, true
	}
	if !p.take(`\frac`) {
		return nil, false
	}
	return p.frac().rat, true
}

func (p *parser) factor() value {
	switch {
	case p.take(`\frac`):
		return p.frac()
	case p.take("("):
		return p.enclosed(")")
	case p.take("{"):
		return p.enclosed("}")
	}
	return p.number()
}

func (p *parser) number() value {
	p.space()
	match := ""
	if p.depth == 0 {
		match = grouped.FindString(p.rest())
	}
	if match == "" {
		match = decimal.FindString(p.rest())
	}
	p.at += len(match)
	r, ok := new(big.Rat).SetString(strings.TrimSuffix(strings.ReplaceAll(match, ",", ""), "."))
	if !ok {
		return p.check(value{}, false)
	}
	v := exact(r)
	v.literal = true
	return v
}

// enclosed reads up to a closing bracket; what brackets hold is not literal.
func (p *parser) enclosed(closing string) value {
	p.depth++
	v := p.signed()
	p.depth--
	v.literal = false
	return p.check(v, p.take(closing))
}

func (p *parser) frac() value {
	n := p.argument()
	return p.check(n.divide(p.argument()))
}

func (p *parser) root() value {
	index := 2
	if m := rootIndex.FindStringSubmatch(p.rest()); m != nil {
		p.at += len(m[0])
		index = int(m[1][0] - '0')
	}
	return p.check(p.argument().root(index))
}

// argument reads a braced group or one bare digit.
func (p *parser) argument() value {
	if p.take("{") {
		return p.enclosed("}")
	}
	if p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		p.at++
		return exact(big.NewRat(int64(p.text[p.at-1]-'0'), 1))
	}
	return p.check(value{}, false)
}
