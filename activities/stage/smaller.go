package stage

import (
	"fmt"

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
