package tinker

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// copyFolder fills a folder with the files of another that make its digest, without an optimiser's state. Weights are
// linked where the file system can: nothing writes into them.
func copyFolder(from, to string, take func(name string) bool) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if !checkpoint.Counts(name) || checkpoint.IsOptimizer(name) || !take(name) {
			continue
		}
		a, b := filepath.Join(from, name), filepath.Join(to, name)
		if checkpoint.IsWeights(name) && os.Link(a, b) == nil {
			continue
		}
		if err := checkpoint.CopyFile(a, b); err != nil {
			return err
		}
	}
	return nil
}

func everything(string) bool { return true }

// isBase reports whether a file belongs to the base, and not to an adapter.
func isBase(name string) bool {
	return name != checkpoint.FileAdapter && name != checkpoint.FileAdapterConfig && name != checkpoint.FileReference
}

// shapeOf reads the sizes of the folder's base.
func shapeOf(dir string) (checkpoint.Shape, error) {
	config, err := os.ReadFile(filepath.Join(dir, checkpoint.FileConfig))
	if err != nil {
		return checkpoint.Shape{}, err
	}
	shape, err := checkpoint.ParseConfig(config)
	if err != nil {
		return shape, fmt.Errorf("%s: %w", checkpoint.FileConfig, err)
	}
	head, err := checkpoint.ValueHeadIn(dir)
	if err == nil && head != "" {
		err = bad("a Tinker server has no value heads, and the folder holds a critic")
	}
	return shape, err
}

// emptyFolder makes a folder, or refuses one that holds something.
func emptyFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	held, err := os.ReadDir(dir)
	if err == nil && len(held) > 0 {
		err = fmt.Errorf("folder %s is not empty: it holds %s", dir, held[0].Name())
	}
	return err
}

// params counts the numbers of a base with an adapter.
func params(s checkpoint.Shape, l LoRA) int64 {
	n := s.Params()
	for _, dims := range adapterDims(s, l) {
		n += int64(dims[0]) * int64(dims[1])
	}
	return n
}
