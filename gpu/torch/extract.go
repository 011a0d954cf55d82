package torch

import (
	"fmt"

	"github.com/ropewalk/ropewalk/gpu/engine"
)

// extract writes the engine's files, unless a test brings its own command.
func extract(o Options, dir string) (main string, err error) {
	if o.command != nil {
		return "", nil
	}
	if main, err = engine.Extract(dir); err != nil {
		return "", fmt.Errorf("write the engine's files: %w", err)
	}
	return main, nil
}
