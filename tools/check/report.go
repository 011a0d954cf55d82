package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// report prints the output of what failed, the slowest tests and packages and the number of tests. Its error says that
// something failed.
func report(o Options, results []Result, took time.Duration, out io.Writer) error {
	var tests []Test
	var broken []string
	cpu, counts := 0., map[string]int{}
	for _, r := range results {
		cpu += r.CPU
		for _, t := range r.Tests {
			if !strings.Contains(t.Name, "/") {
				counts[t.Action]++
				tests = append(tests, t)
			}
		}
		if r.Err != nil {
			fmt.Fprintf(out, "\n=== %s: %v\n%s", r.ImportPath, r.Err, r.Output)
			broken = append(broken, r.ImportPath)
		}
	}
	slices.SortStableFunc(tests, func(a, b Test) int { return cmp.Compare(b.Seconds, a.Seconds) })
	fmt.Fprintf(out, "\nthe slowest tests:\n")
	for _, t := range tests[:min(o.Slow, len(tests))] {
		fmt.Fprintf(out, "%8.1f s  %s %s\n", t.Seconds, t.Package, t.Name)
	}
	slices.SortStableFunc(results, func(a, b Result) int { return cmp.Compare(b.Seconds, a.Seconds) })
	fmt.Fprintf(out, "the slowest packages (wall time, processors' time):\n")
	for _, r := range results[:min(o.Slow, len(results))] {
		fmt.Fprintf(out, "%8.1f s %8.1f s  %s\n", r.Seconds, r.CPU, r.ImportPath)
	}
	fmt.Fprintf(out, "ran the tests of %d packages in %.0f s, %.0f s of the processors\n", len(results), took.Seconds(),
		cpu)
	failed := 0
	for _, r := range results {
		for _, t := range r.Tests {
			if t.Action == "fail" && !strings.Contains(t.Name, "/") {
				fmt.Fprintf(out, "FAIL %s %s\n", t.Package, t.Name)
				failed++
			}
		}
	}
	if failed == 0 {
		failed = len(broken) // a panic or a time-out ends a package without a failed test
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", counts["pass"], failed, counts["skip"])
	if len(broken) > 0 {
		return fmt.Errorf("failed: %s", strings.Join(broken, ", "))
	}
	return nil
}

// readTimes reads each package's seconds from lines "SECONDS PACKAGE". A file that does not exist has none.
func readTimes(path string) (map[string]float64, error) {
	times := map[string]float64{}
	if path == "" {
		return times, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return times, nil
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	scan := bufio.NewScanner(f)
	for n := 1; scan.Scan(); n++ {
		if strings.HasPrefix(scan.Text(), "#") {
			continue
		}
		var name string
		var seconds float64
		if _, err := fmt.Sscan(scan.Text(), &seconds, &name); err != nil {
			return nil, fmt.Errorf("%s, line %d: not SECONDS PACKAGE: %w", path, n, err)
		}
		times[name] = seconds
	}
	return times, scan.Err()
}

// writeTimes writes the times of these results, and those of packages that did not run this time.
func writeTimes(path string, times map[string]float64, results []Result) error {
	for _, r := range results {
		times[r.ImportPath] = r.Seconds
	}
	var names []string
	for name := range times {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteString("# The seconds that a package's tests took, from which tools/check orders and chooses packages.\n")
	for _, name := range names {
		fmt.Fprintf(&b, "%.0f %s\n", times[name], name)
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}
