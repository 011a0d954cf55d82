package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
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

// readTimes reads each package's seconds from lines "SECONDS PACKAGE".
func readTimes(path string) (map[string]float64, error) {
	times := map[string]float64{}
	return times, readList(path, 2, "SECONDS PACKAGE", func(words []string) (err error) {
		times[words[1]], err = strconv.ParseFloat(words[0], 64)
		return err
	})
}

// readList calls each for the words of every line of a file, except comments. A file that does not exist, or has no
// name, holds nothing.
func readList(path string, words int, form string, each func([]string) error) error {
	text, err := os.ReadFile(path)
	if path == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if strings.HasPrefix(line, "#") {
			continue
		}
		found := strings.Fields(line)
		if len(found) != words {
			return fmt.Errorf("%s, line %d: not %s", path, n, form)
		}
		if err := each(found); err != nil {
			return fmt.Errorf("%s, line %d: not %s: %w", path, n, form, err)
		}
	}
	return nil
}

// writeList writes a line for each package, in order, below a comment.
func writeList[V any](path, comment string, all map[string]V, line func(V) string) error {
	var b strings.Builder
	b.WriteString("# " + comment + "\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintln(&b, line(all[name]), name)
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

// writeTimes writes the times of these results, and keeps the times of packages that did not run this time.
func writeTimes(path string, times map[string]float64, results []Result) error {
	for _, r := range results {
		times[r.ImportPath] = r.Seconds
	}
	const comment = "The seconds that a package's tests took, from which tools/check orders and chooses packages."
	return writeList(path, comment, times, func(seconds float64) string { return fmt.Sprintf("%.0f", seconds) })
}
