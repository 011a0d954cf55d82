package enginepool

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/policy/engines"
	"github.com/ropewalk/ropewalk/policy/servers"
	"github.com/ropewalk/ropewalk/policy/tinker"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// Choice is the engine of a run and a description, for people, of what it runs on or why it was chosen. Servers are the
// facts about the inference servers that generate for the run.
type Choice struct {
	Kind, Why string
	Servers   []servers.Facts
	Tinker    *tinker.Facts // of the server that trains; nil for other engines
}

// Choose chooses a recipe's engine on this worker. A recipe that names an unavailable engine, or that needs a
// capability which the engine lacks as a sampler, is a badinput.Error.
func (p *Pool) Choose(ctx context.Context, r *recipes.Recipe) (Choice, error) {
	c, offer, err := p.choose(ctx, r)
	kind := engines.Named(c.Kind)
	switch {
	case err != nil:
		return Choice{}, err
	case kind.Remote:
		if err := p.surveyRemote(ctx, r, &c); err != nil || len(r.Engine.Servers) == 0 {
			return c, err
		}
		c.Servers, err = p.survey(ctx, r)
		return c, err
	case len(r.Engine.Servers) > 0:
		c.Servers, err = p.survey(ctx, r)
		return c, err
	case kind.Shared:
		return c, p.sampler.check(r)
	case p.torch == nil || !kind.Devices: // what leases the engine checks
		return c, nil
	}
	return c, check(offer.Device, offer.Capabilities, r)
}

func (p *Pool) choose(ctx context.Context, r *recipes.Recipe) (Choice, Offer, error) {
	named, other := r.Engine.Declaration(), engines.Usual(false).Name
	if named.Name != engines.Auto && !named.Devices {
		return Choice{Kind: named.Name}, Offer{}, nil
	}
	if p.torch == nil { // another worker runs the models, and refuses what it cannot run
		if named.Devices {
			return Choice{Kind: named.Name, Why: "a worker of the queues gpu and rollout"}, Offer{}, nil
		}
		const why = "auto: the worker that prepared the run runs no models, so that it saw no GPU; name engine.kind"
		return Choice{Kind: other, Why: why}, Offer{}, nil
	}
	offer, err := p.torch.Offer(ctx, r)
	switch {
	case err != nil && named.Devices:
		return Choice{}, Offer{}, badinput.Errorf("engine.kind: %s: %w", named.Name, err)
	case err != nil:
		return Choice{Kind: other, Why: "auto: " + firstLine(err.Error())}, Offer{}, nil
	case named.Devices || offer.GPU:
		return Choice{Kind: engines.Usual(true).Name, Why: offer.Device}, offer, nil
	}
	return Choice{Kind: other, Why: "auto: PyTorch would run on " + offer.Device}, offer, nil
}

// Offer says what a PyTorch engine would run on here. The worker must run PyTorch engines.
func (p *Pool) Offer(ctx context.Context, r *recipes.Recipe) (Offer, error) {
	return p.torch.Offer(ctx, r)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// Note puts the choice into the manifest that prepares a run.
func (c Choice) Note(m *schema.Manifest) {
	m.Note[schema.NoteEngine] = c.Kind
	if c.Why != "" {
		m.Note[schema.NoteEngineWhy] = c.Why
	}
	if len(c.Servers) > 0 {
		m.Note[schema.NoteServers] = factsText(c.Servers)
	}
	if c.Tinker != nil {
		m.Note[schema.NoteTinker] = factsText(c.Tinker)
	}
}

func factsText(facts any) string {
	text, err := json.Marshal(facts)
	if err != nil {
		panic(fmt.Sprintf("enginepool: encode facts: %v", err)) // they consist of texts, numbers and truth values
	}
	return string(text)
}

// Chosen returns a recipe's engine with the choice that a manifest notes.
func Chosen(m schema.Manifest, e recipes.Engine) recipes.Engine {
	if e.Kind == engines.Auto {
		e.Kind = cmp.Or(m.Note[schema.NoteEngine], engines.Usual(false).Name)
	}
	return e
}
