// Package summary has a run's first policy sum up the pages that the tool browse shows, for a question. A Writer makes
// requests of documents, has the model answer them, and reads the answers.
//
// Glossary. The *page* is the document as far as the model reads it. A *request* is a prompt in the model's own chat
// format: the question, the page, and what to do. A *summary* is the model's most likely response, without the token
// that ends it. It follows from the request and the weights alone, so a repeated attempt writes the same bytes.
//
//	question, document ─fit→ request ─Generate (temperature 0)→ tokens ─→ summary
package summary

import (
	"context"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/pretrained"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/tool/tools"
)

// noteSummaries is the note of a stage in which a model summed up pages: the digest of that model's checkpoint.
const noteSummaries = "summary_model"

// Summaries has a run's first policy sum up what the tool browse shows. A nil summaries has no model: browse shows
// documents themselves.
type Summaries struct {
	model    enginepool.Version
	writer   Writer
	Generate Generate
}

// Summarise implements tools.Summariser.
func (s *Summaries) Summarise(ctx context.Context, asked []tools.Asked) ([]tools.Summary, error) {
	return s.writer.Write(ctx, s.Generate, asked)
}

// Summariser returns it as what a host offers to tools.
func (s *Summaries) Summariser() tools.Summariser {
	if s == nil {
		return nil
	}
	return s
}

// Version is the model's, or the zero Version.
func (s *Summaries) Version() enginepool.Version {
	if s == nil {
		return enginepool.Version{}
	}
	return s.model
}

// With has a sampler write the summaries, in which the model is published under RoleReference.
func (s *Summaries) With(sampler policy.Sampler) {
	if s != nil {
		s.Generate = sampler.Generate
	}
}

// For finds the model that sums up pages for a policy, and names it in the draft. It returns nil if the
// recipe asks for no summaries. positions is the longest sequence that the model is to read; 0 = what its checkpoint
// says.
func For(ctx context.Context, w *stage.Draft, of api.PolicyRef, positions int) (*Summaries, error) {
	most := w.Recipe.SummaryTokens()
	if most == 0 {
		return nil, nil
	}
	frozen, err := frozen(ctx, w.Worker.Records, of)
	if err != nil {
		return nil, err
	}
	s := &Summaries{model: stage.Version(frozen)}
	s.model.Positions = positions
	m, err := w.Worker.Record.Read(ctx, frozen.Manifest)
	if err != nil {
		return nil, err
	}
	if m.Checkpoint == nil {
		return nil, refusal.Corruptf("%s commits no checkpoint, which is to sum up pages", frozen.Manifest.Key)
	}
	model, err := w.Worker.Recipes.SmallModel(ctx, *m.Checkpoint)
	if err != nil {
		return nil, badinput.Errorf("environment: summary_tokens: the model of %s cannot sum up "+
			"pages: %v", frozen.Manifest.Key, err)
	}
	if s.writer, err = writerOf(model, most); err != nil {
		return nil, badinput.Errorf("environment: summary_tokens: the model of %s cannot sum up "+
			"pages: %v", frozen.Manifest.Key, err)
	}
	s.writer.Positions = max(s.writer.Positions, positions)
	if frozen.Manifest != of.Manifest {
		w.Manifest.Inputs = append(w.Manifest.Inputs, frozen.Manifest)
	}
	if w.Manifest.Note == nil {
		w.Manifest.Note = map[string]string{}
	}
	w.Manifest.Note[noteSummaries] = frozen.Digest
	return s, nil
}

// frozen finds the model that sums up pages for a policy: the first policy of the run that trained it, which no update
// changes. A policy that no run has trained is its own.
func frozen(ctx context.Context, r record.Records, of api.PolicyRef) (api.PolicyRef, error) {
	place, err := schema.ParseManifestKey(of.Manifest.Key)
	if err != nil || place.Stage != schema.StageUpdate {
		return of, err
	}
	_, first, err := r.PolicyAfter(ctx, place.Run, 0)
	return first, err
}

// writerOf makes what asks a model for summaries of at most the given number of tokens. A model without a chat template
// of its own, such as one that is made here, has that of ChatML.
func writerOf(m *pretrained.Model, most int) (Writer, error) {
	w := Writer{Tokens: m.Tokens, Positions: m.Shape.Positions, Most: most, Role: policy.RoleReference}
	if m.Template != "" {
		var err error
		if w.Chat, err = w.Chat.With(protocol.ChatModel{Template: m.Template, Special: m.Special,
			Added: m.Tokens.Added(), Ends: m.Ends}); err != nil {
			return w, err
		}
	}
	spec := w.Chat.Spec()
	for _, end := range append(append(m.Ends, spec.EndOfTurn), spec.Stops...) {
		if id, ok := m.Tokens.ID(end); ok {
			w.Stops = append(w.Stops, id)
		}
	}
	return w, nil
}
