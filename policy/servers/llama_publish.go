package servers

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/gguf"
)

// contextRoom is how much longer a written file says that sequences may be than the model's own are: the server stops
// shortly before its context is full.
const contextRoom = 8

// write replaces the model's file in the folder by rename, so that a server never reads half of one. The tokens in it
// have texts of their own (tokenText), not those of the tokenizer: only ids are exchanged, every text consists of whole
// characters, and a stop text belongs to one id alone. They are plain tokens: the server cannot take a stop text apart
// into any, and so keeps the log-probability of the token that it belongs to.
func (d *llama) write(v version) (err error) {
	c := *v.checkpoint
	c.Shape.Positions += contextRoom
	if len(c.Shape.EOS) > 2 { // as many as a file has room for; the others are found by their texts
		c.Shape.EOS = c.Shape.EOS[:2]
	}
	m := gguf.Model{Name: "ropewalk " + v.digest, Checkpoint: &c, Dtype: checkpoint.F32}
	m.Vocabulary.Split, m.Vocabulary.Start = "default", -1
	if d.Dtype == "bfloat16" {
		m.Dtype = checkpoint.BF16
	}
	for id := range c.Shape.Vocab {
		m.Vocabulary.Tokens = append(m.Vocabulary.Tokens, tokenText(id))
	}
	d.vocab, d.tokens = c.Shape.Vocab, nil
	d.texts = func(id int32) string { return tokenText(int(id)) }
	f, err := os.CreateTemp(d.Folder, ".part-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err := errors.Join(gguf.Write(f, m), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(d.Folder, d.Model+".gguf"))
}
