package export

import "github.com/ropewalk/ropewalk/internal/pretrained"

// Published writes a model that belongs to no run, a folder or a GGUF file, as Model writes a checkpoint.
func Published(from, name string, o ModelOptions, path string) error {
	at, err := newOutput(path, o.Form == HuggingFace, o.Force)
	if err != nil {
		return err
	}
	return o.make(at, name, func(files string) error { return pretrained.Take(from, files) })
}
