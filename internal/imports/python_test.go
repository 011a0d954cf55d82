package imports

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
)

// pythonPackage is a package of Python modules. Each module is on one level and imports only modules of lower levels,
// so there is no import cycle. An import counts wherever it is: in a function, in a condition, or for type checkers
// alone.
type pythonPackage struct {
	name   string
	folder string     // from the repository's root
	levels [][]string // the lowest first; __init__ is the package itself
}

var pythonPackages = []pythonPackage{
	{
		name: "ropewalk_engine", folder: "gpu/engine/ropewalk_engine",
		levels: [][]string{
			{"__init__", "attention", "draws", "errors", "head", "kept", "norms", "products", "tensorfile"},
			{"base", "frames", "graphs", "lora", "packs", "progress", "sampling", "weights"},
			{"folder", "optimizers", "scorer", "settings"},
			{"memory", "messages", "ranks"},
			{"build", "handed", "lifeline"},
			{"resident"},
			{"cache", "passes"},
			{"decode"},
			{"generate"},
			{"engine"},
			{"server"},
			{"start"},
			{"cli"},
		},
	},
	{
		name: "ropewalk", folder: "python/ropewalk",
		levels: [][]string{
			{"errors", "place", "tables"},
			{"bucket", "manifest", "table"},
			{"location", "reader", "status"},
			{"checkpoint", "rows", "visible"},
			{"catalogue", "run"},
			{"__init__", "metrics"},
			{"trackers"},
		},
	},
}

// pythonImport is an import statement, as the script below prints it.
type pythonImport struct {
	File   string   `json:"file"` // without .py
	Line   int      `json:"line"`
	Dots   int      `json:"dots"`   // of a relative import
	Module string   `json:"module"` // "" in `from . import a`
	Names  []string `json:"names"`  // nil in `import a`
}

// importsScript prints the import statements of the modules in a folder, at whatever depth.
const importsScript = `
import ast, json, os, sys

found, files = [], sorted(n for n in os.listdir(sys.argv[1]) if n.endswith(".py"))
for name in files:
    with open(os.path.join(sys.argv[1], name), encoding="utf-8") as f:
        tree = ast.parse(f.read(), name)
    for node in ast.walk(tree):
        at = {"file": name[:-3], "line": getattr(node, "lineno", 0)}
        if isinstance(node, ast.Import):
            found += [{**at, "dots": 0, "module": a.name, "names": None} for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [a.name for a in node.names]
            found.append({**at, "dots": node.level, "module": node.module or "", "names": names})
json.dump({"modules": [n[:-3] for n in files], "imports": found}, sys.stdout)
`

// pythonModules are the modules of a folder, and their imports.
type pythonModules struct {
	Modules []string       `json:"modules"`
	Imports []pythonImport `json:"imports"`
}

func readPython(t *testing.T, folder string) (out pythonModules) {
	t.Helper()
	cmd := exec.Command(pythontest.Need(t, "PYTHON"), "-I", "-c", importsScript, folder)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	text, err := cmd.Output()
	require.NoError(t, err, complaints.String())
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}

// edge is an import of one module of a package by another.
type edge struct {
	from, to string
	line     int
}

// edges are the imports within a package.
func (m pythonModules) edges(name string) (out []edge) {
	for _, i := range m.Imports {
		for _, to := range m.targets(name, i) {
			out = append(out, edge{i.File, to, i.Line})
		}
	}
	return out
}

// targets are the package's modules that a statement imports.
func (m pythonModules) targets(name string, i pythonImport) []string {
	path := i.Module // within the package
	switch {
	case i.Dots == 1:
	case i.Dots == 0 && (path == name || strings.HasPrefix(path, name+".")):
		path = strings.TrimPrefix(strings.TrimPrefix(path, name), ".")
	default:
		return nil // of another package
	}
	if path != "" {
		return []string{strings.Split(path, ".")[0]}
	}
	if i.Names == nil {
		return []string{"__init__"}
	}
	var out []string
	for _, n := range i.Names {
		if !slices.Contains(m.Modules, n) {
			n = "__init__" // which defines the name
		}
		out = append(out, n)
	}
	return out
}

