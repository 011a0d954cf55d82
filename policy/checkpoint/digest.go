package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Files of a checkpoint.
const (
	FileConfig     = "config.json"
	FileGeneration = "generation_config.json"
	FileWeights    = "model.safetensors"
	// Training state has a suffix that other programs do not read as weights: vLLM loads every *.safetensors of a
	// folder, and downloads from the hub match *.safetensors, *.bin and *.pt. Both files have the safetensors format.
	FileOptimizer = "optimizer.state"
	FileValueHead = "value_head.state"
	// Files of a LoRA adapter, as peft names them; model.safetensors is then its base.
	FileAdapterConfig = "adapter_config.json"
	FileAdapter       = "adapter_model.safetensors"
	// FileReference says where a Tinker server has the adapter (package tinker). A folder with it and without an
	// adapter holds the base alone, which is not the model.
	FileReference = "tinker.json"
)

// Large published models have their weights in several files, and the index lists the tensors of each. This package
// writes one file.
const (
	FileIndex  = "model.safetensors.index.json"
	fileShards = "model-*-of-*.safetensors"
)

// extraFiles lists the files of a tokenizer in its usual forms.
var extraFiles = []string{
	"added_tokens.json", "chat_template.jinja", "merges.txt", "special_tokens_map.json",
	"tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json",
}

// Files returns the sorted names of all files that a digest covers if a folder has them.
func Files() []string {
	all := append(
		[]string{
			FileConfig, FileGeneration, FileWeights, FileOptimizer, FileValueHead, FileAdapterConfig,
			FileAdapter, FileReference,
		},
		extraFiles...,
	)
	slices.Sort(all)
	return all
}

// Counts reports whether a digest covers a file with that name.
func Counts(name string) bool { return slices.Contains(Files(), name) || IsWeights(name) }

// IsOptimizer reports whether a file with that name holds the optimiser's state.
func IsOptimizer(name string) bool { return name == FileOptimizer }

// IsModel reports whether a file with that name belongs to the model that other programs load: its configuration,
// weights, adapter (or the name of one at a server) or tokenizer, and neither the optimiser's state nor a value head.
func IsModel(name string) bool {
	return Counts(name) && !IsOptimizer(name) && name != FileValueHead
}

// DropOptimizer deletes the optimiser's state from the folder dir, if there is any.
func DropOptimizer(dir string) error {
	if err := os.Remove(filepath.Join(dir, FileOptimizer)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("drop the optimiser's state: %w", err)
	}
	return nil
}

// ValueHeadIn returns the name of the file that makes the folder dir a critic's folder, or "" if there is none.
func ValueHeadIn(dir string) (string, error) { return nameIn(dir, FileValueHead) }

// nameIn returns the name of a file of the folder dir, or "" if the folder does not have it.
func nameIn(dir, name string) (string, error) {
	_, err := os.Stat(filepath.Join(dir, name))
	switch {
	case err == nil:
		return name, nil
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	}
	return "", err
}

// IsWeights reports whether a file with that name holds the model's own tensors or is the index of several such files.
func IsWeights(name string) bool {
	shard, _ := filepath.Match(fileShards, name)
	return name == FileWeights || name == FileIndex || shard
}

// Digest identifies the content of the folder dir. It is the hexadecimal SHA-256 of one line "NAME SHA256\n" for each
// file of Files that exists, sorted by name. If the weights are in several files, the digest also covers each of them
// and the index. Other files in the folder do not count.
func Digest(dir string) (string, error) {
	shards, err := filepath.Glob(filepath.Join(dir, fileShards))
	if err != nil {
		return "", fmt.Errorf("digest checkpoint %s: %w", dir, err)
	}
	names := append(Files(), FileIndex)
	for _, s := range shards {
		names = append(names, filepath.Base(s))
	}
	slices.Sort(names)
	total := sha256.New()
	found := false
	for _, name := range names {
		sum, err := fileDigest(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("digest checkpoint file %s: %w", name, err)
		}
		found = found || name == FileWeights || name == FileIndex
		fmt.Fprintf(total, "%s %s\n", name, sum)
	}
	if !found {
		return "", fmt.Errorf("digest checkpoint %s: %w: no %s", dir, fs.ErrNotExist, FileWeights)
	}
	return hex.EncodeToString(total.Sum(nil)), nil
}

func fileDigest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
