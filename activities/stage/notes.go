package stage

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/ropewalk/ropewalk/env/remote"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy/learner"
	"github.com/ropewalk/ropewalk/schema"
)

// Notes of an update that reduced its micro-batches because the engine's memory was full. Its checkpoint differs by
// rounding from that of an engine with more memory.
const (
	NoteSmaller       = "microbatch_tokens"
	NoteCriticSmaller = "critic_microbatch_tokens"
)

// NoteMemory records in a manifest that micro-batches were reduced, if they were.
func NoteMemory(m *schema.Manifest, key string, s *learner.Smaller) {
	if s == nil {
		return
	}
	if m.Note == nil {
		m.Note = map[string]string{}
	}
	m.Note[key] = fmt.Sprintf("%d after %d: the engine's memory was full", s.To, s.From)
}

// NoteCode notes which code the stage has called. Files that were edited since the run was prepared are a warning.
func (w *Draft) NoteCode(ctx context.Context, scope api.Scope, note, files string) error {
	if files == "" {
		return nil
	}
	if w.Manifest.Note == nil {
		w.Manifest.Note = map[string]string{}
	}
	w.Manifest.Note[note] = files
	c, err := w.Worker.Recipes.Config(ctx, scope.Config)
	if err != nil {
		return err
	}
	if w.Edited = strings.Join(remote.Edited(c.Code[note], files), ", "); w.Edited != "" {
		slog.WarnContext(ctx, "Python code was edited since the run began", "note", note, "files", w.Edited)
	}
	return nil
}
