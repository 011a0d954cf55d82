package shop

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The texts of buttons and pages. WebShop writes them so; actions name buttons in lower case.
const (
	buttonSearch      = "Search"
	buttonBack        = "Back to Search"
	buttonPrevious    = "< Prev"
	buttonNext        = "Next >"
	buttonDescription = "Description"
	buttonFeatures    = "Features"
	buttonReviews     = "Reviews"
	buttonBuy         = "Buy Now"

	separator   = "' [SEP] '"
	total       = " (Total results: "
	clickedText = "You have clicked "
	thanks      = "Thank you for shopping with us!"
	yourScore   = "Your score (min 0.0, max 1.0)"

	openSearch = "search["
	openClick  = "click["
	closing    = "]"
	anyQuery   = openSearch + "<your query>" + closing
)

// view is a page: its texts in order, and its buttons.
type view struct {
	parts   []string
	buttons []button
}

// button is something that can be clicked. press changes the state.
type button struct {
	name  string // in lower case
	press func(w *world)
}

func (v *view) say(parts ...string) { v.parts = append(v.parts, parts...) }

// button adds a button that is also one of the page's texts.
func (v *view) button(label string, press func(w *world)) {
	v.say(label)
	v.buttons = append(v.buttons, button{strings.ToLower(label), press})
}

// text is the page as ARLArena shows it: its texts in quotation marks, separated by [SEP].
func (v *view) text() string { return "'" + strings.Join(v.parts, separator) + "'" }

// view makes the page of a state. The state is not changed.
func (e *Shop) view(w *world) (*view, error) {
	v := &view{}
	switch w.Page {
	case pageSearch:
		if v.button(buttonSearch, func(*world) {}); e.settings.Essential {
			v.buttons = nil // clicking it without a query does nothing
		}
		return v, nil
	case pageEnd:
		v.say(thanks, yourScore, python(*w.Score))
		return v, nil
	}
	v.button(buttonBack, (*world).restart)
	if w.Page == pageResults {
		return v, e.results(w, v)
	}
	v.button(buttonPrevious, (*world).back)
	e.about(w, v)
	return v, nil
}

// results lists one page of the products that were found.
func (e *Shop) results(w *world, v *view) error {
	found, err := e.catalogue.index.search(w.Query)
	if err != nil {
		return err
	}
	v.say("Page " + strconv.Itoa(w.Number) + total + strconv.Itoa(len(found)) + ")")
	if w.Number > 1 {
		v.button(buttonPrevious, func(w *world) { w.Number-- })
	}
	per := e.settings.Results
	if w.Number*per < len(found) {
		v.button(buttonNext, func(w *world) { w.Number++ })
	}
	for _, n := range found[min(len(found), (w.Number-1)*per):min(len(found), w.Number*per)] {
		p := e.catalogue.products[n]
		v.button(p.id, func(w *world) { w.open(p.id) })
		v.say(p.title(), dollar(p.price))
	}
	return nil
}

// about shows a product, or one of the pages about it.
func (e *Shop) about(w *world, v *view) {
	p := e.catalogue.byID[w.Item]
	switch w.Page {
	case pageDescription:
		if text := p.description(); text != "" {
			v.say(text)
		}
	case pageFeatures:
		v.say(p.features()...)
	case pageReviews:
		v.say(p.reviews()...)
	default:
		e.item(w, v, p)
	}
}

// item shows a product. The values of its options are buttons, which come after the others in the list of actions.
func (e *Shop) item(w *world, v *view, p *product) {
	var values []button
	for _, o := range p.options {
		v.say(o.name)
		for _, value := range o.values {
			v.say(value)
			values = append(values, button{value, func(w *world) { w.choose(p, value) }})
		}
	}
	v.say(p.title(), "Price: "+dollar(p.price))
	if !e.settings.Essential {
		rating := "N.A."
		if p.rating > 0 {
			rating = fmt.Sprintf("%d.%d", p.rating/10, p.rating%10)
		}
		v.say("Rating: " + rating)
		v.button(buttonDescription, func(w *world) { w.Page = pageDescription })
		v.button(buttonFeatures, func(w *world) { w.Page = pageFeatures })
		v.button(buttonReviews, func(w *world) { w.Page = pageReviews })
	}
	v.button(buttonBuy, func(w *world) { w.buy(e.catalogue) })
	v.buttons = append(v.buttons, values...)
	if e.settings.Marks && len(w.Options) > 0 {
		var clicked []string
		for _, o := range w.Options {
			clicked = append(clicked, clickedText+o.Value+".")
		}
		v.parts = slices.Concat([]string{strings.Join(clicked, " ")}, v.parts)
	}
}

// dollar writes a price.
func dollar(cents int) string { return fmt.Sprintf("$%d.%02d", cents/100, cents%100) }

// python writes a number as Python does.
func python(x float64) string {
	text := strconv.FormatFloat(x, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}
