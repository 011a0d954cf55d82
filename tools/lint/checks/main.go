// Command checks holds every check of Go code that needs types: go vet's, staticcheck's and workflowcheck's.
// The go command runs it:
//
//	go vet -vettool=.tools/checks ./...
//
// It runs the program for each package whose code or dependencies have changed, and keeps what the program found out
// about a package in the build cache. So a package is type-checked once for all checks, and not again until it changes.
// What a dependency's functions do (whether they return, whether they are deterministic) is kept next to its types.
//
// Single checks cannot be chosen: what is kept of a package is the outcome of all checks. A finding ends in the name of
// its check. A comment "//lint:ignore U1000 reason" silences that check; no other check can be silenced.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/unitchecker"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "-flags" { // the go command asks which flags it may pass
		fmt.Println("[]")
		return
	}
	only := false
	if last := os.Args[len(os.Args)-1]; strings.HasSuffix(last, ".cfg") {
		var err error
		if only, err = factsOnly(last); err != nil {
			fmt.Fprintln(os.Stderr, "checks:", err)
			os.Exit(1)
		}
	}
	unitchecker.Main(chosen(only)...) // checks, or prints the version, which is the digest of this program
}

// factsOnly tells whether the package that a configuration file describes is only a dependency of those to check.
func factsOnly(config string) (bool, error) {
	text, err := os.ReadFile(config)
	if err != nil {
		return false, err
	}
	var unit unitchecker.Config
	if err := json.Unmarshal(text, &unit); err != nil {
		return false, fmt.Errorf("read %s: %w", config, err)
	}
	return unit.VetxOnly, nil
}

// chosen returns the checks to run: all, or for a dependency those that find out facts about it. Without the choice
// unitchecker would run on a dependency also what only reads facts, which is most of staticcheck.
func chosen(only bool) []*analysis.Analyzer {
	all := checks()
	if !only {
		return all
	}
	seen := map[*analysis.Analyzer]bool{}
	var out []*analysis.Analyzer
	var visit func([]*analysis.Analyzer)
	visit = func(list []*analysis.Analyzer) {
		for _, a := range list {
			if seen[a] {
				continue
			}
			seen[a] = true
			if len(a.FactTypes) > 0 {
				out = append(out, a)
			}
			visit(a.Requires)
		}
	}
	visit(all)
	return out
}
