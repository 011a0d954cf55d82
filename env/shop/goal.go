package shop

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// goal is what a task asks for. WebShop derives it from a product.
type goal struct {
	Product    string   `json:"product"` // id of the product that it was derived from
	Attributes []string `json:"attributes"`
	Options    []chosen `json:"options,omitempty"`
	Price      int      `json:"price"` // dollars that the price must not exceed
}

// chosen is a value of an option.
type chosen struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// instruction is the goal in the words of WebShop's generated goals.
func (g goal) instruction(p *product) string {
	var b strings.Builder
	b.WriteString(find + strings.Join(g.Attributes, ", ") + " ")
	if p.audience != "" {
		b.WriteString(p.audience + " ")
	}
	b.WriteString(p.kind.name)
	for i, o := range g.Options {
		if i == 0 {
			b.WriteString(with)
		} else {
			b.WriteString(andWith)
		}
		b.WriteString(o.Name + ": " + o.Value)
	}
	b.WriteString(lowerThan + strconv.Itoa(g.Price) + dollars)
	return b.String()
}

// The words of an instruction.
const (
	find      = "Find me "
	with      = " with "
	andWith   = ", and "
	lowerThan = ", and price lower than "
	dollars   = ".00 dollars"
)

// fuzzyMatch is the ratio above which two texts mean the same.
const fuzzyMatch = 85

// score is WebShop's score of a purchase: with the goal's attributes A and options O that the purchase has,
//
//	r = r_type · (|A| + |O| + 1[price ≤ bound]) / (number of attributes + number of options + 1)
//
// Source: Yao et al., WebShop §3 and get_reward of the release.
func (g goal) score(wanted, bought *product, options []chosen) float64 {
	hits := 0
	for _, a := range g.Attributes {
		if bought.has(a) {
			hits++
		}
	}
	for _, want := range g.Options {
		if slices.ContainsFunc(options, func(c chosen) bool { return sameOption(c.Value, want.Value) }) {
			hits++
		}
	}
	if bought.price <= 100*g.Price {
		hits++
	}
	return typeScore(wanted, bought) * float64(hits) / float64(len(g.Attributes)+len(g.Options)+1)
}

// has reports whether the product has an attribute: one that fuzzily matches, or the words in its texts.
func (p *product) has(attribute string) bool {
	return slices.ContainsFunc(p.attributes, func(a string) bool { return tokenSetRatio(a, attribute) > fuzzyMatch }) ||
		strings.Contains(p.title(), attribute) || strings.Contains(strings.Join(p.features(), " "), attribute) ||
		strings.Contains(p.description(), attribute)
}

// sameOption compares two values, of which one that names a color stands for that color.
func sameOption(a, b string) bool { return tokenSetRatio(plainColor(a), plainColor(b)) > fuzzyMatch }

// plainColor returns the first color that a value names, or the value.
func plainColor(value string) string {
	for _, c := range colors {
		if strings.Contains(value, c) {
			return c
		}
	}
	return value
}

// typeScore says how well the kind of the purchase fits: 1 if the products are of one kind, share two categories or a
// fifth of the wanted title's nouns, else 0.5; 0.1 if fewer than a tenth of the nouns are the same, and 0 if none is.
func typeScore(wanted, bought *product) float64 {
	want, got := nounsOf(wanted.title()), nounsOf(bought.title())
	same := 0
	for _, n := range want {
		if slices.Contains(got, n) {
			same++
		}
	}
	share := 0.2
	if len(want) > 0 {
		share = float64(same) / float64(len(want))
	}
	shared := 0
	for _, c := range wanted.categories() {
		if slices.Contains(bought.categories(), c) {
			shared++
		}
	}
	switch {
	case share == 0:
		return 0
	case share < 0.1:
		return 0.1
	case wanted.kind == bought.kind || shared >= 2 || share > 0.2:
		return 1
	}
	return 0.5
}

// check refuses a goal that the catalogue cannot have, and returns its product.
func (g goal) check(c *catalogue) (*product, error) {
	p := c.byID[g.Product]
	if p == nil {
		return nil, fmt.Errorf("product: the catalogue %s has no %q", c.shape, g.Product)
	}
	if len(g.Attributes) == 0 {
		return nil, fmt.Errorf("attributes: there are none")
	}
	for _, a := range g.Attributes {
		if !slices.Contains(p.attributes, a) {
			return nil, fmt.Errorf("attributes: product %s is not %q", p.id, a)
		}
	}
	for i, o := range g.Options {
		name, ok := p.option(o.Value)
		if !ok || name != o.Name || slices.ContainsFunc(g.Options[:i], func(c chosen) bool { return c.Name == name }) {
			return nil, fmt.Errorf("options: product %s has no %s %q", p.id, o.Name, o.Value)
		}
	}
	if p.price > 100*g.Price {
		return nil, fmt.Errorf("price: product %s costs more than %d dollars", p.id, g.Price)
	}
	return p, nil
}
