package stage

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy/learner"
	"github.com/ropewalk/ropewalk/schema"
)

func TestNoteMemory(t *testing.T) {
	var m schema.Manifest
	NoteMemory(&m, NoteSmaller, nil)
	require.Nil(t, m.Note, "nothing was full")
	NoteMemory(&m, NoteSmaller, &learner.Smaller{From: 4096, To: 2048})
	NoteMemory(&m, NoteCriticSmaller, &learner.Smaller{From: 100, To: 50})
	require.Equal(t, map[string]string{
		"microbatch_tokens":        "2048 after 4096: the engine's memory was full",
		"critic_microbatch_tokens": "50 after 100: the engine's memory was full",
	}, m.Note)
}
