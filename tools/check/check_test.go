package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tree writes a module with Git's history of one commit into a folder and enters it.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{"go.mod": "module m\n\ngo 1.26\n"})
	write(t, dir, files)
	t.Chdir(dir)
	for _, args := range [][]string{{"init", "-q"}, {"add", "."},
		{"-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "-m", "first"}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return dir
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644))
		if err != nil {
			t.Fatal(err)
		}
	}
}

const passing = "package %\n\nimport \"testing\"\n\nfunc TestPasses(t *testing.T) {}\n"

func source(name, body string) string { return "package " + name + "\n\n" + body }

func test(name string) string { return strings.ReplaceAll(passing, "%", name) }

// layers is a module in which c imports b, which imports a, d's tests import a, and e is apart.
func layers() map[string]string {
	return map[string]string{
		"a/a.go": source("a", "const A = 1\n"), "a/a_test.go": test("a"), "a/testdata/file": "1",
		"b/b.go": source("b", "import \"m/a\"\n\nconst B = a.A\n"), "b/b_test.go": test("b"),
		"c/c.go": source("c", "import \"m/b\"\n\nconst C = b.B\n"), "c/c_test.go": test("c"),
		"d/d.go": source("d", ""), "d/d_test.go": test("d") + "\nvar _ = a.A\n",
		"e/e.go": source("e", ""), "x/e/e_test.go": test("e"), "e/e_test.go": test("e"),
	}
}

func check(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(context.Background(), args, &out)
	return out.String(), err
}

