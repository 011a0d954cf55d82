// Package engine embeds the trainer engine's Python files and writes them to a folder for the Python that runs them.
// PROTOCOL.md, in the folder above, says what the engine serves; ropewalk_engine/__init__.py is its glossary.
package engine

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed main.py agent.py ropewalk_engine/*.py
var files embed.FS

// The files that Python runs, below the folder that Extract wrote.
const (
	Main  = "main.py"
	Agent = "agent.py" // torchrun, which starts a host's ranks
)

// Digest names the files: the hexadecimal SHA-256 of "NAME SHA256\n" for each, in the order of names.
func Digest() string {
	total := sha256.New()
	for name, content := range all() {
		fmt.Fprintf(total, "%s %x\n", name, sha256.Sum256(content))
	}
	return hex.EncodeToString(total.Sum(nil))
}

// Extract writes the files below dir, which it makes if needed, and returns the path of main.py. It may be
// repeated: files are replaced one by one, each at once.
func Extract(dir string) (string, error) {
	for name, content := range all() {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := replace(path, content); err != nil {
			return "", fmt.Errorf("extract the engine: %w", err)
		}
	}
	return filepath.Join(dir, Main), nil
}

func replace(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // what is renamed is gone from here
	_, err = f.Write(content)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// all ranges over the files in the order of their names.
func all() func(yield func(name string, content []byte) bool) {
	return func(yield func(string, []byte) bool) {
		_ = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			content, err := files.ReadFile(name)
			if err == nil && !yield(name, content) {
				return fs.SkipAll
			}
			return err
		})
	}
}
