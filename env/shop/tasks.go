package shop

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/seed"
)

const (
	// heldOutOf is the number of products of which one is the goal of held-out tasks only.
	heldOutOf = 8
	// maxTries is the number of goals that are generated before a draw gives up.
	maxTries = 400
	// priceStep is the distance of the prices, in dollars, that goals name as bounds.
	priceStep = 10
	// priceSteps is the number of bounds above a price from which a goal chooses.
	priceSteps = 4
	// optionShare is the share of a product's options whose value a goal names.
	optionShare = 0.75
)

// Task generates a task. The products that goals are derived from are other ones in training than in held-out tasks.
// The level of a task is the number of the expert's actions.
func (e *Shop) Task(ctx context.Context, at env.Draw) (env.Task, error) {
	if err := ctx.Err(); err != nil {
		return env.Task{}, err
	}
	switch at.Split {
	case env.Train:
	case env.HeldOut:
		at = env.Draw{Split: env.HeldOut, Index: at.Index} // the same order for all runs
	default:
		return env.Task{}, fmt.Errorf("draw a shop task: there is no split %q", at.Split)
	}
	rng := seed.Rand("shop tasks "+string(at.Split), at.Seed, uint64(at.Step), uint64(at.Index))
	for range maxTries {
		p := e.catalogue.products[rng.IntN(len(e.catalogue.products))]
		if p.kept() != (at.Split == env.HeldOut) {
			continue
		}
		w := e.begin(e.goal(rng, p))
		plan, err := e.plan(w)
		if errors.Is(err, env.ErrUnsolved) {
			continue
		}
		if err != nil {
			return env.Task{}, err
		}
		text := w.encode()
		digest := sha256.Sum256(text)
		return env.Task{ID: hex.EncodeToString(digest[:]), Level: len(plan), Type: families[p.family].name,
			Spec: string(text)}, nil
	}
	return env.Task{}, fmt.Errorf("generate shop task %d of step %d: %d goals were tried, and none can be reached "+
		"within %d turns; more products or turns may help", at.Index, at.Step, maxTries, e.settings.MaxTurns)
}

// begin returns the first state of a task.
func (e *Shop) begin(g goal) *world {
	return &world{Shop: e.catalogue.shape.String(), Goal: g, Page: pageSearch, Limit: e.settings.MaxTurns}
}

// kept reports whether goals derived from the product are kept from training.
func (p *product) kept() bool { return sha256.Sum256([]byte("shop " + p.id))[0]%heldOutOf == 0 }

// goal derives a goal from a product: some of its attributes, values of most of its options, and a bound of its price.
func (e *Shop) goal(rng *rand.Rand, p *product) goal {
	n := e.settings.Attributes
	if n == 0 {
		n = 1 + rng.IntN(maxAttributes)
	}
	g := goal{Product: p.id, Attributes: some(rng, p.attributes, n)}
	for _, o := range p.options {
		if p.brief || rng.Float64() < optionShare {
			g.Options = append(g.Options, chosen{o.name, pick(rng, o.values)})
		}
	}
	g.Price = (p.price/(100*priceStep) + 1 + rng.IntN(priceSteps)) * priceStep
	return g
}
