package checkpoint

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Write writes c to the folder dir and returns the folder's Digest. It creates the folder if needed and returns an
// error if the folder is not empty. Equal checkpoints give equal bytes.
func Write(dir string, c *Checkpoint) (string, error) {
	if err := write(dir, c, F32); err != nil {
		return "", fmt.Errorf("write checkpoint %s: %w", dir, err)
	}
	return Digest(dir)
}

// WriteModel writes the model alone, without training state, a value head and an adapter, with its weights as dtype.
// Each tensor is written as it is read. The folder is as with Write.
func WriteModel(dir string, c *Checkpoint, dtype Dtype) error {
	model := *c
	model.Optimizer = nil
	if model.Shape.ValueHead {
		model.Weights = c.Weights[:len(c.Weights)-len(c.Shape.valueHead())]
		model.Shape.ValueHead = false
	}
	if err := write(dir, &model, dtype); err != nil {
		return fmt.Errorf("write model %s: %w", dir, err)
	}
	return nil
}

func write(dir string, c *Checkpoint, dtype Dtype) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if held, err := os.ReadDir(dir); err != nil {
		return err
	} else if len(held) > 0 {
		return fmt.Errorf("folder is not empty: %w: %s", fs.ErrExist, held[0].Name())
	}
	files := map[string][]byte{FileConfig: c.Config, FileGeneration: c.Generation}
	config := c.Config
	if config == nil {
		config = marshalConfig(c.Shape)
	}
	var err error
	if files[FileConfig], err = withDtype(config, dtype); err != nil {
		return err
	}
	if c.Generation == nil {
		files[FileGeneration] = marshalGeneration(c.Shape)
	}
	for name, b := range c.Extra {
		if !slices.Contains(extraFiles, name) {
			return fmt.Errorf("extra file %q is none of the tokenizer's", name)
		}
		files[name] = b
	}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			return err
		}
	}
	return c.writeTensors(dir, dtype)
}

func (c *Checkpoint) writeTensors(dir string, dtype Dtype) error {
	weights, value := c.Weights, []Tensor(nil)
	if c.Shape.ValueHead {
		cut := len(weights) - len(c.Shape.valueHead())
		weights, value = weights[:cut], weights[cut:]
	}
	// transformers rejects a safetensors file whose metadata names no framework.
	if err := writeFile(dir, FileWeights, weights, map[string]string{"format": "pt"}, dtype); err != nil {
		return err
	}
	if value != nil {
		if err := writeFile(dir, FileValueHead, value, nil, F32); err != nil {
			return err
		}
	}
	if c.Optimizer == nil {
		return nil
	}
	var state []Tensor
	for i, t := range c.Weights {
		for k, name := range c.Optimizer.Names {
			of := c.Optimizer.States[k][i]
			of.Name, of.Dims = stateName(name, t.Name), t.Dims
			state = append(state, of)
		}
	}
	step := map[string]string{"step": strconv.FormatInt(c.Optimizer.Step, 10)}
	return writeFile(dir, FileOptimizer, state, step, F32)
}

func writeFile(dir, name string, tensors []Tensor, metadata map[string]string, dtype Dtype) (err error) {
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 1<<18)
	if err := encodeAs(w, tensors, metadata, dtype); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return w.Flush()
}
