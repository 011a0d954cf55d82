package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// asProgram is the variable that makes the test binary the program itself, so that a change of it is tested again.
const asProgram = "CHECKS_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestFindings runs the program as make lint does, over a module whose comments say which check reports which line.
func TestFindings(t *testing.T) {
	dir := t.TempDir()
	want := writeModule(t, dir)
	vet := func(packages string) (string, error) {
		cmd := exec.Command("go", "vet", "-vettool="+os.Args[0], packages)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), asProgram+"=1")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}

	if out, err := vet("./lib"); err != nil || out != "" {
		t.Errorf("a package without findings: %v\n%s", err, out)
	}
	for range 2 { // a package with findings has them again
		out, err := vet("./...")
		if err == nil {
			t.Error("the command succeeds in spite of findings")
		}
		var got []string
		for _, m := range finding.FindAllStringSubmatch(out, -1) {
			got = append(got, fmt.Sprintf("%s:%s %s", filepath.ToSlash(filepath.Clean(m[1])), m[2], m[3]))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s\nfrom\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"), out)
		}
	}
}

// finding is one in the output: its file, its line and, at its end, the check's name. Lines that explain a finding
// begin with a tab after their position.
var finding = regexp.MustCompile(`(?m)^([^\s:]+\.go):(\d+):\d+: \S(?s:.*?) \((\w+)\)$`)

// writeModule writes the test's module into a folder and returns the findings that its comments name, sorted.
func writeModule(t *testing.T, dir string) []string {
	t.Helper()
	module, err := txtar.ParseFile("testdata/module.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, f := range module.Files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(f.Data), "\n") {
			if _, names, ok := strings.Cut(line, "// want "); ok {
				for _, name := range strings.Fields(names) {
					want = append(want, fmt.Sprintf("%s:%d %s", f.Name, i+1, name))
				}
			}
		}
	}
	if len(want) == 0 {
		t.Fatal("the module names no finding")
	}
	slices.Sort(want)
	return want
}
