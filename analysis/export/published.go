package export

import (
	"path/filepath"

	"github.com/ropewalk/ropewalk/internal/pretrained"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// Published writes a model that belongs to no run, a folder or a GGUF file, as Model writes a checkpoint.
func Published(from, name string, o ModelOptions, path string) error {
	at, err := newPlace(path, o.Form == HuggingFace, o.Force)
	if err != nil {
		return err
	}
	return at.write(func(part string) (whole string, err error) {
		files := filepath.Join(part, "checkpoint")
		if err := pretrained.Take(from, files); err != nil {
			return "", err
		}
		adapter, err := checkpoint.HasAdapter(files)
		if err != nil {
			return "", err
		}
		return o.write(files, part, name, adapter)
	})
}
