package recipes

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A preset file is put together from a table (presets_table_test.go): a task gives a recipe's
// sections, a method replaces some of them.

// sections are a recipe's top-level entries, by name, as YAML below the name.
type sections map[string]string

// order is how a file lists them.
var order = []string{
	"environment", "engine", "policy", "warm_start", "rollout", "sandbox", "layout", "reward", "filters", "resample",
	"advantage", "loss", "replay", "schedule", "optimizer", "evaluation", "checkpoint",
}

// preset is one file.
type preset struct {
	name, about string
	source      string   // paper and table
	departures  []string // what differs from paper or release, with the reading's id
	steps       int
	sections    sections
}

// with replaces sections; "" takes one out.
func (s sections) with(more ...sections) sections {
	out := sections{}
	for _, m := range append([]sections{s}, more...) {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

// text renders the file.
func (p preset) text() string {
	var b strings.Builder
	for _, line := range wrap(p.about+". Source: "+p.source+".", 96) {
		b.WriteString("# " + line + "\n")
	}
	for _, d := range p.departures {
		for i, line := range wrap(d, 92) {
			b.WriteString(map[bool]string{true: "# - ", false: "#   "}[i == 0] + line + "\n")
		}
	}
	fmt.Fprintf(&b, "version: 1\nname: %s\ndescription: %s\nseed: 1\nsteps: %d\n", p.name, quoted(p.about), p.steps)
	for _, name := range order {
		body := strings.Trim(p.sections[name], "\n")
		switch {
		case body == "":
		case strings.Contains(body, ":"):
			fmt.Fprintf(&b, "\n%s:\n%s\n", name, indented(body))
		default:
			fmt.Fprintf(&b, "\n%s: %s\n", name, body)
		}
	}
	return b.String()
}

func quoted(s string) string { return `"` + strings.ReplaceAll(s, `"`, `'`) + `"` }

func indented(body string) string {
	lines := strings.Split(body, "\n")
	for i, l := range lines {
		lines[i] = "  " + l
	}
	return strings.Join(lines, "\n")
}

// wrap breaks text at spaces.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}

func TestPresetsAreUpToDate(t *testing.T) {
	want := map[string]bool{}
	for _, p := range presetTable(t) {
		require.False(t, want[p.name+".yaml"], "%s is there twice", p.name)
		want[p.name+".yaml"] = true
		upToDate(t, filepath.Join("presets", p.name+".yaml"), []byte(p.text()))
	}
	files, err := os.ReadDir("presets")
	require.NoError(t, err)
	for _, f := range files {
		if !want[f.Name()] && *update {
			require.NoError(t, os.Remove(filepath.Join("presets", f.Name())))
		} else {
			require.True(t, want[f.Name()], "presets/%s is in no table; run go test ./recipes -update", f.Name())
		}
	}
}

// quickstartSections takes the built-in recipe apart, so that presets on calc differ in their
// method alone.
func quickstartSections(t *testing.T) sections {
	t.Helper()
	text, ok := Source("quickstart")
	require.True(t, ok)
	out, name := sections{}, ""
	for _, line := range strings.Split(string(text), "\n") {
		switch {
		case strings.HasPrefix(line, "  "):
			out[name] += line[2:] + "\n"
		case strings.HasSuffix(line, ":") && !strings.HasPrefix(line, "#"):
			name = strings.TrimSuffix(line, ":")
		}
	}
	for _, name := range []string{"environment", "engine", "policy", "warm_start", "rollout", "sandbox", "reward", "optimizer", "evaluation", "checkpoint"} {
		require.NotEmpty(t, out[name], name)
	}
	out["resample"] = ""
	require.True(t, slices.Contains(order, "checkpoint"))
	return out
}
