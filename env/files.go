package env

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// File is one file that holds tasks.
type File struct {
	Path string // the path that messages name
	Text []byte
}

// ReadFiles reads the files that a setting names, in the order of their names: one file, or all files of a folder whose
// names end in the suffix. It returns them with their digest, the SHA-256 of a line for each file with its name and the
// SHA-256 of its bytes. The digest does not depend on the folder's path.
//
// The path must be absolute, because the program that reads the recipe and the workers that run it have different
// working folders.
func ReadFiles(path, suffix string) (files []File, digest string, err error) {
	if !filepath.IsAbs(path) {
		return nil, "", fmt.Errorf("must be an absolute path, because workers read it too, got %s", path)
	}
	paths, err := filesAt(path, suffix)
	if err != nil {
		return nil, "", err
	}
	all := sha256.New()
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			return nil, "", err
		}
		fmt.Fprintf(all, "%s %x\n", filepath.Base(p), sha256.Sum256(text))
		files = append(files, File{Path: p, Text: text})
	}
	return files, hex.EncodeToString(all.Sum(nil)), nil
}

// filesAt lists the files at a path, sorted by name. Folders below a folder and hidden files are not read.
func filesAt(path, suffix string) ([]string, error) {
	at, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if at.Mode().IsRegular() {
		return []string{path}, nil
	}
	if !at.IsDir() {
		return nil, fmt.Errorf("%s is neither a file nor a folder", path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), suffix) && !strings.HasPrefix(e.Name(), ".") {
			paths = append(paths, filepath.Join(path, e.Name()))
		}
	}
	if len(paths) == 0 {
		return nil, errors.New("the folder " + path + " holds no file *" + suffix)
	}
	return paths, nil
}
