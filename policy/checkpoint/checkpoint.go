package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Checkpoint is the content of a folder.
type Checkpoint struct {
	Shape      Shape
	Config     []byte            // config.json; if nil, Write makes it from Shape
	Generation []byte            // generation_config.json; if nil, Write makes it from Shape
	Weights    []Tensor          // Shape.Tensors with their numbers, in that order
	Optimizer  *Optimizer        // nil if there is none
	Extra      map[string][]byte // the tokenizer's files by name
	// Merged says that a LoRA adapter's product was added to the weights, so that training cannot continue from them.
	Merged bool

	files []io.Closer // files that still hold tensors
}

// Optimizer is what an optimiser keeps of the weights between its steps.
type Optimizer struct {
	Step   int64
	Names  []string   // of the states (package optimizer)
	States [][]Tensor // [state][weight], ordered like Names and Checkpoint.Weights
}

// Read reads the folder dir. It reads the optimiser's state only if optimizer is set and the folder has one. A LoRA
// adapter is merged into the weights. Read rejects an adapter with optimizer set, because training cannot continue from
// merged weights.
func Read(dir string, optimizer bool) (*Checkpoint, error) {
	c, err := Open(dir, optimizer)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(c.load(), c.Close()); err != nil {
		return nil, fmt.Errorf("read checkpoint %s: %w", dir, err)
	}
	return c, nil
}

// Open is Read for checkpoints that should not be in memory twice. It reads and checks the headers; the tensors'
// numbers stay in their files until Tensor.Read, which also adds an adapter's product to them. The caller closes the
// checkpoint.
func Open(dir string, optimizer bool) (*Checkpoint, error) {
	c := &Checkpoint{Extra: map[string][]byte{}}
	if err := c.read(dir, optimizer); err != nil {
		return nil, fmt.Errorf("read checkpoint %s: %w", dir, errors.Join(err, c.Close()))
	}
	return c, nil
}

// Close closes the files that hold the tensors. Their numbers cannot be read after that. A second call does nothing.
func (c *Checkpoint) Close() (err error) {
	for _, f := range c.files {
		err = errors.Join(err, f.Close())
	}
	c.files = nil
	return err
}

// load takes all numbers into memory.
func (c *Checkpoint) load() error {
	lists := [][]Tensor{c.Weights}
	if c.Optimizer != nil {
		lists = append(lists, c.Optimizer.States...)
	}
	for _, list := range lists {
		for i := range list {
			if err := list[i].load(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Checkpoint) read(dir string, optimizer bool) error {
	var err error
	if c.Config, err = os.ReadFile(filepath.Join(dir, FileConfig)); err != nil {
		return err
	}
	if c.Shape, err = ParseConfig(c.Config); err != nil {
		return err
	}
	if c.Generation, err = readOptional(dir, FileGeneration); err != nil {
		return err
	}
	for _, name := range extraFiles {
		b, err := readOptional(dir, name)
		if err != nil {
			return err
		}
		if b != nil {
			c.Extra[name] = b
		}
	}
	adapter, err := HasAdapter(dir)
	if err != nil {
		return err
	}
	if adapter && optimizer {
		return fmt.Errorf(
			"%w: %s: a LoRA adapter trains in PyTorch alone (engine.kind: torch)", ErrUnsupported, FileAdapterConfig,
		)
	}
	if remote, err := IsRemote(dir); err != nil || remote {
		if err == nil {
			err = fmt.Errorf("%w: %s: the adapter is at a Tinker server, which offers no download "+
				"(engine.kind: tinker)", ErrUnsupported, FileReference)
		}
		return err
	}
	if err := c.readWeights(dir); err != nil {
		return err
	}
	if adapter {
		if err := c.merge(dir); err != nil {
			return err
		}
	}
	if !optimizer {
		return nil
	}
	return c.readOptimizer(dir)
}

func readOptional(dir, name string) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// tensors opens a file of the folder. Closing the checkpoint closes the file.
func (c *Checkpoint) tensors(dir, name string) (*File, error) {
	f, closer, err := openTensors(dir, name)
	if err != nil {
		return nil, err
	}
	c.files = append(c.files, closer)
	return f, nil
}

func (c *Checkpoint) readWeights(dir string) error {
	f, err := c.modelTensors(dir)
	if err != nil {
		return err
	}
	if err := c.takeWeights(f, FileWeights, c.Shape.Tensors()); err != nil {
		return err
	}
	if err := c.checkUnused(f); err != nil {
		return err
	}
	name, err := ValueHeadIn(dir)
	if err != nil || name == "" {
		return err
	}
	head, err := c.tensors(dir, name)
	if err != nil {
		return err
	}
	c.Shape.ValueHead = true
	return c.takeWeights(head, name, c.Shape.valueHead())
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

// checkUnused refuses tensors of layers that the architecture does not have: the model would compute something else
// without them. Frequencies of rotary embedding, which old files hold, follow from config.json.
func (c *Checkpoint) checkUnused(f *File) error {
	used := make(map[string]bool, len(c.Weights))
	for _, t := range c.Weights {
		used[t.Name] = true
	}
	for _, t := range f.Tensors {
		if strings.HasPrefix(t.Name, "model.layers.") && !used[t.Name] && !strings.HasSuffix(t.Name, ".inv_freq") {
			return fmt.Errorf("%s: %w: tensor %q does not belong to a %s model of %d layers, which config.json "+
				"describes", FileWeights, ErrUnsupported, t.Name, c.Shape.Family(), c.Shape.Layers)
		}
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
	name, err := nameIn(dir, FileOptimizer)
	if err != nil || name == "" {
		return err
	}
	f, err := c.tensors(dir, name)
	if err != nil {
		return err
	}
	o := &Optimizer{Names: statesIn(f)}
	if o.Step, err = strconv.ParseInt(f.Metadata["step"], 10, 64); err != nil || o.Step < 0 {
		return fmt.Errorf("%s: %w: metadata step is %q", name, ErrCorrupt, f.Metadata["step"])
	}
	if len(o.Names) == 0 {
		return fmt.Errorf("%s: %w: it holds no state", name, ErrCorrupt)
	}
	byName := index(f)
	for _, state := range o.Names {
		var tensors []Tensor
		for _, want := range c.Shape.Tensors() {
			t, err := take(byName, stateName(state, want.Name), want.Dims)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			tensors = append(tensors, t)
		}
		o.States = append(o.States, tensors)
	}
	c.Optimizer = o
	return nil
}

// stateName is the name of the tensor with a state of a weight.
func stateName(state, weight string) string { return state + "." + weight }

// statesIn lists the states that the tensors of a file belong to, in the file's order.
func statesIn(f *File) (names []string) {
	for _, t := range f.Tensors {
		if state, _, _ := strings.Cut(t.Name, "."); !slices.Contains(names, state) {
			names = append(names, state)
		}
	}
	return names
}