// faults compares a package's modules and imports with its levels.
func (p pythonPackage) faults(m pythonModules) (out []string) {
	level := map[string]int{}
	for i, names := range p.levels {
		for _, n := range names {
			if _, twice := level[n]; twice {
				out = append(out, fmt.Sprintf("%s.%s is on two levels", p.name, n))
			}
			level[n] = i
			if !slices.Contains(m.Modules, n) {
				out = append(out, fmt.Sprintf("the levels of %s list %s, which is not there", p.name, n))
			}
		}
	}
	for _, n := range m.Modules {
		if _, listed := level[n]; !listed {
			out = append(out, fmt.Sprintf("%s.%s is on no level: list it in internal/imports/python_test.go", p.name,
				n))
		}
	}
	all := m.edges(p.name)
	for _, e := range all {
		if level[e.to] >= level[e.from] {
			out = append(out, fmt.Sprintf("%s/%s.py:%d: %s is on level %d and imports %s of level %d; want a lower one",
				p.folder, e.from, e.line, e.from, level[e.from], e.to, level[e.to]))
		}
	}
	if ring := cycle(all); ring != nil {
		out = append(out, fmt.Sprintf("%s has an import cycle: %s", p.name, strings.Join(ring, " → ")))
	}
	return out
}

// cycle returns modules that import each other in a ring, the first one again at the end, or nil. Modules are searched
// in the order of their names.
func cycle(all []edge) []string {
	next := map[string][]string{}
	for _, e := range all {
		next[e.from] = append(next[e.from], e.to)
	}
	done := map[string]bool{}
	var path []string
	var visit func(string) []string
	visit = func(at string) []string {
		if i := slices.Index(path, at); i >= 0 {
			return append(slices.Clone(path[i:]), at)
		}
		if done[at] {
			return nil
		}
		path = append(path, at)
		for _, to := range next[at] {
			if ring := visit(to); ring != nil {
				return ring
			}
		}
		path = path[:len(path)-1]
		done[at] = true
		return nil
	}
	for _, from := range slices.Sorted(maps.Keys(next)) {
		if ring := visit(from); ring != nil {
			return ring
		}
	}
	return nil
}

func TestPythonModulesImportLowerLevels(t *testing.T) {
	for _, p := range pythonPackages {
		t.Run(p.name, func(t *testing.T) {
			m := readPython(t, filepath.Join("..", "..", p.folder))
			require.NotEmpty(t, m.edges(p.name))
			for _, fault := range p.faults(m) {
				t.Error(fault)
			}
		})
	}
}

// The rules find what they forbid, wherever an import is.
func TestPythonFaultsAreFound(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"__init__": "VERSION = 1",
		"low":      "import os\nfrom . import VERSION",
		"middle":   "from .low import a\ndef f():\n    from . import high",
		"high":     "import pack.middle\nif TYPE_CHECKING:\n    from pack import low, VERSION",
		"extra":    "from packs.low import a",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name+".py"), []byte(text), 0o600))
	}
	m := readPython(t, folder)
	require.ElementsMatch(t, []edge{
		{"low", "__init__", 2}, {"middle", "low", 1}, {"middle", "high", 3}, {"high", "middle", 1}, {"high", "low", 3},
		{"high", "__init__", 3},
	}, m.edges("pack"))
	p := pythonPackage{"pack", "folder", [][]string{{"__init__"}, {"low", "gone"}, {"middle", "low"}, {"high"}}}
	require.ElementsMatch(t, []string{
		"pack.low is on two levels",
		"the levels of pack list gone, which is not there",
		"pack.extra is on no level: list it in internal/imports/python_test.go",
		"folder/middle.py:1: middle is on level 2 and imports low of level 2; want a lower one",
		"folder/middle.py:3: middle is on level 2 and imports high of level 3; want a lower one",
		"pack has an import cycle: high → middle → high",
	}, p.faults(m))
	require.Nil(t, cycle([]edge{{"a", "b", 1}, {"a", "c", 1}, {"b", "c", 1}}))
}
