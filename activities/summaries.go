package activities

import (
	"context"

	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/pretrained"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/summary"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/tool/tools"
)

// noteSummaries is the note of a stage in which a model summed up pages: the digest of that model's checkpoint.
const noteSummaries = "summary_model"

// summaries has a run's first policy sum up what the tool browse shows. A nil summaries has no model: browse shows
// documents themselves.
type summaries struct {
	model    enginepool.Version
	writer   summary.Writer
	generate summary.Generate
}

// Summarise implements tools.Summariser.
func (s *summaries) Summarise(ctx context.Context, asked []tools.Asked) ([]tools.Summary, error) {
	return s.writer.Write(ctx, s.generate, asked)
}

// summariser returns it as what a host offers to tools.
func (s *summaries) summariser() tools.Summariser {
	if s == nil {
		return nil
	}
	return s
}

// version is the model's, or the zero Version.
func (s *summaries) version() enginepool.Version {
	if s == nil {
		return enginepool.Version{}
	}
	return s.model
}

// with has a sampler write the summaries, in which the model is published under RoleReference.
func (s *summaries) with(sampler policy.Sampler) {
	if s != nil {
		s.generate = sampler.Generate
	}
}

// summariesFor finds the model that sums up pages for a policy, and names it in the draft. It returns nil if the
// recipe asks for no summaries. positions is the longest sequence that the model is to read; 0 = what its checkpoint
// says.
func (w *draft) summariesFor(ctx context.Context, recipe *recipes.Recipe, of api.PolicyRef,
	positions int) (*summaries, error) {
	most := recipe.SummaryTokens()
	if most == 0 {
		return nil, nil
	}
	frozen, err := w.deps.frozen(ctx, of)
	if err != nil {
		return nil, err
	}
	s := &summaries{model: version(frozen)}
	s.model.Positions = positions
	m, err := w.deps.Record.Read(ctx, frozen.Manifest)
	if err != nil {
		return nil, err
	}
	if m.Checkpoint == nil {
		return nil, refuse(api.FailCorrupt, "%s commits no checkpoint, which is to sum up pages", frozen.Manifest.Key)
	}
	model, err := w.deps.Recipes.smallModel(ctx, *m.Checkpoint)
	if err != nil {
		return nil, refuse(api.FailBadInput, "environment: summary_tokens: the model of %s cannot sum up pages: %v",
			frozen.Manifest.Key, err)
	}
	if s.writer, err = writerOf(model, most); err != nil {
		return nil, refuse(api.FailBadInput, "environment: summary_tokens: the model of %s cannot sum up pages: %v",
			frozen.Manifest.Key, err)
	}
	s.writer.Positions = max(s.writer.Positions, positions)
	if frozen.Manifest != of.Manifest {
		w.manifest.Inputs = append(w.manifest.Inputs, frozen.Manifest)
	}
	if w.manifest.Note == nil {
		w.manifest.Note = map[string]string{}
	}
	w.manifest.Note[noteSummaries] = frozen.Digest
	return s, nil
}

// frozen finds the model that sums up pages for a policy: the first policy of the run that trained it, which no update
// changes. A policy that no run has trained is its own.
func (r records) frozen(ctx context.Context, of api.PolicyRef) (api.PolicyRef, error) {
	place, err := schema.ParseManifestKey(of.Manifest.Key)
	if err != nil || place.Stage != schema.StageUpdate {
		return of, err
	}
	_, first, err := r.policyAfter(ctx, place.Run, 0)
	return first, err
}

// writerOf makes what asks a model for summaries of so many tokens. A model without a chat template of its own, as
// those that are made here, has that of ChatML.
func writerOf(m *pretrained.Model, most int) (summary.Writer, error) {
	w := summary.Writer{Tokens: m.Tokens, Positions: m.Shape.Positions, Most: most, Role: policy.RoleReference}
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
