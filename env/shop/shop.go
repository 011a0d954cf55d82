package shop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/env"
)

// PaperTurns is the limit of turns in ARLArena's WebShop.
const PaperTurns = 15

const (
	// rewardSuccess is what a purchase with score 1 pays.
	rewardSuccess = 10
	// perPage is the number of products on a page of WebShop's results.
	perPage = 10
	// maxAttributes is the number of attributes that a goal has at most.
	maxAttributes = 3
)

// Settings choose the catalogue and the goals. Zero values are the full-size shop.
type Settings struct {
	MaxTurns   int      // limit of turns, from 1
	Products   int      // products of the catalogue; 0 = 10,000
	Families   []string // categories of products; none = all five
	Results    int      // products on a page of results; 0 = 10
	Attributes int      // attributes of a goal; 0 = one to three
	// Brief makes titles of one attribute and the kind, products with one option, and no other texts.
	Brief bool
	// Essential leaves out the buttons that cannot bring the agent nearer to a goal.
	Essential bool
	Marks     bool // a product's page begins with the chosen values
}

// Validate names the setting that makes a task impossible.
func (s Settings) Validate() error {
	check := func(name string, value, low, high int) error {
		if value < low || value > high {
			return fmt.Errorf("check shop settings: %s must be %d to %d, got %d", name, low, high, value)
		}
		return nil
	}
	optional := func(name string, value, low, high int) error {
		if value == 0 {
			return nil
		}
		return check(name, value, low, high)
	}
	err := errors.Join(check("max turns", s.MaxTurns, 1, 10_000), optional("products", s.Products, 20, 200_000),
		optional("results", s.Results, 1, maxResults), optional("attributes", s.Attributes, 1, maxAttributes))
	if s.Brief && s.Attributes > 1 {
		err = errors.Join(err, fmt.Errorf("check shop settings: attributes must be 0 or 1 with brief, got %d",
			s.Attributes))
	}
	for i, name := range s.Families {
		if familyNamed(name) < 0 {
			err = errors.Join(err, fmt.Errorf("check shop settings: families: there is no %q; there are fashion, "+
				"beauty, electronics, furniture and grocery", name))
		}
		if slices.Contains(s.Families[:i], name) {
			err = errors.Join(err, fmt.Errorf("check shop settings: families: %q is there twice", name))
		}
	}
	return err
}

// shape returns the catalogue of the settings.
func (s Settings) shape() shape {
	out := shape{products: s.Products, brief: s.Brief}
	for i, f := range families {
		if len(s.Families) == 0 || slices.Contains(s.Families, f.name) {
			out.families += strconv.Itoa(i)
		}
	}
	return out
}

// Shop is the environment.
type Shop struct {
	settings  Settings
	catalogue *catalogue
}

// New makes the environment.
func New(s Settings) (*Shop, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if s.Products == 0 {
		s.Products = fullSize
	}
	if s.Results == 0 {
		s.Results = perPage
	}
	return &Shop{settings: s, catalogue: catalogueOf(s.shape())}, nil
}

// Name returns "webshop".
func (*Shop) Name() string { return "webshop" }

const instructed = "You shop by searching and clicking. Your task is to: "

// Instruction states the goal.
func (e *Shop) Instruction(task env.Task) (string, error) {
	w, err := e.readTask(task)
	if err != nil {
		return "", err
	}
	return instructed + w.Goal.instruction(e.catalogue.byID[w.Goal.Product]) + ".", nil
}

// Reset begins an episode of a task.
func (e *Shop) Reset(ctx context.Context, task env.Task) (env.State, env.Observation, error) {
	if err := ctx.Err(); err != nil {
		return nil, env.Observation{}, err
	}
	w, err := e.readTask(task)
	if err != nil {
		return nil, env.Observation{}, err
	}
	seen, err := e.observe(w)
	return w.encode(), seen, err
}

func (e *Shop) observe(w *world) (env.Observation, error) {
	v, err := e.view(w)
	if err != nil {
		return env.Observation{}, err
	}
	o := env.Observation{Parts: []env.Part{{Kind: env.PartText, Text: v.text()}}}
	if w.Ended {
		return o, nil
	}
	if w.Page == pageSearch {
		o.Admissible = append(o.Admissible, anyQuery)
	}
	for _, b := range v.buttons {
		o.Admissible = append(o.Admissible, openClick+b.name+closing)
	}
	return o, nil
}

// Step applies an action.
func (e *Shop) Step(ctx context.Context, at env.State, action string) (env.State, env.Transition, error) {
	var t env.Transition
	if err := ctx.Err(); err != nil {
		return nil, t, err
	}
	w, err := e.readState(at)
	if err != nil {
		return nil, t, err
	}
	if w.Ended {
		return nil, t, fmt.Errorf("step a shop task at turn %d: %w", w.Turn, env.ErrEnded)
	}
	if t.Valid, err = e.act(w, action); err != nil {
		return nil, t, err
	}
	w.Turn++
	t.Success = w.Score != nil && *w.Score == 1
	if t.Success {
		t.Reward = rewardSuccess
	}
	w.Ended = w.Ended || w.Turn >= w.Limit
	t.Done = w.Ended
	if t.Observation, err = e.observe(w); err != nil {
		return nil, t, err
	}
	return w.encode(), t, nil
}

// act applies an action to the world. It returns false for an action that the shop does not know or does not accept on
// this page; the page stays.
func (e *Shop) act(w *world, action string) (bool, error) {
	verb, rest, _ := strings.Cut(strings.TrimSpace(action), "[")
	argument, closed := strings.CutSuffix(rest, closing)
	if !closed {
		return false, nil
	}
	switch argument = asQuery(argument); strings.ToLower(verb) + "[" {
	case openSearch:
		if argument == "" {
			return false, nil
		}
		w.find(argument) // WebShop accepts a search on every page
		return true, nil
	case openClick:
		v, err := e.view(w)
		if err != nil {
			return false, err
		}
		i := slices.IndexFunc(v.buttons, func(b button) bool { return b.name == argument })
		if i < 0 {
			return false, nil
		}
		v.buttons[i].press(w)
		return true, nil
	}
	return false, nil
}

// Score returns WebShop's score of the purchase, or 0 before a purchase.
func (e *Shop) Score(at env.State) (*float64, error) {
	w, err := e.readState(at)
	if err != nil {
		return nil, err
	}
	return cmp.Or(w.Score, new(float64)), nil
}

// Situation returns the state without its turn count.
func (e *Shop) Situation(at env.State) (string, error) {
	w, err := e.readState(at)
	if err != nil {
		return "", err
	}
	w.Turn, w.Limit = 0, 1
	return string(w.encode()), nil
}
