// Command style checks how the tree is written: exported Go identifiers have a comment, lines stay within 120 columns,
// and comments, strings and pages avoid the phrases that phrases.go lists.
//
// Folders that are not rewritten yet are listed with the number of their findings, which may only become smaller:
//
//	style -root ../.. -ratchet style/unwritten.txt
//
// Exempt are, by rule:
//
//   - lines that cannot be broken: struct tags, the inside of raw strings, directives, Markdown's tables and fenced
//     blocks, and lines of one word, such as a link;
//   - what a program writes: Go files with the usual header, and on a page what follows "<!-- Made from … -->", up to
//     "<!-- end of … -->" or the page's end;
//   - files that are data: folders named testdata, hidden folders except .ci, JSON, images, lists of versions, and the
//     report's templates and style sheets;
//   - comments of exported identifiers in tests, which no other package can import;
//   - names of fields in struct tags (json, parquet), which recorded data holds;
//   - this program's own table of phrases, and its tests.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "style:", err)
		os.Exit(1)
	}
}

// finding is one thing to rewrite, at a line of a file that is named relative to the root.
type finding struct {
	path string
	line int
	what string
}

func (f finding) String() string { return fmt.Sprintf("%s:%d: %s", f.path, f.line, f.what) }

func columns(n int) string { return strconv.Itoa(n) + " columns" }

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("style", flag.ContinueOnError)
	root := flags.String("root", ".", "the folder to check")
	list := flags.String("ratchet", "", "the file of folders that are not rewritten yet")
	lower := flags.Bool("lower", false, "write the numbers that have become smaller to the ratchet")
	all := flags.Bool("all", false, "show all findings, of listed folders too; arguments are prefixes of paths")
	if err := flags.Parse(args); err != nil {
		return err
	}
	allowed := ratchet{}
	if *list != "" {
		text, err := os.ReadFile(*list)
		if err != nil {
			return fmt.Errorf("read the ratchet: %w", err)
		}
		if allowed, err = parseRatchet(*list, text); err != nil {
			return err
		}
	}
	findings, err := check(*root)
	if err != nil {
		return err
	}
	if *all {
		return show(findings, flags.Args(), out)
	}
	have, faults := judge(findings, allowed)
	if *lower {
		if err := os.WriteFile(*list, allowed.lowered(have).format(), 0o644); err != nil {
			return fmt.Errorf("write the ratchet: %w", err)
		}
	}
	return errors.Join(faults...)
}

func show(findings []finding, prefixes []string, out io.Writer) error {
	n := 0
	for _, f := range findings {
		named := func(prefix string) bool { return strings.HasPrefix(f.path, prefix) }
		if len(prefixes) == 0 || slices.ContainsFunc(prefixes, named) {
			fmt.Fprintln(out, f)
			n++
		}
	}
	if n > 0 {
		return fmt.Errorf("%d findings", n)
	}
	return nil
}

// judge counts the findings of listed folders, and returns an error for each finding elsewhere and for each folder that
// has more than it may.
func judge(findings []finding, allowed ratchet) (have map[string]int, faults []error) {
	have = map[string]int{}
	for _, f := range findings {
		if folder, ok := allowed.folder(f.path); ok {
			have[folder]++
		} else {
			faults = append(faults, errors.New(f.String()))
		}
	}
	for folder, n := range have {
		if n > allowed[folder] {
			faults = append(faults, fmt.Errorf("%s: %d findings, at most %d are allowed; style -all %s shows them",
				folder, n, allowed[folder], folder))
		}
	}
	return have, faults
}

// check returns the findings of all files below a folder, by path and line.
func check(root string) ([]finding, error) {
	var out []finding
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != root && skipped(d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		found, err := checkFile(path, filepath.ToSlash(name))
		out = append(out, found...)
		return err
	})
	slices.SortStableFunc(out, func(a, b finding) int {
		if c := strings.Compare(a.path, b.path); c != 0 {
			return c
		}
		return a.line - b.line
	})
	return out, err
}

// skipped tells which folders are not read: what is built or downloaded, test data, and hidden ones but the CI's.
func skipped(name string) bool {
	return name == "testdata" || name == "bin" || name == "__pycache__" || strings.HasPrefix(name, ".") && name != ".ci"
}

// plain are the kinds of files that are checked as a whole: their code holds no phrase that is refused.
var plain = []string{".js", ".proto", ".s", ".c", ".toml"}

// checkFile checks the file at a path under the name that findings have. A file of another kind has no findings.
func checkFile(path, name string) ([]finding, error) {
	// The table of phrases and the tests of this program hold the phrases themselves.
	own, ok := strings.CutPrefix(name, "tools/lint/style/")
	if ok && (own == "phrases.go" || strings.HasSuffix(own, "_test.go")) {
		return nil, nil
	}
	base, ext := filepath.Base(name), filepath.Ext(name)
	read := map[string]func(string, []byte) ([]finding, error){
		".go": checkGo,
		".py": func(n string, t []byte) ([]finding, error) { return checkPython(n, string(t)), nil },
		".md": func(n string, t []byte) ([]finding, error) { return checkMarkdown(n, string(t)), nil },
	}[ext]
	if read == nil && (slices.Contains(plain, ext) || base == "README") {
		read = func(n string, t []byte) ([]finding, error) { return checkPlain(n, string(t)), nil }
	}
	if read == nil && (ext == ".yaml" || ext == ".yml" || ext == ".sh" || base == "Makefile" || name == ".ci/run") {
		read = func(n string, t []byte) ([]finding, error) { return checkHashed(n, string(t)), nil }
	}
	if read == nil {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return read(name, text)
}
