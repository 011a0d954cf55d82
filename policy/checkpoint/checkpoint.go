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

// Checkpoint is the content of a folder.
type Checkpoint struct {
	Shape      Shape
	Config     []byte            // config.json; nil lets Write make one from Shape
	Generation []byte            // generation_config.json; nil likewise
	Weights    []Tensor          // Shape.Tensors with data, in that order
	Optimizer  *Optimizer        // nil where there is none
	Extra      map[string][]byte // the tokenizer's files by name
	// Merged says that a LoRA adapter's product was added to the weights: they are no base to train on from here.
	Merged bool
}

// Optimizer is AdamW's state, each list ordered like Checkpoint.Weights.
type Optimizer struct {
	Step   int64
	First  [][]float32 // running means of the gradient
	Second [][]float32 // running means of its square
}

const (
	prefixFirst  = "exp_avg."
	prefixSecond = "exp_avg_sq."
)

// Read reads the folder dir; the optimiser's state only if asked for and there. A LoRA adapter is merged into the weights; with
// its optimiser's state it is refused, since it cannot go on from there.
func Read(dir string, optimizer bool) (*Checkpoint, error) {
	c, err := read(dir, optimizer)
	if err != nil {
		return nil, fmt.Errorf("read checkpoint %s: %w", dir, err)
	}
	return c, nil
}

func read(dir string, optimizer bool) (*Checkpoint, error) {
	c := &Checkpoint{Extra: map[string][]byte{}}
	var err error
	if c.Config, err = os.ReadFile(filepath.Join(dir, FileConfig)); err != nil {
		return nil, err
	}
	if c.Shape, err = parseConfig(c.Config); err != nil {
		return nil, err
	}
	if c.Generation, err = readOptional(dir, FileGeneration); err != nil {
		return nil, err
	}
	for _, name := range extraFiles {
		b, err := readOptional(dir, name)
		if err != nil {
			return nil, err
		}
		if b != nil {
			c.Extra[name] = b
		}
	}
	adapter, err := HasAdapter(dir)
	if err != nil {
		return nil, err
	}
	if adapter && optimizer {
		return nil, fmt.Errorf("%w: %s: a LoRA adapter trains in PyTorch alone (engine.kind: torch)", ErrUnsupported, FileAdapterConfig)
	}
	if err := c.readWeights(dir); err != nil {
		return nil, err
	}
	if adapter {
		if err := c.merge(dir); err != nil {
			return nil, err
		}
	}
	if !optimizer {
		return c, nil
	}
	return c, c.readOptimizer(dir)
}

func readOptional(dir, name string) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

func readTensors(dir, name string) (*File, error) {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	f, err := DecodeSafetensors(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

func (c *Checkpoint) readWeights(dir string) error {
	f, err := readTensors(dir, FileWeights)
	if err != nil {
		return err
	}
	if err := c.takeWeights(f, FileWeights, c.Shape.Tensors()); err != nil {
		return err
	}
	head, err := readTensors(dir, FileValueHead)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	c.Shape.ValueHead = true
	return c.takeWeights(head, FileValueHead, c.Shape.valueHead())
}

// takeWeights appends the wanted tensors of a file.
func (c *Checkpoint) takeWeights(f *File, name string, wanted []Tensor) error {
	byName := index(f)
	for _, want := range wanted {
		t, err := take(byName, want.Name, want.Dims)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		c.Weights = append(c.Weights, t)
	}
	return nil
}

func index(f *File) map[string]Tensor {
	m := make(map[string]Tensor, len(f.Tensors))
	for _, t := range f.Tensors {
		m[t.Name] = t
	}
	return m
}

func take(m map[string]Tensor, name string, dims []int) (Tensor, error) {
	t, ok := m[name]
	if !ok {
		return t, fmt.Errorf("%w: tensor %q is missing", ErrCorrupt, name)
	}
	if !slices.Equal(t.Dims, dims) {
		return t, fmt.Errorf("%w: tensor %q is %v, config.json wants %v", ErrCorrupt, name, t.Dims, dims)
	}
	return t, nil
}

func (c *Checkpoint) readOptimizer(dir string) error {
	f, err := readTensors(dir, FileOptimizer)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	o := &Optimizer{}
	if o.Step, err = strconv.ParseInt(f.Metadata["step"], 10, 64); err != nil || o.Step < 0 {
		return fmt.Errorf("%s: %w: metadata step is %q", FileOptimizer, ErrCorrupt, f.Metadata["step"])
	}
	byName := index(f)
	for _, want := range c.Shape.Tensors() {
		first, err := take(byName, prefixFirst+want.Name, want.Dims)
		if err != nil {
			return fmt.Errorf("%s: %w", FileOptimizer, err)
		}
		second, err := take(byName, prefixSecond+want.Name, want.Dims)
		if err != nil {
			return fmt.Errorf("%s: %w", FileOptimizer, err)
		}
		o.First, o.Second = append(o.First, first.Data), append(o.Second, second.Data)
	}
	c.Optimizer = o
	return nil
}

// Write writes c to the folder dir, which it makes if needed and refuses if it holds anything, and
// returns the folder's Digest. Equal checkpoints give equal bytes.
func Write(dir string, c *Checkpoint) (string, error) {
	if err := write(dir, c); err != nil {
		return "", fmt.Errorf("write checkpoint %s: %w", dir, err)
	}
	return Digest(dir)
}

func write(dir string, c *Checkpoint) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if held, err := os.ReadDir(dir); err != nil {
		return err
	} else if len(held) > 0 {
		return fmt.Errorf("folder is not empty: %w: %s", fs.ErrExist, held[0].Name())
	}
	files := map[string][]byte{FileConfig: c.Config, FileGeneration: c.Generation}
	if c.Config == nil {
		files[FileConfig] = marshalConfig(c.Shape)
	} else {
		b, err := asFloat32(c.Config)
		if err != nil {
			return err
		}
		files[FileConfig] = b
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
	return c.writeTensors(dir)
}

func (c *Checkpoint) writeTensors(dir string) error {
	weights, value := c.Weights, []Tensor(nil)
	if c.Shape.ValueHead {
		cut := len(weights) - len(c.Shape.valueHead())
		weights, value = weights[:cut], weights[cut:]
	}
	// transformers refuses a safetensors file whose metadata does not name a framework.
	if err := writeFile(dir, FileWeights, weights, map[string]string{"format": "pt"}); err != nil {
		return err
	}
	if value != nil {
		if err := writeFile(dir, FileValueHead, value, nil); err != nil {
			return err
		}
	}
	if c.Optimizer == nil {
		return nil
	}
	var state []Tensor
	for i, t := range c.Weights {
		state = append(state,
			Tensor{Name: prefixFirst + t.Name, Dims: t.Dims, Data: c.Optimizer.First[i]},
			Tensor{Name: prefixSecond + t.Name, Dims: t.Dims, Data: c.Optimizer.Second[i]})
	}
	return writeFile(dir, FileOptimizer, state, map[string]string{"step": strconv.FormatInt(c.Optimizer.Step, 10)})
}

func writeFile(dir, name string, tensors []Tensor, metadata map[string]string) (err error) {
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 1<<18)
	if err := EncodeSafetensors(w, tensors, metadata); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return w.Flush()
}
