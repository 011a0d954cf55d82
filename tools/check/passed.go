package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// An inputs is a digest of the files of a package's folder, and one of these and of all packages of the module that its
// tests import, directly or not.
type inputs struct{ own, all string }

// readPassed reads with which inputs packages have passed, from lines "OWN ALL PACKAGE".
func readPassed(path string) (map[string]inputs, error) {
	passed := map[string]inputs{}
	return passed, readList(path, 3, "OWN ALL PACKAGE", func(words []string) error {
		passed[words[2]] = inputs{words[0], words[1]}
		return nil
	})
}

// writePassed notes the packages that passed.
func writePassed(path string, passed, now map[string]inputs, results []Result) error {
	for _, r := range results {
		if r.Err == nil {
			passed[r.ImportPath] = now[r.ImportPath]
		}
	}
	const comment = "Digests of the files with which a package's tests passed: its own, and all that it imports."
	return writeList(path, comment, passed, func(i inputs) string { return i.own + " " + i.all })
}

// changedSince leaves out the packages that have passed with their present inputs. Those whose own files changed come
// first, and what does not fit into the budget is named and left out, too.
func changedSince(ctx context.Context, o Options, times map[string]float64, from []Package, out io.Writer) (
	[]Package, map[string]inputs, error,
) {
	passed, err := readPassed(o.Passed)
	if err != nil {
		return nil, nil, err
	}
	now, err := digests(ctx)
	if err != nil {
		return nil, nil, err
	}
	var own, other []Package
	for _, p := range from {
		switch then := passed[p.ImportPath]; {
		case then.all == now[p.ImportPath].all && !o.All:
		case then.own == now[p.ImportPath].own:
			p.Why = "what it imports changed"
			other = append(other, p)
		default:
			p.Why = "its files changed"
			own = append(own, p)
		}
	}
	fmt.Fprintf(out, "left out of %[2]d packages, since they passed with the same files: %[1]d\n",
		len(from)-len(own)-len(other), len(from))
	return fit(append(own, other...), o, times, out), now, nil
}

// digests returns the inputs of each package of the module.
func digests(ctx context.Context) (map[string]inputs, error) {
	all, err := list(ctx, "./...")
	if err != nil {
		return nil, err
	}
	byPath, own := map[string]listed{}, map[string]string{}
	for _, l := range all {
		byPath[l.ImportPath] = l
		if own[l.ImportPath], err = digestFolder(l.Dir); err != nil {
			return nil, err
		}
	}
	now := map[string]inputs{}
	for _, l := range all {
		reach, next := map[string]bool{}, slices.Concat([]string{l.ImportPath}, l.TestImports, l.XTestImports)
		for len(next) > 0 {
			p := next[len(next)-1]
			next = next[:len(next)-1]
			if q, ok := byPath[p]; ok && !reach[p] {
				reach[p] = true
				next = append(next, q.Imports...)
			}
		}
		sum := sha256.New()
		for _, q := range all { // in the order of go list
			if reach[q.ImportPath] {
				fmt.Fprintln(sum, q.ImportPath, own[q.ImportPath])
			}
		}
		now[l.ImportPath] = inputs{own[l.ImportPath], short(sum)}
	}
	return now, nil
}

// digestFolder digests the files of a folder and of the folders below it that are no packages of their own.
func digestFolder(dir string) (string, error) {
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != dir && d.Name() != "testdata" && isPackage(path):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		fmt.Fprintf(sum, "%s %x\n", name, sha256.Sum256(text))
		return err
	})
	return short(sum), err
}

// isPackage reports whether a folder has Go files.
func isPackage(dir string) bool {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	return err == nil && len(files) > 0
}

func short(sum hash.Hash) string { return hex.EncodeToString(sum.Sum(nil)[:8]) }
