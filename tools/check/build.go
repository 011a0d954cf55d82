package main

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
)

// A Binary is a package's linked tests.
type Binary struct {
	Package
	Path string
}

// build links the tests of the packages into files of folder. Symbols are left out and go vet does not run; -trimpath,
// as in the command's own build, lets both share compiled packages.
func build(ctx context.Context, o Options, packages []Package, folder string) ([]Binary, error) {
	var binaries []Binary
	for n, batch := range batches(packages) {
		into := filepath.Join(folder, fmt.Sprint(n))
		if err := os.Mkdir(into, 0o755); err != nil {
			return nil, err
		}
		args := []string{"test", "-c", "-trimpath", "-vet=off", "-ldflags=-s -w", "-o", into + "/"}
		if o.Race {
			args = append(args, "-race")
		}
		for _, p := range batch {
			args = append(args, p.ImportPath)
			binaries = append(binaries, Binary{Package: p, Path: filepath.Join(into, path.Base(p.ImportPath)+".test")})
		}
		if _, err := output(ctx, "go", args...); err != nil {
			return nil, err
		}
	}
	return binaries, nil
}

// batches parts the packages so that no two of a batch have the same last element of their path, which names the test
// binary.
func batches(packages []Package) (all [][]Package) {
	seen := map[string]int{}
	for _, p := range packages {
		n := seen[path.Base(p.ImportPath)]
		seen[path.Base(p.ImportPath)]++
		if n == len(all) {
			all = append(all, nil)
		}
		all[n] = append(all[n], p)
	}
	return all
}