func TestOnlyWhatAChangeReachesIsTested(t *testing.T) {
	files := layers()
	files["d/d_test.go"] = strings.Replace(files["d/d_test.go"], "import \"testing\"",
		"import (\n\t\"testing\"\n\n\t\"m/a\"\n)", 1)
	for _, c := range []struct {
		name    string
		changes map[string]string
		want    []string // in this order
	}{
		{"nothing", nil, nil},
		{"a leaf", map[string]string{"c/c.go": source("c", "const C = 2\n")}, []string{"m/c: c/c.go changed"}},
		{"what others import", map[string]string{"a/a.go": source("a", "const A = 2\n")}, []string{
			"m/a: a/a.go changed", "m/b: imports m/a", "m/d: its tests import m/a", "m/c: imports m/b"}},
		{"a test alone", map[string]string{"a/a_test.go": test("a") + "\n"}, []string{"m/a: a/a_test.go changed"}},
		{"test data", map[string]string{"a/testdata/file": "2"}, []string{"m/a: a/testdata/file changed"}},
		{"a new file", map[string]string{"b/new.go": source("b", "const D = 1\n")}, []string{
			"m/b: b/new.go changed", "m/c: imports m/b"}},
		{"no package's", map[string]string{"README.md": "text"}, nil},
		{"the module", map[string]string{"go.mod": "module m\n\ngo 1.26\n\n// c\n"}, []string{
			"m/a: go.mod changed", "m/b: go.mod changed", "m/c: go.mod changed", "m/d: go.mod changed",
			"m/e: go.mod changed", "m/x/e: go.mod changed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := tree(t, files)
			write(t, dir, c.changes)
			out, err := check(t, "-list", "-since", "HEAD")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, line := range strings.Split(out, "\n") {
				if strings.HasPrefix(line, "  ") {
					got = append(got, strings.TrimSpace(line))
				}
			}
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("chose\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestABudgetNamesWhatItLeavesOut(t *testing.T) {
	dir := tree(t, layersThatCompile())
	write(t, dir, map[string]string{"a/a.go": source("a", "const A = 2\n"), "times": "5 m/a\n100 m/b\n4 m/c\n"})
	out, err := check(t, "-list", "-since", "HEAD", "-budget", "10s", "-times", "times")
	if err != nil || !strings.Contains(out, "do not fit into 10s: m/b\n") || !strings.Contains(out, "  m/c: ") {
		t.Errorf("%v\n%s", err, out)
	}
	write(t, dir, map[string]string{"times": "many m/a\n"})
	if _, err := check(t, "-list", "-times", "times"); err == nil || !strings.Contains(err.Error(), "times, line 1") {
		t.Errorf("a broken file of times: %v", err)
	}
}

// layersThatCompile is layers with d's import in its place.
func layersThatCompile() map[string]string {
	files := layers()
	files["d/d_test.go"] = test("d")
	return files
}

func TestWhatPassedWithTheSameFilesIsLeftOut(t *testing.T) {
	dir := tree(t, layersThatCompile())
	out, err := check(t, "-passed", "passed")
	if err != nil || !strings.Contains(out, "\n6 passed, 0 failed, 0 skipped\n") {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err = check(t, "-passed", "passed"); err != nil || !strings.Contains(out, "no test to run") {
		t.Errorf("again: %v\n%s", err, out)
	}
	write(t, dir, map[string]string{"b/b.go": source("b", "const B = 2\n"), "c/testdata/new": "1"})
	out, err = check(t, "-passed", "passed", "-list")
	if err != nil || !strings.HasSuffix(out, "  m/b: its files changed\n  m/c: its files changed\n") {
		t.Errorf("after a change: %v\n%s", err, out)
	}
	write(t, dir, map[string]string{"b/b_test.go": "package b\n\nimport \"testing\"\n\n" +
		"func TestFails(t *testing.T) { t.Fail() }\n"})
	if out, err = check(t, "-passed", "passed"); err == nil || !strings.Contains(out, "1 passed, 1 failed") {
		t.Errorf("a failure: %v\n%s", err, out)
	}
	out, err = check(t, "-passed", "passed", "-list")
	if err != nil || !strings.HasSuffix(out, "  m/b: its files changed\n") {
		t.Errorf("what failed is tested again: %v\n%s", err, out)
	}
}

func TestFailuresAreShown(t *testing.T) {
	tree(t, map[string]string{
		"good/good_test.go": test("good"),
		"bad/bad_test.go": "package bad\n\nimport \"testing\"\n\nfunc TestFails(t *testing.T) { t.Run(\"sub\", " +
			"func(t *testing.T) { t.Error(\"wrong value\") }) }\n\nfunc TestSkips(t *testing.T) { t.Skip(\"no\") }\n",
		"panics/panics_test.go": "package panics\n\nimport \"testing\"\n\n" +
			"func TestPanics(t *testing.T) { panic(\"oh no\") }\n",
		"exits/exits_test.go": "package exits\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\n" +
			"func TestMain(m *testing.M) { println(\"left early\"); os.Exit(3) }\n\nfunc TestNever(t *testing.T) {}\n",
		"hangs/hangs_test.go": "package hangs\n\nimport (\n\t\"testing\"\n\t\"time\"\n)\n\n" +
			"func TestHangs(t *testing.T) { time.Sleep(time.Hour) }\n",
	})
	out, err := check(t, "-limit", "2s")
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"wrong value", "oh no", "left early", "test timed out after 2s",
		"FAIL m/bad TestFails", "ok  \tm/good", "FAIL\tm/exits", " failed, 1 skipped\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	for _, name := range []string{"m/bad", "m/exits", "m/hangs", "m/panics"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("the error does not name %s: %v", name, err)
		}
	}
	if _, err := check(t, "./nothing"); err == nil {
		t.Error("a package that does not exist is no error")
	}
}

func TestTimesAreKept(t *testing.T) {
	dir := tree(t, layersThatCompile())
	write(t, dir, map[string]string{"times": "7 m/gone\n"})
	if out, err := check(t, "-times", "times", "-update", "./e"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile("times")
	if err != nil || !strings.Contains(string(text), "7 m/gone\n") || !strings.Contains(string(text), " m/e\n") {
		t.Errorf("%v\n%s", err, text)
	}
}
