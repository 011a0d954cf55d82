package planning

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ropewalk/ropewalk/gpu/plan"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/gguf"
	"github.com/ropewalk/ropewalk/recipes"
)

// ModelHere returns the sizes of the model that a recipe makes or starts from, as far as this machine knows them
// without asking any other, and where they are from. The model is nil if it does not know them; source then says why.
// models is the folder of the models that recipes name without a path, or "".
func ModelHere(r *recipes.Recipe, models string) (model *plan.Model, source string, err error) {
	address := r.Policy.Checkpoint
	if address == "" || r.Policy.Pinned != nil {
		m, err := ModelOf(r)
		if err != nil {
			return nil, "", err
		}
		return &m, "the recipe's", nil
	}
	shape, source, err := shapeAt(address, models)
	if source == "" || err != nil {
		return nil, source, err
	}
	if shape.Vocab == 0 {
		return nil, source, nil
	}
	m := plan.Of(shape)
	return &m, source, nil
}

// shapeAt finds the shape of a checkpoint. A shape without a vocabulary is not known.
func shapeAt(address, models string) (shape checkpoint.Shape, source string, err error) {
	path := address
	switch {
	case strings.HasPrefix(address, "hf://"):
		if shape, ok := plan.Published(address); ok {
			return shape, "as published; the model's own configuration counts once it is fetched", nil
		}
		return shape, fmt.Sprintf("%s is fetched when the run is prepared, and this program does not know its sizes",
			address), nil
	case strings.Contains(address, "://"), strings.HasPrefix(address, "run:"):
		return shape, address + " is read when the run is prepared", nil
	case !filepath.IsAbs(address):
		if models == "" {
			return named(address, "there is no folder of models here (ROPEWALK_MODELS, or .tools/models)")
		}
		path = filepath.Join(models, address)
	}
	shape, err = shapeOf(path)
	if errors.Is(err, fs.ErrNotExist) {
		return named(address, path+" is not on this machine")
	}
	return shape, path, err
}

// named falls back on the name of a published model. Models that were trained further often keep it.
func named(address, why string) (checkpoint.Shape, string, error) {
	base := address
	for base != "" {
		if shape, ok := plan.Published(base); ok {
			return shape, fmt.Sprintf("those of %s by its name, for %s", base, why), nil
		}
		base = base[:max(0, strings.LastIndex(base, "-"))]
	}
	return checkpoint.Shape{}, why, nil
}

// shapeOf reads the shape of a folder or of a GGUF file, and none of its weights.
func shapeOf(path string) (checkpoint.Shape, error) {
	info, err := os.Stat(path)
	if err != nil {
		return checkpoint.Shape{}, err
	}
	if info.IsDir() {
		config, err := os.ReadFile(filepath.Join(path, checkpoint.FileConfig))
		if err != nil {
			return checkpoint.Shape{}, err
		}
		return checkpoint.ParseConfig(config)
	}
	f, err := gguf.Open(path)
	if err != nil {
		return checkpoint.Shape{}, err
	}
	defer f.Close()
	return f.Shape()
}

// ModelOf returns the sizes of the model that a recipe makes or starts from.
func ModelOf(r *recipes.Recipe) (plan.Model, error) {
	if shape, known, err := r.Policy.Shape(); known || err != nil {
		return plan.Of(shape), err
	}
	tokens, err := TokenizerOf(r)
	if err != nil {
		return plan.Model{}, err
	}
	shape, err := NewShape(r.Policy, tokens)
	if err != nil {
		return plan.Model{}, err
	}
	if r.Tokenizer != nil { // it is trained later, and has at most so many tokens
		shape.Vocab = r.Tokenizer.Vocabulary
	}
	return plan.Of(shape), nil
}
