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

// Files that make a checkpoint.
const (
	FileConfig     = "config.json"
	FileGeneration = "generation_config.json"
	FileWeights    = "model.safetensors"
	FileOptimizer  = "optimizer.safetensors"
	FileValueHead  = "value_head.safetensors"
	// A LoRA adapter's, as peft names them; model.safetensors is then the base that it stands beside.
	FileAdapterConfig = "adapter_config.json"
	FileAdapter       = "adapter_model.safetensors"
)

// Large models of others come with their weights in several files, which the index lists by tensor. We write one.
const (
	FileIndex  = "model.safetensors.index.json"
	fileShards = "model-*-of-*.safetensors"
)

// extraFiles are the tokenizer's, in any of its usual forms.
var extraFiles = []string{
	"added_tokens.json", "chat_template.jinja", "merges.txt", "special_tokens_map.json",
	"tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json",
}

// Files returns the sorted names of all files that a digest covers, where a folder has them.
func Files() []string {
	all := append([]string{FileConfig, FileGeneration, FileWeights, FileOptimizer, FileValueHead, FileAdapterConfig, FileAdapter}, extraFiles...)
	slices.Sort(all)
	return all
}

// Counts reports whether a digest covers a file of that name.
func Counts(name string) bool { return slices.Contains(Files(), name) || IsWeights(name) }

// IsWeights reports whether a file of that name holds the model's own tensors, or says in which of several they are.
func IsWeights(name string) bool {
	shard, _ := filepath.Match(fileShards, name)
	return name == FileWeights || name == FileIndex || shard
}

// Digest names the content of the folder dir: the hexadecimal SHA-256 of one line "NAME SHA256\n" per
// file of Files that is there, sorted by name; where the weights are in several files, of the index and each of
// them too. Other files in the folder do not count.
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
