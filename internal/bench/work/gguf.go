package work

import (
	"errors"
	"fmt"
	"os"

	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/gguf"
)

// WriteGGUF writes a model in float32 to a file. Its vocabulary has names alone, because only ids are exchanged.
func WriteGGUF(file, name string, c *checkpoint.Checkpoint) error {
	out := gguf.Model{Name: name, Checkpoint: c, Dtype: checkpoint.F32}
	out.Vocabulary.Split, out.Vocabulary.Start = "default", -1
	for id := range c.Shape.Vocab {
		out.Vocabulary.Tokens = append(out.Vocabulary.Tokens, fmt.Sprintf("t%d", id))
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(gguf.Write(f, out), f.Close())
}
