// Command licences checks the licence of every module that is linked into the packages named as arguments.
//
// It reads the licence files of each module's folder, recognises them with google/licensecheck, and fails on a module
// whose licence is missing, unknown or not in the list of allowed ones. Run it in the folder of the module to check:
//
//	licences ./cmd/...
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// allowed are the SPDX names of the licences that may be linked into an Apache-2.0 program without a condition on
// its other source code.
var allowed = []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "HPND", "ISC", "MIT",
	"NCSA", "Unlicense", "Zlib"}

// exceptions are modules whose licence cannot be read from their folder, with the evidence for the licence they are
// under.
var exceptions = map[string]string{
	"github.com/JohnCGriffin/overflow": "MIT; the licence is in its README.md",
	"github.com/apache/arrow/go/v17": "Apache-2.0; the rest of its file repeats the notices of third-party code in " +
		"Arrow's implementations in other languages",
	"github.com/nexus-rpc/nexus-proto-annotations": "part of Nexus RPC, whose other modules are MIT; " +
		"its generated Go package comes with Temporal's API",
}

// minCover is the share of a licence file, in percent, that must be the text of known licences.
const minCover = 75

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

func run(packages []string, out io.Writer) error {
	if len(packages) == 0 {
		return errors.New("name the packages to check, for example ./cmd/...")
	}
	modules, err := linked(packages)
	if err != nil {
		return err
	}
	if len(modules) == 0 {
		return fmt.Errorf("no module is linked into %s", strings.Join(packages, " "))
	}
	var faults []error
	count := map[string]int{}
	for _, m := range modules {
		names, err := licences(m)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		for _, name := range names {
			count[name]++
		}
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	fmt.Fprintf(out, "licences of %d modules are allowed:", len(modules))
	for _, name := range slices.Sorted(keys(count)) {
		fmt.Fprintf(out, " %s %d", name, count[name])
	}
	fmt.Fprintln(out)
	return nil
}

func keys(m map[string]int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// module is a Go module as `go list` describes it.
type module struct {
	Path string
	Dir  string
	Main bool
}

// linked lists the modules of all packages that the named ones depend on, without the main module and the standard
// library, by path.
func linked(packages []string) ([]module, error) {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-json=Module"}, packages...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	listing, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the dependencies of %s: %w: %s", strings.Join(packages, " "), err, &stderr)
	}
	seen := map[string]module{}
	for dec := json.NewDecoder(bytes.NewReader(listing)); ; {
		var p struct{ Module *module }
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read the list of dependencies: %w", err)
		}
		if p.Module != nil && !p.Module.Main {
			seen[p.Module.Path] = *p.Module
		}
	}
	out := make([]module, 0, len(seen))
	for _, m := range seen {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// licences names the licences of a module's folder. A licence that is not allowed, or a file that is no known
// licence's text, is an error that names the module.
func licences(m module) ([]string, error) {
	if _, ok := exceptions[m.Path]; ok {
		return []string{"(by exception)"}, nil
	}
	files, err := licenceFiles(m.Dir)
	if err != nil {
		return nil, fmt.Errorf("module %s: %w", m.Path, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("module %s: %s holds no licence file", m.Path, m.Dir)
	}
	var names []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("module %s: %w", m.Path, err)
		}
		cover := licensecheck.Scan(text)
		if cover.Percent < minCover {
			return nil, fmt.Errorf("module %s: only %.0f%% of %s is the text of a known licence",
				m.Path, cover.Percent, file)
		}
		for _, match := range cover.Match {
			if match.IsURL {
				continue
			}
			if !slices.Contains(allowed, match.ID) {
				return nil, fmt.Errorf("module %s: licence %s of %s is not one of %s",
					m.Path, match.ID, file, strings.Join(allowed, ", "))
			}
			names = append(names, match.ID)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// licenceFiles lists the files of a folder that by their name hold its licence.
func licenceFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the module's folder: %w", err)
	}
	var out []string
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		base := strings.TrimSuffix(strings.TrimSuffix(name, ".MD"), ".TXT")
		if !e.IsDir() && (base == "LICENSE" || base == "LICENCE" || base == "COPYING" ||
			strings.HasPrefix(base, "LICENSE-") || strings.HasPrefix(base, "LICENSE.")) {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out, nil
}
