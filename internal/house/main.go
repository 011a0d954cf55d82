// Command house measures the tree and compares each figure with its ceiling in ceilings.txt. Its test fails when a
// figure is above. It reads files and asks no go command, so that it also measures a tree that does not build. It finds
// packages by their imports and not by their names, so that a move hides nothing.
//
// Glossary. A *line* holds something other than blanks and comments; lines of files and functions all count. The
// *product* is what the programs in cmd reach, by imports of files that are not tests; *bench* is what only other
// programs reach; *support* is what none reaches. Generated files count nowhere. A *room* is a top-level folder, or one
// directly below internal; a room is higher than another if the median of its packages' levels is. A *tangle* is a set
// of rooms in which each reaches each other. The *reach* of a type is its methods, those of types that it embeds, and
// functions of its package that take it first. The *main path* is what one more step of a run executes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

// run prints the table, or what the measures count that args name.
func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("house", flag.ContinueOnError)
	down := flags.Bool("lower", false, "lower ceilings to today's figures; none is raised")
	path := flags.String("path", "", "what tools/main-path.sh has measured")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ms, err := measureTree(".", *path)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(ceilingsFile)
	if err != nil {
		return err
	}
	cs, err := parseCeilings(string(text))
	if err != nil {
		return err
	}
	if *down {
		if err := os.WriteFile(ceilingsFile, []byte(lower(string(text), cs, ms)), 0o644); err != nil {
			return err
		}
	}
	for _, name := range flags.Args() {
		i := slices.IndexFunc(ms, func(m measure) bool { return m.name == name })
		if i < 0 {
			return fmt.Errorf("there is no measure %q", name)
		}
		fmt.Fprint(out, list(ms[i].from))
	}
	if flags.NArg() == 0 {
		table(out, ms, cs)
	}
	return errors.Join(faults(ms, cs)...)
}

func measureTree(root, path string) ([]measure, error) {
	t, err := readTree(root)
	if err != nil {
		return nil, err
	}
	ms, err := t.measures()
	if err != nil {
		return nil, err
	}
	main, err := t.mainPath(path)
	return append(ms, main...), err
}

func table(out io.Writer, ms []measure, cs []ceiling) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "today\tceiling\taim\t  measure")
	for _, m := range ms {
		most, aim := -1, -1
		if c := find(cs, m.name); c != nil {
			most, aim = c.most, c.aim
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t  %s\n", figure(m.figure), figure(most), figure(aim), m.name)
	}
	w.Flush()
}

// figure writes a number; -1 is none.
func figure(n int) string {
	if n < 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func list(parts []part) string {
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "%10d  %s\n", p.n, p.what)
	}
	return b.String()
}
