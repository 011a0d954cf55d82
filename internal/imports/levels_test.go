package imports

import (
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the list of levels in DESIGN.md")

// place is where a package is in the list of levels.
type place struct {
	level int
	Level
}

// places finds each listed package. A package that is listed twice is a fault.
func places(levels []Level) (at map[string]place, faults []string) {
	at = map[string]place{}
	for i, l := range levels {
		for _, p := range l.Packages {
			if first, ok := at[p.Path]; ok {
				faults = append(faults, fmt.Sprintf("%s is in the levels %s and %s", p.Path, first.Name, l.Name))
			}
			at[p.Path] = place{i, l}
		}
	}
	return at, faults
}

// find returns the place of a package: of its own line, or of the line for all packages of its folder.
func find(at map[string]place, room string) (place, bool) {
	if p, ok := at[room]; ok {
		return p, true
	}
	p, ok := at[path.Dir(room)+"/*"]
	return p, ok
}

// levelFaults compares packages and their imports with the list of levels.
func levelFaults(all map[string]pkg, levels []Level, reach map[string][]string) []string {
	at, out := places(levels)
	found := map[string]bool{}
	for _, p := range all {
		if !p.ours() {
			continue
		}
		room := inTree(p.ImportPath)
		found[room] = true
		from, ok := find(at, room)
		if !ok {
			out = append(out, room+" is in no level: add it to internal/imports/levels.go")
			continue
		}
		for _, i := range p.Imports {
			to, ok := find(at, inTree(i))
			if ok && (to.level > from.level || to.level == from.level && !from.Sideways) {
				out = append(out, wrongWay(room, from, inTree(i), to))
			}
		}
		for _, i := range slices.Concat(p.TestImports, p.XTestImports) {
			to, ok := find(at, inTree(i))
			if ok && to.level > from.level && !in(i, room) && !in(i, support) &&
				!slices.Contains(reach[room], inTree(i)) {
				out = append(out, "a test of "+wrongWay(room, from, inTree(i), to))
			}
		}
	}
	for listed := range at {
		if !found[listed] && path.Base(listed) != "*" {
			out = append(out, listed+" is in a level and is no package")
		}
	}
	slices.Sort(out)
	return out
}

func wrongWay(room string, from place, imported string, to place) string {
	if from.level == to.level {
		return fmt.Sprintf("%s imports %s of its own level, %s", room, imported, to.Name)
	}
	return fmt.Sprintf("%s (%s) imports %s of a higher level, %s", room, from.Name, imported, to.Name)
}

// inTree returns a package's folder in the tree, or the path of a package of another module.
func inTree(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}

// Every package is in one level, and imports lower levels only. The go command itself reports an import cycle.
func TestLevels(t *testing.T) {
	all := list(t)
	for _, fault := range levelFaults(all, Levels(), testsReach) {
		t.Error(fault)
	}
	for _, l := range Levels() {
		require.True(t, slices.IsSortedFunc(l.Packages,
			func(a, b Package) int { return strings.Compare(a.Path, b.Path) }),
			"the packages of the level %s are not in order", l.Name)
		require.NotEmpty(t, l.For, l.Name)
		for _, p := range l.Packages {
			require.NotEmpty(t, p.Doc, p.Path)
		}
	}
	for room, reached := range testsReach {
		p := all[module+"/"+room]
		for _, r := range reached {
			require.Contains(t, slices.Concat(p.TestImports, p.XTestImports), module+"/"+r, "no test of %s imports it",
				room)
		}
	}
}

// The levels find the imports that they forbid.
func TestLevelFaultsAreFound(t *testing.T) {
	levels := []Level{
		{Name: "low", Packages: []Package{{Path: "a"}, {Path: "b"}}},
		{Name: "middle", Sideways: true, Packages: []Package{{Path: "c"}, {Path: "d"}}},
		{Name: "high", Packages: []Package{{Path: "c/below"}, {Path: "e"}, {Path: "g/*"}}},
	}
	type imports struct{ code, tests []string }
	for name, c := range map[string]struct {
		change map[string]imports
		want   []string
	}{
		"downwards": {map[string]imports{"e": {code: []string{"a", "d"}}}, nil},
		"upwards": {map[string]imports{"a": {code: []string{"e"}}},
			[]string{"a (low) imports e of a higher level, high"}},
		"sideways": {map[string]imports{"a": {code: []string{"b"}}},
			[]string{"a imports b of its own level, low"}},
		"sideways, permitted": {map[string]imports{"c": {code: []string{"d"}}}, nil},
		"cycle": {map[string]imports{"a": {code: []string{"c"}}, "c": {code: []string{"a"}}},
			[]string{"a (low) imports c of a higher level, middle"}},
		"of a kind": {map[string]imports{"g/new": {code: []string{"e"}}},
			[]string{"g/new imports e of its own level, high"}},
		"test sideways": {map[string]imports{"a": {tests: []string{"b"}}}, nil},
		"test upwards": {map[string]imports{"a": {tests: []string{"e"}}},
			[]string{"a test of a (low) imports e of a higher level, high"}},
		"test below its room":  {map[string]imports{"c": {tests: []string{"c/below"}}}, nil},
		"test upwards, listed": {map[string]imports{"b": {tests: []string{"e"}}}, nil},
		"new package": {map[string]imports{"f": {}},
			[]string{"f is in no level: add it to internal/imports/levels.go"}},
	} {
		t.Run(name, func(t *testing.T) {
			all := map[string]pkg{}
			for _, room := range []string{"a", "b", "c", "c/below", "d", "e", "f", "g/new"} {
				changed, ok := c.change[room]
				if (room == "f" || room == "g/new") && !ok {
					continue
				}
				p := pkg{ImportPath: module + "/" + room, Module: &struct{ Path string }{module}}
				for _, i := range changed.code {
					p.Imports = append(p.Imports, module+"/"+i)
				}
				for _, i := range changed.tests {
					p.XTestImports = append(p.XTestImports, module+"/"+i)
				}
				all[p.ImportPath] = p
			}
			require.Equal(t, c.want, levelFaults(all, levels, map[string][]string{"b": {"e"}}))
		})
	}
	missing := map[string]pkg{}
	require.Contains(t, levelFaults(missing, levels, nil), "a is in a level and is no package")
	_, faults := places(append(levels, Level{Name: "top", Packages: []Package{{Path: "a"}}}))
	require.Equal(t, []string{"a is in the levels low and top"}, faults)
}

// The marks around what DESIGN.md takes from the list.
const (
	begin = "<!-- Made from internal/imports by: go test ./internal/imports -update -->\n"
	end   = "<!-- end of the levels -->\n"
)

// DESIGN.md shows the levels.
func TestDesignListsTheLevels(t *testing.T) {
	file := filepath.Join("..", "..", "DESIGN.md")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok, "DESIGN.md has no mark %q", begin)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok, "DESIGN.md has no mark %q", end)
	want := before + begin + levelTable() + end + after
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
	} else {
		require.Equal(t, want, string(text), "go test ./internal/imports -update brings it up to date")
	}
}

func levelTable() string {
	var b strings.Builder
	b.WriteString("\n| level | what its packages do |\n| --- | --- |\n")
	for i, l := range Levels() {
		fmt.Fprintf(&b, "| %d. %s | %s |\n", i+1, l.Name, l.For)
	}
	return b.String() + "\n"
}
