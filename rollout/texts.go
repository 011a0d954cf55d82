package rollout

import (
	"context"
	"fmt"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

// Texts returns texts of the world as policies see and write them, for training a tokenizer: n episodes of the expert
// of an interactive environment, each prompt and each response a text; without an expert, or if
// it finds no solution, the first prompts. Of an
// environment of questions, the prompts of n tasks, their answers, and the documents that a search for the question
// finds. Tasks are of the training split. Equal loops and worlds give equal texts; the loop's budgets should be large.
func (l *Loop) Texts(ctx context.Context, world env.Environment, n int) ([]string, error) {
	var out []string
	for i := range n {
		some, err := l.textsOf(ctx, world, i)
		if err != nil {
			return nil, fmt.Errorf("collect texts of %s for a tokenizer: %w", world.Name(), err)
		}
		out = append(out, some...)
	}
	return out, nil
}

func (l *Loop) textsOf(ctx context.Context, world env.Environment, index int) ([]string, error) {
	_, expert := world.(env.Expert)
	if l.settings.Environment != nil && expert {
		d, err := Demonstrator{Loop: l}.playExpert(ctx, seed.Rand("tokenizer's texts", l.runSeed, uint64(index)), index)
		if err != nil {
			return nil, err
		}
		var out []string
		for _, t := range d.Episode.Turns {
			out = append(out, l.tok.Decode(t.Context), t.Text)
		}
		if len(out) > 0 {
			return out, nil
		}
	}
	task, err := world.Task(ctx, env.Draw{Split: env.Train, Seed: seed.Derive("tokenizer's texts", l.runSeed),
		Index: index})
	if err != nil {
		return nil, err
	}
	if l.settings.Environment != nil {
		e, err := l.Begin(ctx, demonstrationIdentity(index), task)
		if err != nil {
			return nil, err
		}
		return []string{l.tok.Decode(e.Context)}, nil
	}
	tools, err := l.toolsOf(task)
	if err != nil {
		return nil, err
	}
	out := []string{l.protocol.Context(protocol.View{Task: task.Text, Tools: tools}), task.Answer}
	found, err := documents(ctx, world, task.Text)
	return append(out, found...), err
}

// documents returns what a search in the world's library finds.
func documents(ctx context.Context, world env.Environment, query string) (out []string, err error) {
	library, ok := world.(env.Library)
	if !ok {
		return nil, nil
	}
	hits, err := library.Search(ctx, query)
	if err != nil {
		return nil, err
	}
	for _, h := range hits {
		d, ok, err := library.Document(ctx, h.Title)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, fmt.Errorf("search names a document %q that is not there", h.Title)
		}
		out = append(out, h.Title+"\n"+h.Snippet, d.Text)
	}
	return out, nil
}
