package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/internal/badinput"
)

// modelTensors opens the model's own weights: model.safetensors, or the files that the index names.
func (c *Checkpoint) modelTensors(dir string) (*File, error) {
	f, err := c.tensors(dir, FileWeights)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	names, indexErr := indexed(dir)
	if indexErr != nil {
		return nil, indexErr
	}
	if names == nil {
		return nil, err // it names model.safetensors, which is the usual file
	}
	whole := &File{}
	for _, name := range names {
		part, err := c.tensors(dir, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", FileIndex, err)
		}
		for _, t := range part.Tensors {
			if _, twice := whole.Find(t.Name); twice {
				return nil, fmt.Errorf("%w: %s: tensor %q is in another file too", ErrCorrupt, name, t.Name)
			}
		}
		whole.Tensors = append(whole.Tensors, part.Tensors...)
	}
	return whole, nil
}

// indexed returns the files that the folder's index names, or nil if it has no index.
func indexed(dir string) ([]string, error) {
	text, err := readOptional(dir, FileIndex)
	if err != nil || text == nil {
		return nil, err
	}
	var index struct {
		Files map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("%w: parse %s: %w", ErrCorrupt, FileIndex, badinput.JSON(err))
	}
	if len(index.Files) == 0 {
		return nil, fmt.Errorf("%w: %s: weight_map names no file", ErrCorrupt, FileIndex)
	}
	names := slices.Compact(slices.Sorted(maps.Values(index.Files)))
	for _, name := range names {
		if filepath.Base(name) != name || !strings.HasSuffix(name, ".safetensors") {
			return nil, fmt.Errorf("%w: %s: %q is no safetensors file of the folder", ErrCorrupt, FileIndex, name)
		}
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return nil, fmt.Errorf("%s: %w", FileIndex, err)
		}
	}
	return names, nil
}
