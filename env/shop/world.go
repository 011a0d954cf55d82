package shop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/env"
)

// The pages of the shop.
const (
	pageSearch      = "search"
	pageResults     = "results"
	pageItem        = "item"
	pageDescription = "description"
	pageFeatures    = "features"
	pageReviews     = "reviews"
	pageEnd         = "end"
)

// world is the state of an episode. Its JSON is the encoding of states and, before the first turn, of tasks.
type world struct {
	Shop    string   `json:"shop"` // name of the catalogue
	Goal    goal     `json:"goal"`
	Page    string   `json:"page"`
	Query   string   `json:"query,omitempty"`   // what was searched for, behind every page but search
	Number  int      `json:"number,omitempty"`  // page of the results, from 1
	Item    string   `json:"item,omitempty"`    // id of the product that is shown or was bought
	Options []chosen `json:"options,omitempty"` // its chosen values, in the order of its options
	Turn    int      `json:"turn"`
	Limit   int      `json:"limit"`
	Ended   bool     `json:"ended,omitempty"`
	Score   *float64 `json:"score,omitempty"` // of the purchase
}

// encode returns the canonical JSON of a world.
func (w *world) encode() []byte {
	text, err := json.Marshal(w)
	if err != nil {
		panic(fmt.Sprintf("shop: encode a state: %v", err)) // its types always encode
	}
	return text
}

// decode reads a world of the catalogue. It refuses every text that encode does not write.
func (c *catalogue) decode(text []byte) (*world, error) {
	w := &world{}
	if err := json.Unmarshal(text, w); err != nil {
		return nil, err
	}
	if !bytes.Equal(w.encode(), text) {
		return nil, errors.New("it is not in the form that this program writes")
	}
	if w.Shop != c.shape.String() {
		return nil, fmt.Errorf("it is of the catalogue %q, and the catalogue is %s", w.Shop, c.shape)
	}
	if _, err := w.Goal.check(c); err != nil {
		return nil, fmt.Errorf("its goal has faulty %w", err)
	}
	if err := w.check(c); err != nil {
		return nil, err
	}
	return w, nil
}

// check refuses a state that no episode reaches.
func (w *world) check(c *catalogue) error {
	item := c.byID[w.Item]
	switch w.Page {
	case pageSearch:
		if w.Query != "" || w.Number != 0 || w.Item != "" {
			return errors.New("the page search has a query or a product")
		}
	case pageResults:
		if w.Number < 1 || w.Number > maxResults || w.Item != "" {
			return fmt.Errorf("there is no page %d of results", w.Number)
		}
	case pageItem, pageDescription, pageFeatures, pageReviews, pageEnd:
		if item == nil || w.Number < 1 || w.Number > maxResults {
			return fmt.Errorf("page %s shows product %q", w.Page, w.Item)
		}
	default:
		return fmt.Errorf("there is no page %q", w.Page)
	}
	for _, o := range w.Options {
		if item == nil {
			return errors.New("a value is chosen without a product")
		}
		if name, ok := item.option(o.Value); !ok || name != o.Name {
			return fmt.Errorf("product %s has no %s %q", w.Item, o.Name, o.Value)
		}
	}
	if w.Limit < 1 || w.Turn < 0 || w.Turn > w.Limit {
		return fmt.Errorf("turn %d of %d", w.Turn, w.Limit)
	}
	if bought := w.Page == pageEnd; bought != (w.Score != nil) || bought && !w.Ended || len(w.Query) > maxQuery {
		return fmt.Errorf("page %s does not go with its end, its score or its query", w.Page)
	}
	return nil
}

// readTask reads a task.
func (e *Shop) readTask(task env.Task) (*world, error) {
	w, err := e.catalogue.decode([]byte(task.Spec))
	if err == nil && (w.Turn != 0 || w.Ended || w.Page != pageSearch) {
		err = errors.New("it has begun")
	}
	if err != nil {
		return nil, fmt.Errorf("read shop task %s: %w", task.ID, err)
	}
	return w, nil
}

func (e *Shop) readState(at env.State) (*world, error) {
	w, err := e.catalogue.decode(at)
	if err != nil {
		return nil, fmt.Errorf("read a shop state: %w", err)
	}
	return w, nil
}

// choose sets the value of the shown product's option.
func (w *world) choose(p *product, value string) {
	name, _ := p.option(value)
	options := slices.DeleteFunc(slices.Clone(w.Options), func(o chosen) bool { return o.Name == name })
	options = append(options, chosen{name, value})
	slices.SortFunc(options, func(a, b chosen) int { return p.place(a.Name) - p.place(b.Name) })
	w.Options = options
}

// place is the number of the product's option with that name.
func (p *product) place(name string) int {
	return slices.IndexFunc(p.options, func(o option) bool { return o.name == name })
}

// buy ends the episode with the purchase of the shown product.
func (w *world) buy(c *catalogue) {
	score := w.Goal.score(c.byID[w.Goal.Product], c.byID[w.Item], w.Options)
	w.Page, w.Ended, w.Score = pageEnd, true, &score
}

// open shows a product, on which nothing is chosen yet.
func (w *world) open(id string) { w.Page, w.Item, w.Options = pageItem, id, nil }

// find shows the first page of the results of a search.
func (w *world) find(query string) {
	w.Page, w.Query, w.Number, w.Item, w.Options = pageResults, query, 1, "", nil
}

// restart shows the page search.
func (w *world) restart() { w.Page, w.Query, w.Number, w.Item, w.Options = pageSearch, "", 0, "", nil }

// back goes from a product to the results, and from a page about a product to the product.
func (w *world) back() {
	if w.Page == pageItem {
		w.Page, w.Item, w.Options = pageResults, "", nil
		return
	}
	w.Page = pageItem
}
