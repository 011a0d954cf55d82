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
	text  string
	at    int
	depth int // open brackets: inside them a comma separates and never groups digits
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

func (p *parser) signed() (value, bool) {
	negative := p.take("-")
	if !negative {
		p.take("+")
	}
	v, ok := p.quotient()
	if ok && negative {
		v = v.negated()
	}
	return v, ok
}

func (p *parser) quotient() (value, bool) {
	v, ok := p.term()
	if !ok || !p.take("/") {
		return v, ok
	}
	d, ok := p.term()
	if !ok {
		return value{}, false
	}
	return v.divide(d)
}

func (p *parser) term() (value, bool) {
	if p.take(`\sqrt`) {
		return p.root()
	}
	v, ok := p.factor()
	if !ok {
		return value{}, false
	}
	if v.literal && v.rat.IsInt() {
		if part, mixed, ok := p.fraction(); mixed {
			if !ok {
				return value{}, false
			}
			return exact(new(big.Rat).Add(v.rat, part)), true
		}
	}
	if !p.take(`\sqrt`) {
		return v, true
	}
	r, ok := p.root()
	if !ok {
		return value{}, false
	}
	return v.times(r)
}

// fraction reads what makes an integer a mixed number; found says whether there is such a thing.
func (p *parser) fraction() (part *big.Rat, found, ok bool) {
	if m := mixedTail.FindStringSubmatch(p.rest()); m != nil {
		p.at += len(m[0])
		part, ok = new(big.Rat).SetString(m[1] + "/" + m[2])
		return part, true, ok
	}
	if !p.take(`\frac`) {
		return nil, false, false
	}
	v, ok := p.frac()
	return v.rat, true, ok && v.rat != nil && v.rat.Sign() >= 0
}

func (p *parser) factor() (value, bool) {
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

func (p *parser) number() (value, bool) {
	p.space()
	match := ""
	if p.depth == 0 {
		match = grouped.FindString(p.rest())
	}
	if match == "" {
		match = decimal.FindString(p.rest())
	}
	if match == "" {
		return value{}, false
	}
	p.at += len(match)
	digits := strings.TrimSuffix(strings.ReplaceAll(match, ",", ""), ".")
	r, ok := new(big.Rat).SetString(digits)
	if !ok {
		return value{}, false
	}
	v := exact(r)
	v.literal = true
	return v, true
}

// enclosed reads up to a closing bracket; what brackets hold is not literal.
func (p *parser) enclosed(closing string) (value, bool) {
	p.depth++
	v, ok := p.signed()
	ok = ok && p.take(closing)
	p.depth--
	v.literal = false
	return v, ok
}

func (p *parser) frac() (value, bool) {
	n, ok := p.argument()
	if !ok {
		return value{}, false
	}
	d, ok := p.argument()
	if !ok {
		return value{}, false
	}
	return n.divide(d)
}

func (p *parser) root() (value, bool) {
	index := 2
	if m := rootIndex.FindStringSubmatch(p.rest()); m != nil {
		p.at += len(m[0])
		index = int(m[1][0] - '0')
	}
	v, ok := p.argument()
	if !ok {
		return value{}, false
	}
	return v.root(index)
}

// argument reads a braced group or one bare digit.
func (p *parser) argument() (value, bool) {
	if p.take("{") {
		return p.enclosed("}")
	}
	if p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		v := exact(big.NewRat(int64(p.text[p.at]-'0'), 1))
		p.at++
		return v, true
	}
	return value{}, false
}
