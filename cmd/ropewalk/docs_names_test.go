package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sources returns the text of the tree's own files that match a pattern of Git.
func sources(t *testing.T, patterns ...string) string {
	t.Helper()
	list := exec.Command("git", append([]string{"ls-files", "-z", "--"}, patterns...)...)
	list.Dir = top
	names, err := list.Output()
	require.NoError(t, err)
	var all strings.Builder
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(top, name))
		if os.IsNotExist(err) { // deleted and not yet committed
			continue
		}
		require.NoError(t, err)
		all.Write(data)
	}
	return all.String()
}

// Every make target of the documentation is one of the Makefile.
func TestDocumentedTargets(t *testing.T) {
	rules := sources(t, "Makefile")
	target := regexp.MustCompile(`^(?:\$ )?make ([a-z][a-z-]*)(?:\s|$)`)
	found := 0
	for _, e := range excerpts(t) {
		if m := target.FindStringSubmatch(e.text); m != nil {
			found++
			_, err := os.Stat(filepath.Join(top, "internal/bench", strings.TrimPrefix(m[1], "bench-"))) // of bench-%
			if !strings.Contains(rules, "\n"+m[1]+":") && (err != nil || !strings.HasPrefix(m[1], "bench-")) {
				t.Errorf("%s: %s: the Makefile has no target %s", e.page, e.text, m[1])
			}
		}
	}
	require.Greater(t, found, 10)
}

// Every variable of the documentation is read by the program, its scripts or its tests.
func TestDocumentedVariables(t *testing.T) {
	code := sources(t, "*.go", "*.sh", "*.py", "Makefile", ".ci/run", "tools/*")
	variable := regexp.MustCompile(`\bROPEWALK_[A-Z0-9_]+\b`)
	found := 0
	for page, text := range documentation(t) {
		for _, name := range variable.FindAllString(text, -1) {
			found++
			if !regexp.MustCompile(`\b` + name + `\b`).MatchString(code) {
				t.Errorf("%s: nothing reads %s", page, name)
			}
		}
	}
	require.Greater(t, found, 10)
}

var (
	links  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	titles = regexp.MustCompile(`(?m)^#+ (.+)$`)
	// symbols are the characters that an anchor leaves out.
	symbols = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors returns the anchors of a page's headings.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range titles.FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
		title := links.ReplaceAllString(strings.ToLower(m[1]), "")
		all[strings.ReplaceAll(symbols.ReplaceAllString(title, ""), " ", "-")] = true
	}
	return all
}

// Every link within the tree leads to a file, and to a heading of it.
func TestDocumentedLinks(t *testing.T) {
	pages := documentation(t)
	found := 0
	for page, text := range pages {
		for _, m := range links.FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			found++
			file, anchor, _ := strings.Cut(m[1], "#")
			to := page
			if file != "" {
				to = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(filepath.Join(top, to)); err != nil {
				t.Errorf("%s: %s: there is no such file", page, m[1])
			} else if text, known := pages[to]; known && anchor != "" && !anchors(text)[anchor] {
				t.Errorf("%s: %s: %s has no such heading", page, m[1], to)
			}
		}
	}
	require.Greater(t, found, 50)
}

// statuses are the names by which Temporal's UI shows how an execution has ended. They are no menus.
var statuses = []string{"Running", "Completed", "Failed", "Canceled", "Terminated"}

// Every menu of Temporal's UI that the pages name is clicked by the browser tests, or is a text of the UI, which is
// part of Temporal's program.
func TestDocumentedMenus(t *testing.T) {
	clicked := sources(t, "test/e2e/*.go")
	menu := regexp.MustCompile(`(?:^|[^*])\*([A-Z][A-Za-z ]+(?: → [A-Z][A-Za-z ]+)*)\*(?:[^*]|$)`)
	found := 0
	for _, page := range []string{"docs/operate.md", "docs/quickstart.md", "docs/concepts.md"} {
		text := strings.Join(strings.Fields(documentation(t)[page]), " ")
		for _, m := range menu.FindAllStringSubmatch(text, -1) {
			for name := range strings.SplitSeq(m[1], " → ") {
				found++
				tab := strings.ReplaceAll(strings.ToLower(name), " ", "-") + "-tab" // the UI's own id of a tab
				if slices.Contains(statuses, name) || strings.Contains(clicked, `"`+name+`"`) ||
					strings.Contains(clicked, `"`+tab+`"`) {
					continue
				}
				program, err := os.ReadFile(filepath.Join(top, ".tools/temporal"))
				if err != nil {
					t.Logf("%s: no browser test uses %q, and Temporal is not installed to look it up", page, name)
				} else if !bytes.Contains(program, []byte(name)) {
					t.Errorf("%s: no browser test uses %q, and Temporal's UI has no such text", page, name)
				}
			}
		}
	}
	require.Greater(t, found, 6)
}
