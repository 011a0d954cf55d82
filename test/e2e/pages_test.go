package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// example, on the line before a block of commands, says that the block is not run.
const example = "<!-- example -->"

// session is one command of a page with the output that the page shows.
type session struct {
	page    string
	line    int
	command string
	shown   []string
}

var fence = regexp.MustCompile("^(`{3,})([a-z]*)$")

// sessions reads the blocks of commands of a page: those without a language, or of language console or sh. Each one
// that is no example holds sessions, whose commands begin with "$ ".
func sessions(t *testing.T, page string) (all []session) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	lines := strings.Split(string(text), "\n")
	for i := 0; i < len(lines); i++ {
		m := fence.FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}
		begin := i
		for i++; i < len(lines) && lines[i] != m[1]; i++ {
		}
		before := strings.TrimSpace(strings.Join(lines[:begin], "\n"))
		if !slices.Contains([]string{"", "console", "sh"}, m[2]) || strings.HasSuffix(before, example) {
			continue
		}
		for at, line := range lines[begin+1 : i] {
			if command, ok := strings.CutPrefix(line, "$ "); ok || ranByCI[bare(line)] != "" {
				all = append(all, session{page: filepath.Base(page), line: begin + at + 2, command: command})
				continue
			}
			require.Positive(t, at, "%s:%d: the block has no command: write `$ ` before it, give the block a "+
				"language or mark it by %s", page, begin+1, example)
			last := &all[len(all)-1]
			open := strings.HasSuffix(last.command, `\`) || strings.Count(last.command, `"`)%2 == 1
			if len(last.shown) == 0 && open {
				last.command += "\n" + line
				continue
			}
			last.shown = append(last.shown, line)
		}
	}
	return all
}

// Names, digests and numbers differ from run to run.
var volatile = []struct {
	of *regexp.Regexp
	by string
}{
	{regexp.MustCompile(`\bquickstart-s1-\d{8}-\d{6}-[a-z0-9]{6}\b`), "RUN"},
	{regexp.MustCompile(`\b[0-9a-f]{16,}\b`), "D"},
	{regexp.MustCompile(`-?\d[\d.,]*(e[-+]?\d+)?`), "N"},
}

// plain is a line for comparison. exact keeps its numbers.
func plain(line string, exact bool) string {
	for _, v := range volatile {
		if !exact {
			line = v.of.ReplaceAllString(line, v.by)
		}
	}
	return strings.Join(strings.Fields(line), " ")
}

// agrees reports whether an output is as shown. A line "…" stands for any lines, and "…" at the end of a line for any
// text.
func agrees(shown, got []string) bool {
	if len(shown) == 0 {
		return len(got) == 0
	}
	if shown[0] == "…" {
		return agrees(shown[1:], got) || len(got) > 0 && agrees(shown, got[1:])
	}
	if len(got) == 0 {
		return false
	}
	begin, open := strings.CutSuffix(shown[0], "…")
	same := got[0] == shown[0] || open && strings.HasPrefix(got[0], strings.TrimSpace(begin))
	return same && agrees(shown[1:], got[1:])
}

// elsewhere is the folder that pages show in place of the one where the commands run.
const elsewhere = "/home/me/ropewalk"

// taken is said of ports that another stack of this machine has.
var taken = regexp.MustCompile(`(?m)^port .* is taken: .*\n`)

// ranByCI names the file of each command that .ci/run runs, because it takes too long here or builds the program again.
var ranByCI = map[string]string{"make run": "tools/short-run.sh", "make test": ".ci/run"}

// bare is a command without its comment.
func bare(command string) string {
	command, _, _ = strings.Cut(command, "#")
	return strings.TrimSpace(command)
}

// leftToCI reports whether .ci/run runs a command instead of TestPages.
func leftToCI(t *testing.T, s session) bool {
	t.Helper()
	command := bare(s.command)
	file, ok := ranByCI[command]
	if ok {
		text, err := os.ReadFile(filepath.Join(root(), file))
		require.NoError(t, err)
		require.Contains(t, string(text), command, "%s:%d: %s no longer runs it", s.page, s.line, file)
		require.Empty(t, s.shown, "%s:%d: no test compares what %s prints", s.page, s.line, command)
	}
	return ok
}

// Every block of commands in README.md and docs/ is an example, is left to .ci/run, or is run here and prints what the
// page shows. RUN stands for the run of the first one, that of the quickstart. Numbers may differ where a command
// depends on the run or the machine.
func TestPages(t *testing.T) {
	t.Parallel()
	h := newHome(t, t.TempDir())
	h.env = append(h.env, "ROPEWALK_HOME="+filepath.Join(h.cwd, ".ropewalk"))
	require.NoError(t, os.Mkdir(filepath.Join(h.cwd, "bin"), 0o755))
	require.NoError(t, os.Symlink(binary(), filepath.Join(h.cwd, "bin", "ropewalk")))
	require.NoError(t, os.Symlink(filepath.Join(root(), "recipes"), filepath.Join(h.cwd, "recipes")))
	pages, err := filepath.Glob(filepath.Join(root(), "docs", "*.md"))
	require.NoError(t, err)
	quickstart := filepath.Join(root(), "docs", "quickstart.md")
	pages = append(slices.DeleteFunc(pages, func(page string) bool { return page == quickstart }),
		filepath.Join(root(), "README.md"))
	run, ran := "", 0
	for _, page := range append([]string{quickstart}, pages...) {
		for _, s := range sessions(t, page) {
			if leftToCI(t, s) {
				continue
			}
			ran++
			cmd := exec.Command("bash", "-c", strings.ReplaceAll(s.command, "RUN", run))
			cmd.Env, cmd.Dir = h.env, h.cwd
			text, err := cmd.CombinedOutput()
			refused := slices.ContainsFunc(s.shown, func(l string) bool { return strings.HasPrefix(l, "ropewalk: ") })
			require.Equal(t, refused, err != nil, "%s:%d: %s\n%s", s.page, s.line, s.command, text)
			if run == "" {
				run = volatile[0].of.FindString(string(text))
				require.NotEmpty(t, run, "%s", text)
			}
			out := taken.ReplaceAllString(strings.ReplaceAll(string(text), h.cwd, elsewhere), "")
			exact := strings.Contains(s.command, "--dry-run") || strings.Contains(s.command, "ropewalk methods")
			var shown, got []string
			for _, l := range s.shown {
				shown = append(shown, plain(strings.ReplaceAll(l, "RUN", run), exact))
			}
			for l := range strings.Lines(strings.TrimRight(out, "\n")) {
				got = append(got, plain(l, exact))
			}
			if len(shown) > 0 && !agrees(shown, got) {
				t.Errorf("%s:%d: %s\nshown:\n%s\nnow:\n%s", s.page, s.line, s.command, strings.Join(s.shown, "\n"), out)
			}
		}
	}
	require.Greater(t, ran, 15)
}
