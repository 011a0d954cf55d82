package shop

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/internal/seed"
)

const (
	// fullSize is the number of products of the full-size shop.
	fullSize = 10_000
	// maxProducts is the largest catalogue for which ids are different.
	maxProducts = 1 << 20
	// inTitle is the number of attributes that a title names; the features name all.
	inTitle = 2
)

// product is one product of a catalogue.
type product struct {
	number     int
	id         string // like Amazon's numbers: b0 and eight digits and letters
	family     int
	kind       kind
	brand      string // "" in brief catalogues
	audience   string
	attributes []string
	options    []option
	price      int // in cents
	rating     int // tenths of a star; 0 = none
	brief      bool
}

// title is the name of the product in lists of results.
func (p *product) title() string {
	named := p.attributes[:min(inTitle, len(p.attributes))]
	if p.brief {
		return strings.Join(append(slices.Clone(named), p.kind.name), " ")
	}
	parts := []string{p.brand, p.audience, named[0], p.kind.name}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return strings.Join(slices.Concat([]string{strings.Join(parts, " ")}, named[1:]), ", ")
}

// features are the bullet points of the product's page.
func (p *product) features() (out []string) {
	if p.brief {
		return nil
	}
	for i, a := range p.attributes {
		form := featureForms[(p.number+i)%len(featureForms)]
		if strings.Contains(form, "%[2]s") {
			out = append(out, fmt.Sprintf(form, a, p.kind.name))
		} else {
			out = append(out, fmt.Sprintf(form, a))
		}
	}
	return out
}

// description is the text of the product's page.
func (p *product) description() string {
	if p.brief {
		return ""
	}
	n := len(descriptions)
	first, second := p.number%n, (p.number/n)%n
	return fmt.Sprintf(descriptions[first], p.kind.name) + " " + fmt.Sprintf(descriptions[second], p.kind.name)
}

// reviews are what buyers wrote.
func (p *product) reviews() []string {
	if p.rating == 0 {
		return nil
	}
	first, second := p.number%len(reviews), (p.number/7)%len(reviews)
	if first == second {
		return reviews[first : first+1]
	}
	return []string{reviews[first], reviews[second]}
}

// indexed is the text that search finds the product by. The values of its options are not in it.
func (p *product) indexed() string {
	return strings.Join(slices.Concat([]string{p.title()}, p.features(), []string{p.description()}), " . ")
}

// categories is the path of the product's category.
func (p *product) categories() []string {
	return []string{families[p.family].name, p.kind.group, p.kind.name}
}

// option returns the product's option that has a value.
func (p *product) option(value string) (name string, ok bool) {
	for _, o := range p.options {
		if slices.Contains(o.values, value) {
			return o.name, true
		}
	}
	return "", false
}

// idPieces are the pieces of ids. They occur in no other text of the shop.
var idPieces = func() (out []string) {
	for _, digit := range "23456789" {
		for _, letter := range "kmqx" {
			out = append(out, string(digit)+string(letter))
		}
	}
	return out
}()

// idPrefix begins every id.
const idPrefix = "b0"

// idOf returns the id of a product. Different numbers below maxProducts have different ids.
func idOf(number int) string {
	n := (number*676_553 + 90_211) % maxProducts // an odd factor permutes the numbers
	id := idPrefix
	for range 4 {
		id += idPieces[n%len(idPieces)]
		n /= len(idPieces)
	}
	return id
}

// shape says which catalogue is made. Equal shapes have equal catalogues.
type shape struct {
	products int
	families string // indices, as digits
	brief    bool
}

// String names the catalogue in tasks and states.
func (s shape) String() string {
	name := fmt.Sprintf("%d.%s", s.products, s.families)
	if s.brief {
		name += ".brief"
	}
	return name
}

// catalogue is a list of products with its index.
type catalogue struct {
	shape    shape
	products []*product
	byID     map[string]*product
	index    *index
}

var (
	catalogues   = map[shape]*catalogue{}
	catalogueing sync.Mutex
)

// catalogueOf returns the catalogue of a shape. It is made once in a process, because many runs and tests share it.
func catalogueOf(s shape) *catalogue {
	catalogueing.Lock()
	defer catalogueing.Unlock()
	c := catalogues[s]
	if c == nil {
		c = s.make()
		catalogues[s] = c
	}
	return c
}

// make generates the products of a catalogue. They depend on the shape alone, never on a run's seed.
func (s shape) make() *catalogue {
	c := &catalogue{shape: s, byID: make(map[string]*product, s.products)}
	for i := range s.products {
		family := int(s.families[i%len(s.families)] - '0')
		rng := seed.Rand("shop product", uint64(family), uint64(i))
		var p *product
		if s.brief {
			p = briefProduct(rng, family, i/len(s.families))
		} else {
			p = fullProduct(rng, family)
		}
		p.number, p.id, p.family, p.brief = i, idOf(i), family, s.brief
		c.products = append(c.products, p)
		c.byID[p.id] = p
	}
	c.index = newIndex(c.products)
	return c
}

// fullProduct makes a product with three to five attributes and one or two options.
func fullProduct(rng *rand.Rand, of int) *product {
	f := families[of]
	p := &product{kind: f.kinds[rng.IntN(len(f.kinds))], brand: pick(rng, firstSyllables) + pick(rng, lastSyllables)}
	if len(f.audiences) > 0 {
		p.audience = pick(rng, f.audiences)
	}
	p.attributes = some(rng, f.attributes, 3+rng.IntN(3))
	p.options = append(p.options, option{f.options[0].name, some(rng, f.options[0].values, 2+rng.IntN(4))})
	if rng.IntN(2) == 0 {
		o := f.options[1]
		values := some(rng, o.values, 2+rng.IntN(len(o.values)-1))
		p.options = append(p.options, option{o.name, inOrder(o.values, values)})
	}
	p.price = f.low + rng.IntN(f.high-f.low+1)
	if rng.IntN(3) > 0 {
		p.rating = 25 + rng.IntN(26)
	}
	return p
}

// briefProduct makes the nth product of a family in a brief catalogue: one attribute, one option with two or three
// values, and a price that is a multiple of ten dollars. The kinds and attributes are paired so that no pair comes
// twice before all have come.
func briefProduct(rng *rand.Rand, of, nth int) *product {
	f := families[of]
	pair := nth * 7919 % (len(f.kinds) * len(f.attributes)) // a prime, so that all pairs come
	values := some(rng, f.options[0].values[:briefValues], 2+rng.IntN(2))
	return &product{kind: f.kinds[pair%len(f.kinds)], attributes: []string{f.attributes[pair/len(f.kinds)]},
		options: []option{{f.options[0].name, values}}, price: 1000 * (1 + rng.IntN(9))}
}

// briefValues is the number of values that the options of brief catalogues choose from.
const briefValues = 8

func pick(rng *rand.Rand, from []string) string { return from[rng.IntN(len(from))] }

// some returns n different elements in random order.
func some(rng *rand.Rand, from []string, n int) []string {
	out := slices.Clone(from)
	rng.Shuffle(len(out), func(i, k int) { out[i], out[k] = out[k], out[i] })
	return out[:min(n, len(out))]
}

// inOrder returns the chosen elements in the order of all.
func inOrder(all, chosen []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(v string) bool { return !slices.Contains(chosen, v) })
}
