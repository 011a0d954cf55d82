package main

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// checks are programs in cmd that are not part of the product.
var checks = []string{"cmd/gpu-check"}

type set map[string]bool

// tree is the module's code and how its packages depend on each other. A package is named by its folder.
type tree struct {
	root     fs.FS
	module   string
	files    []*source            // of the module, with tests
	outside  []*source            // of modules below it
	packages map[string][]*source // without tests
	imports  map[string]set       // from files that are not tests
	programs set
	product  set
	bench    set
	levels   map[string]int // the longest path of imports below a package; 1 for one without
	other    tally          // lines in other languages
}

// skipped are folders without code of the project, in addition to hidden ones.
var skipped = []string{"node_modules", "__pycache__", "bin"}

var (
	modulePattern = regexp.MustCompile(`(?m)^module (\S+)`)
	otherPattern  = regexp.MustCompile(`\.(py|js|css|html|sh)$|^recipes.*/[^/]*\.yaml$`)
	// aside is where files in other languages are not part of the product.
	aside = regexp.MustCompile(`(^|/)(testdata|tests?|docs|tools|examples|experiments)(/|$)|/test_|_test\.`)
)

func readTree(folder string) (*tree, error) {
	root := os.DirFS(folder)
	mod, err := fs.ReadFile(root, "go.mod")
	if err != nil {
		return nil, err
	}
	m := modulePattern.FindSubmatch(mod)
	if m == nil {
		return nil, errors.New("go.mod names no module")
	}
	t := &tree{root: root, module: string(m[1]), packages: map[string][]*source{}, imports: map[string]set{},
		programs: set{}, levels: map[string]int{}, other: tally{}}
	if err := t.walk(); err != nil {
		return nil, err
	}
	for folder, files := range t.packages {
		t.imports[folder] = set{}
		for _, f := range files {
			for _, i := range f.imports {
				to, ours := strings.CutPrefix(i, t.module+"/")
				if i == t.module {
					to, ours = ".", true
				}
				if ours && t.packages[to] != nil && to != folder {
					t.imports[folder][to] = true
				}
			}
			if f.name == "main" {
				t.programs[folder] = true
			}
		}
	}
	return t, t.divide()
}

// walk reads every file below the root.
func (t *tree) walk() error {
	var modules []string
	return fs.WalkDir(t.root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && (d.Name()[0] == '.' || slices.Contains(skipped, d.Name())) {
				return fs.SkipDir
			}
			if _, err := fs.Stat(t.root, path.Join(name, "go.mod")); err == nil && name != "." {
				modules = append(modules, name+"/")
			}
			return nil
		}
		code := strings.HasSuffix(name, ".go") && !slices.Contains(strings.Split(name, "/"), "testdata")
		if !code && (!otherPattern.MatchString(name) || aside.MatchString(name)) {
			return nil
		}
		text, err := fs.ReadFile(t.root, name)
		if err != nil {
			return err
		}
		outside := slices.ContainsFunc(modules, func(m string) bool { return strings.HasPrefix(name, m) })
		t.add(name, string(text), code, outside)
		return nil
	})
}

// add reads a file: Go or another language, of the module or of one below it.
func (t *tree) add(name, text string, code, outside bool) {
	if !code {
		for line := range strings.Lines(text) {
			if strings.TrimSpace(line) != "" {
				t.other[name]++
			}
		}
		return
	}
	f := parse(name, text)
	if outside {
		t.outside = append(t.outside, f)
		return
	}
	t.files = append(t.files, f)
	if !f.test {
		t.packages[f.folder] = append(t.packages[f.folder], f)
	}
}

// divide finds what the product's programs reach, and what only the others do.
func (t *tree) divide() error {
	var product, others []string
	for p := range t.programs {
		if path.Dir(p) == "cmd" && !slices.Contains(checks, p) {
			product = append(product, p)
		} else {
			others = append(others, p)
		}
	}
	if len(product) == 0 {
		return errors.New("there is no program directly below cmd: run this in the project's root")
	}
	t.product = reach(product, t.imports)
	t.bench = reach(others, t.imports)
	maps.DeleteFunc(t.bench, func(p string, _ bool) bool { return t.product[p] })
	for p := range t.packages {
		t.level(p)
	}
	return nil
}

func (t *tree) level(p string) int {
	if _, ok := t.levels[p]; !ok {
		t.levels[p] = 1 // ends a cycle, which only a tree that does not build has
		below := 0
		for q := range t.imports[p] {
			below = max(below, t.level(q))
		}
		t.levels[p] = 1 + below
	}
	return t.levels[p]
}

// reach returns all that can be reached from the starts, and them.
func reach(starts []string, edges map[string]set) set {
	seen := set{}
	for todo := starts; len(todo) > 0; {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !seen[at] {
			seen[at] = true
			todo = slices.AppendSeq(todo, maps.Keys(edges[at]))
		}
	}
	return seen
}
