package pretrained

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/gguf"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
)

// wanted reports whether a model's folder needs a file with that name: the model itself and its tokenizer, and neither
// training state nor what other programs keep next to it.
func wanted(name string) bool {
	return checkpoint.IsModel(name) || name == checkpoint.FileAdapterConfig
}

// Take makes the folder to, which must not exist, of the model at a path: a Hugging Face folder, whose files it links,
// or a GGUF file, which it converts. It checks everything but the numbers.
func Take(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		err = link(from, to)
	} else {
		err = convert(from, to)
	}
	if err == nil {
		err = Check(to)
	}
	if err != nil {
		return takenError{err, to}
	}
	return nil
}

// takenError is an error about a folder that a model was taken into. Its text leaves the folder out: it is temporary,
// and callers name where the model comes from.
type takenError struct {
	error
	folder string
}

// Error implements error.
func (e takenError) Error() string {
	return strings.NewReplacer("read checkpoint "+e.folder+": ", "", e.folder+string(filepath.Separator), "").
		Replace(e.error.Error())
}

// Unwrap returns the error with its whole text.
func (e takenError) Unwrap() error { return e.error }

// Check checks a model's folder: its configuration, the headers of its weights, and its tokenizer.
func Check(folder string) error {
	if adapter, err := checkpoint.HasAdapter(folder); err != nil || adapter {
		return errors.Join(err, fmt.Errorf("%w: %s: an adapter's folder; merge it into its base first",
			checkpoint.ErrUnsupported, checkpoint.FileAdapterConfig))
	}
	c, err := checkpoint.Open(folder, false)
	if err != nil {
		return err
	}
	if err := c.Close(); err != nil {
		return err
	}
	if c.Shape.ValueHead {
		return fmt.Errorf("%w: %s: a critic's folder", checkpoint.ErrUnsupported, checkpoint.FileValueHead)
	}
	_, err = Describe(folder)
	return err
}

// link makes links to the files of a folder that belong to its model.
func link(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	whole, err := filepath.Abs(from)
	if err != nil {
		return err
	}
	var weights bool
	var other string // a file of weights in another format
	for _, e := range entries {
		name := e.Name()
		switch {
		case wanted(name):
			if err := os.Symlink(filepath.Join(whole, name), filepath.Join(to, name)); err != nil {
				return err
			}
			weights = weights || strings.Contains(name, ".safetensors")
		case slices.Contains([]string{".bin", ".gguf", ".pth"}, filepath.Ext(name)):
			other = name
		}
	}
	if !weights && other != "" {
		return fmt.Errorf("%w: %s has no *.safetensors; it has %s, and a GGUF file is named itself",
			checkpoint.ErrUnsupported, from, other)
	}
	return nil
}

// convert writes a GGUF file's model as a folder, with its tokenizer and its chat template.
func convert(from, to string) (err error) {
	f, err := gguf.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	c, err := inFolder(f)
	if err != nil {
		return err
	}
	_, err = checkpoint.Write(to, c)
	return err
}

// inFolder returns a GGUF file's model with the files of its tokenizer and its chat template.
func inFolder(f *gguf.File) (*checkpoint.Checkpoint, error) {
	c, err := f.Checkpoint()
	if err != nil {
		return nil, err
	}
	v, err := tokenizer.GGUFVocabulary(f)
	if err != nil {
		return nil, err
	}
	config := map[string]any{"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": false,
		"model_max_length": c.Shape.Positions}
	for key, entry := range map[string]string{"bos_token": "bos", "eos_token": "eos", "pad_token": "padding",
		"unk_token": "unknown"} {
		if id, ok := f.Whole("tokenizer.ggml." + entry + "_token_id"); ok && id >= 0 && int(id) < len(v.Tokens) {
			config[key] = v.Tokens[id]
		}
	}
	if template, ok := f.Text("tokenizer.chat_template"); ok {
		config["chat_template"] = template
	}
	text, err := json.MarshalIndent(config, "", "  ")
	c.Extra[fileTokenizer], c.Extra[fileTokenizerConfig] = v.JSON(), append(text, '\n')
	return c, err
}

// Describe reads what a run needs of the model at a path besides its weights: of a Hugging Face folder, or of a GGUF
// file.
func Describe(path string) (Model, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Model{}, err
	}
	if info.IsDir() {
		files, err := Files(path)
		if err != nil {
			return Model{}, err
		}
		return Read(files)
	}
	f, err := gguf.Open(path)
	if err != nil {
		return Model{}, err
	}
	defer f.Close()
	c, err := inFolder(f)
	if err != nil {
		return Model{}, err
	}
	return read(c.Shape, c.Extra)
}

// Files reads the small files of a model's folder, by name.
func Files(folder string) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, name := range Small() {
		data, err := os.ReadFile(filepath.Join(folder, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out[name] = data
	}
	return out, nil
}
