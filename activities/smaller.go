package activities

import (
	"fmt"

	"github.com/ropewalk/ropewalk/policy/learner"
	"github.com/ropewalk/ropewalk/schema"
)

// Notes of an update whose micro-batches became smaller because the engine's memory was full: its checkpoint differs by
// rounding from one that an engine with more memory makes.
const (
	noteSmaller       = "microbatch_tokens"
	noteCriticSmaller = "critic_microbatch_tokens"
)

// noteMemory says in a manifest that micro-batches became smaller, where they did.
func noteMemory(m *schema.Manifest, key string, s *learner.Smaller) {
	if s == nil {
		return
	}
	if m.Note == nil {
		m.Note = map[string]string{}
	}
	m.Note[key] = fmt.Sprintf("%d after %d: the engine's memory was full", s.To, s.From)
}
