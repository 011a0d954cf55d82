package shop

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
)

// Solve returns actions that reach the goal within the remaining turns, or env.ErrUnsolved.
//
// The expert knows the catalogue: it opens only products whose purchase has score 1. It searches in words of the goal:
// its attributes and kind, then the kind alone, then the title of the product that the goal was derived from. From a
// page it goes on in the way that takes the fewest actions.
func (e *Shop) Solve(_ context.Context, at env.State) ([]string, error) {
	w, err := e.readState(at)
	if err != nil {
		return nil, err
	}
	if w.Ended {
		return nil, fmt.Errorf("solve a shop task at turn %d: %w", w.Turn, env.ErrEnded)
	}
	return e.plan(w)
}

// plan returns the expert's actions from a state.
func (e *Shop) plan(w *world) ([]string, error) {
	best, err := e.onward(w)
	if err != nil {
		return nil, err
	}
	wanted := e.catalogue.byID[w.Goal.Product]
	for _, query := range w.Goal.queries(wanted) {
		if best != nil && len(best) <= 3 { // no search can be shorter
			break
		}
		var start []string
		if w.Page != pageSearch {
			start = []string{click(buttonBack)}
		}
		from := &world{Goal: w.Goal}
		from.find(query)
		rest, err := e.onward(from)
		if err != nil {
			return nil, err
		}
		if rest == nil {
			continue
		}
		way := slices.Concat(start, []string{openSearch + query + closing}, rest)
		if best == nil || len(way) < len(best) {
			best = way
		}
	}
	if left := w.Limit - w.Turn; best == nil || len(best) > left {
		return nil, fmt.Errorf("%w: %d turns are left", env.ErrUnsolved, left)
	}
	return best, nil
}

// queries are the searches that the expert tries.
func (g goal) queries(p *product) []string {
	kind := strings.TrimSpace(p.audience + " " + p.kind.name)
	return []string{asQuery(strings.Join(g.Attributes, " ") + " " + kind), asQuery(kind), asQuery(p.title())}
}

// onward returns actions that reach the goal without another search, or nil.
func (e *Shop) onward(w *world) ([]string, error) {
	if w.Page == pageSearch {
		return nil, nil
	}
	if w.Page == pageResults {
		return e.among(w)
	}
	p := e.catalogue.byID[w.Item]
	values, fits := e.fits(w.Goal, p)
	switch {
	case fits && w.Page == pageItem:
		return purchase(values, w.Options), nil
	case fits:
		return slices.Concat([]string{click(buttonPrevious)}, purchase(values, w.Options)), nil
	}
	back := []string{click(buttonPrevious)}
	if w.Page != pageItem {
		back = append(back, back[0])
	}
	results := *w
	results.Page, results.Item, results.Options = pageResults, "", nil
	rest, err := e.among(&results)
	if rest == nil || err != nil {
		return nil, err
	}
	return slices.Concat(back, rest), nil
}

// among goes through the results to a product that fits.
func (e *Shop) among(w *world) (best []string, err error) {
	found, err := e.catalogue.index.search(w.Query)
	if err != nil {
		return nil, err
	}
	for i, n := range found {
		pages := i/e.settings.Results + 1 - w.Number
		if best != nil && max(pages, -pages)+2 >= len(best) {
			continue
		}
		p := e.catalogue.products[n]
		values, fits := e.fits(w.Goal, p)
		if !fits {
			continue
		}
		turn := click(buttonNext)
		if pages < 0 {
			turn = click(buttonPrevious)
		}
		way := append(slices.Repeat([]string{turn}, max(pages, -pages)), click(p.id))
		if way = append(way, purchase(values, nil)...); best == nil || len(way) < len(best) {
			best = way
		}
	}
	return best, nil
}

// fits reports whether the purchase of a product, with the values that it returns, has score 1.
func (e *Shop) fits(g goal, p *product) (values []chosen, ok bool) {
	if p.price > 100*g.Price {
		return nil, false
	}
	for _, want := range g.Options {
		c, ok := p.closest(want)
		if !ok {
			return nil, false
		}
		values = append(values, c)
	}
	return values, g.score(e.catalogue.byID[g.Product], p, values) == 1
}

// closest returns the product's value that the wanted one means: itself, or another that matches.
func (p *product) closest(want chosen) (chosen, bool) {
	if name, ok := p.option(want.Value); ok {
		return chosen{name, want.Value}, true
	}
	for _, o := range p.options {
		if i := slices.IndexFunc(o.values, func(v string) bool { return sameOption(v, want.Value) }); i >= 0 {
			return chosen{o.name, o.values[i]}, true
		}
	}
	return chosen{}, false
}

// purchase clicks the values that are not chosen yet, and buys.
func purchase(values, already []chosen) (out []string) {
	for _, v := range values {
		if !slices.Contains(already, v) {
			out = append(out, click(v.Value))
		}
	}
	return append(out, click(buttonBuy))
}

func click(button string) string { return openClick + strings.ToLower(button) + closing }
