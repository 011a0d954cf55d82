package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A Package is one with tests.
type Package struct {
	ImportPath, Dir string
	Why             string // with -since: how the change reaches it
	Distance        int    // with -since: imports between the change and the package
}

// listed is what go list says of a package.
type listed struct {
	ImportPath, Dir, ForTest, Name     string
	Imports, TestImports, XTestImports []string
	TestGoFiles, XTestGoFiles          []string
}

func (l listed) tested() bool { return len(l.TestGoFiles)+len(l.XTestGoFiles) > 0 }

// list returns the packages that match.
func list(ctx context.Context, patterns ...string) (all []listed, err error) {
	const fields = "-json=ImportPath,Dir,Name,Imports,TestImports,XTestImports,TestGoFiles,XTestGoFiles"
	out, err := output(ctx, "go", append([]string{"list", fields}, patterns...)...)
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the answer of go list: %w", err)
		}
		all = append(all, l)
	}
}

// choose returns the packages to test.
func choose(ctx context.Context, o Options, times map[string]float64, out io.Writer) ([]Package, error) {
	matching, err := list(ctx, o.Patterns...)
	if err != nil {
		return nil, err
	}
	except := map[string]bool{}
	if o.Except != "" {
		left, err := list(ctx, o.Except)
		if err != nil {
			return nil, err
		}
		for _, l := range left {
			except[l.ImportPath] = true
		}
	}
	var packages []Package
	for _, l := range matching {
		if l.tested() && !except[l.ImportPath] {
			packages = append(packages, Package{ImportPath: l.ImportPath, Dir: l.Dir})
		}
	}
	if o.Since != "" {
		return reached(ctx, o, times, packages, out)
	}
	return packages, nil
}

// reached keeps the packages that the changes since a commit reach, the nearest first.
func reached(ctx context.Context, o Options, times map[string]float64, from []Package,
	out io.Writer) ([]Package, error) {
	files, err := changed(ctx, o.Since)
	if err != nil {
		return nil, err
	}
	all, err := list(ctx, "./...")
	if err != nil {
		return nil, err
	}
	root, err := output(ctx, "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	why, distance := spread(all, strings.TrimSpace(string(root)), files)
	var packages []Package
	for _, p := range from {
		if reason, ok := why[p.ImportPath]; ok {
			p.Why, p.Distance = reason, distance[p.ImportPath]
			packages = append(packages, p)
		}
	}
	slices.SortStableFunc(packages, func(a, b Package) int { return a.Distance - b.Distance })
	fmt.Fprintf(out, "%d files changed since %s; they reach %d packages with tests\n", len(files), o.Since,
		len(packages))
	return fit(packages, o, times, out), nil
}

// fit returns the packages, in order, whose times fit into the budget, and names these and the others. A package
// without a time counts as a second.
func fit(packages []Package, o Options, times map[string]float64, out io.Writer) (kept []Package) {
	sum, left := 0., []string{}
	for _, p := range packages {
		seconds, ok := times[p.ImportPath]
		if !ok {
			seconds = 1
		}
		if o.Budget > 0 && sum+seconds > o.Budget.Seconds() {
			left = append(left, p.ImportPath)
			continue
		}
		sum += seconds
		kept = append(kept, p)
		fmt.Fprintf(out, "  %s: %s\n", p.ImportPath, p.Why)
	}
	if len(left) > 0 {
		fmt.Fprintf(out, "left out, since they do not fit into %v: %s\n", o.Budget, strings.Join(left, " "))
	}
	return kept
}

// changed returns the paths, from the repository's root, that differ from a commit, new files included.
func changed(ctx context.Context, since string) ([]string, error) {
	differ, err := output(ctx, "git", "diff", "--name-only", "--no-renames", since, "--")
	if err != nil {
		return nil, err
	}
	untracked, err := output(ctx, "git", "ls-files", "--others", "--exclude-standard", "--full-name", ":/")
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(differ) + string(untracked)), nil
}

// spread tells for each package that the changed files reach why it does, and over how many imports. A file belongs to
// the package of its folder or, like testdata, to the nearest folder above that is a package; a file above all packages
// other than go.mod belongs to none. go.mod and go.sum reach all.
func spread(all []listed, root string, files []string) (why map[string]string, distance map[string]int) {
	why, distance = map[string]string{}, map[string]int{}
	byDir, importers := map[string]string{}, map[string][]string{}
	testedWith := map[string][]string{}
	for _, l := range all {
		byDir[l.Dir] = l.ImportPath
		for _, i := range l.Imports {
			importers[i] = append(importers[i], l.ImportPath)
		}
		for _, i := range append(slices.Clone(l.TestImports), l.XTestImports...) {
			testedWith[i] = append(testedWith[i], l.ImportPath)
		}
	}
	reach := func(p, reason string, far int) {
		if _, ok := why[p]; !ok {
			why[p], distance[p] = reason, far
		}
	}
	passedOn := map[string]bool{} // a change of a package's tests alone is not passed on to its importers
	var next []string
	for _, file := range files {
		if file == "go.mod" || file == "go.sum" {
			for _, l := range all {
				reach(l.ImportPath, file+" changed", 0)
			}
		}
		for dir := filepath.Dir(file); dir != "."; dir = filepath.Dir(dir) {
			p, ok := byDir[filepath.Join(root, dir)]
			if !ok {
				continue
			}
			reach(p, file+" changed", 0)
			if !strings.HasSuffix(file, "_test.go") && !strings.Contains(file, "/testdata/") && !passedOn[p] {
				passedOn[p] = true
				next = append(next, p)
			}
			break
		}
	}
	for far := 1; len(next) > 0; far++ {
		var after []string
		for _, p := range next {
			for _, q := range importers[p] {
				reach(q, "imports "+p, far)
				if !passedOn[q] {
					passedOn[q] = true
					after = append(after, q)
				}
			}
			for _, q := range testedWith[p] {
				reach(q, "its tests import "+p, far)
			}
		}
		next = after
	}
	return why, distance
}

// output runs a command and returns what it prints; an error holds what it says on standard error.
func output(ctx context.Context, name string, args ...string) ([]byte, error) {
	var errs bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, errs.Bytes())
	}
	return out, nil
}
