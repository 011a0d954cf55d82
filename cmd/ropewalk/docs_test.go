package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/sql"
	"github.com/ropewalk/ropewalk/store/mem"
)

// The documentation names commands, flags, tables, targets, variables, files and menus. These tests hold it to those
// that exist.

const top = "../.."

// excerpt is code of a page: an inline span, or a line of a fenced block. section is the text from the last heading on.
type excerpt struct{ page, section, text string }

var (
	spans    = regexp.MustCompile("`+([^`]+)`+")
	headings = regexp.MustCompile(`(?m)^#+ `)
	fences   = regexp.MustCompile("(?ms)^```[a-z]*\n(.*?)^```")
)

// documentation returns the pages of the tree by their paths.
func documentation(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "python/*.md", "gpu/*.md", "schema/*.md"} {
		files, err := filepath.Glob(filepath.Join(top, pattern))
		require.NoError(t, err)
		for _, file := range files {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			pages[strings.TrimPrefix(file, top+"/")] = string(data)
		}
	}
	require.Greater(t, len(pages), 12)
	return pages
}

// excerpts returns the code of all pages, and the help texts of all commands.
func excerpts(t *testing.T) (all []excerpt) {
	t.Helper()
	for page, text := range documentation(t) {
		for _, section := range headings.Split(text, -1) {
			for _, block := range fences.FindAllStringSubmatch(section, -1) {
				for _, line := range commandLines(t, page, block[1]) {
					all = append(all, excerpt{page, section, line})
				}
			}
			for _, m := range spans.FindAllStringSubmatch(fences.ReplaceAllString(section, ""), -1) {
				all = append(all, excerpt{page, section, strings.Join(strings.Fields(m[1]), " ")})
			}
		}
	}
	each(program(), func(c *cobra.Command) {
		page := "`" + c.CommandPath() + " --help`"
		for line := range strings.Lines(c.Example) {
			all = append(all, excerpt{page, c.Example, strings.TrimSpace(line)})
		}
		texts := []string{c.Long}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { texts = append(texts, f.Usage) })
		for _, text := range texts {
			for _, m := range spans.FindAllStringSubmatch(text, -1) {
				all = append(all, excerpt{page, text, strings.Join(strings.Fields(m[1]), " ")})
			}
		}
	})
	return all
}

// commandLines splits a block into lines. One that ends in a backslash or within double quotes goes on in the next.
func commandLines(t *testing.T, page, block string) (lines []string) {
	t.Helper()
	whole := ""
	for line := range strings.Lines(strings.ReplaceAll(block, "\\\n", " ")) {
		whole += " " + strings.TrimSpace(line)
		if strings.Count(whole, `"`)%2 == 0 {
			lines, whole = append(lines, strings.TrimSpace(whole)), ""
		}
	}
	require.Empty(t, whole, "%s: nothing closes a quotation mark", page)
	return lines
}

// program returns the commands with those that the library adds.
func program() *cobra.Command {
	root := rootCommand(&console{})
	root.InitDefaultCompletionCmd()
	return root
}

// each visits a command and all below it.
func each(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, child := range c.Commands() {
		each(child, visit)
	}
}

// calls matches the program's name before a command. A colon after the name begins a message.
var calls = regexp.MustCompile(`(?:^|[\s(|])(?:bin/)?ropewalk ([a-z].*)`)

// inner matches a command whose output is part of another.
var inner = regexp.MustCompile(`\$\(([^)]*)\)`)

// Every command line of the documentation names commands, subcommands and flags that the program has.
func TestDocumentedCommandLines(t *testing.T) {
	found := map[string]bool{}
	for _, e := range excerpts(t) {
		lines := []string{inner.ReplaceAllString(e.text, "X")}
		if word, rest, _ := strings.Cut(e.text, " "); len(commandsOf(program(), program(), word)) > 0 &&
			strings.Contains(rest, "--") && !strings.Contains(rest, "ropewalk ") {
			lines = append(lines, "ropewalk "+e.text) // a span that leaves the program's name out
		}
		for _, m := range inner.FindAllStringSubmatch(e.text, -1) {
			lines = append(lines, m[1])
		}
		for _, line := range lines {
			for _, m := range calls.FindAllStringSubmatch(line, -1) {
				if fault := badLine(program(), m[1], found); fault != "" {
					t.Errorf("%s: %s: %s", e.page, e.text, fault)
				}
			}
		}
	}
	for _, c := range program().Commands() {
		if !c.Hidden && c.Name() != "help" {
			require.True(t, found[c.Name()], "no page names the command %s", c.Name())
		}
	}
}

// Every command that a message of the program names exists.
func TestCommandsInMessages(t *testing.T) {
	code := joins.ReplaceAllString(sources(t, "*.go"), "")
	found := map[string]bool{}
	for _, m := range advice.FindAllStringSubmatch(code, -1) {
		if fault := badLine(program(), m[1], found); fault != "" {
			t.Errorf("%s: %s", m[0], fault)
		}
	}
	require.Greater(t, len(found), 8)
}

var (
	joins  = regexp.MustCompile(`" \+\n\s*"`)
	advice = regexp.MustCompile("`ropewalk ([a-z][^`\n]*)`")
)

// shell lists programs that examples pipe into.
var shell = []string{"head", "jq", "tee", "wc", "sort", "python3"}

// badLine says what the program does not have, or returns "". After a bar it accepts another command, of the same
// parent or of the program, or a program of the shell, where the line ends.
func badLine(root *cobra.Command, line string, found map[string]bool) string {
	at, parent := root, root
	for word := range strings.FieldsSeq(quotes.ReplaceAllString(line, "Q")) {
		name := strings.Trim(word, "`,.;:)…")
		switch {
		case strings.HasPrefix(word, "#"), word == ">", word == "&&", word == "and", slices.Contains(shell, name):
			return ""
		case word == "|":
			at = parent
		case strings.HasPrefix(name, "-") && len(name) > 1:
			if fault := badFlag(at, strings.Trim(name, "[]")); fault != "" {
				return fault
			}
		case at == root || at.HasSubCommands() && at.HasParent():
			next := commandsOf(at, root, name)
			if len(next) == 0 && at == root {
				return "no command " + name
			}
			if len(next) == 0 {
				continue // an argument
			}
			for _, c := range next {
				found[c.Name()] = true
			}
			parent, at = next[0].Parent(), next[0]
		}
	}
	return ""
}

var quotes = regexp.MustCompile(`"[^"]*"|'[^']*'`)

// commandsOf finds the commands that a word names: one, or several as pause|unpause.
func commandsOf(parent, root *cobra.Command, word string) (all []*cobra.Command) {
	for name := range strings.SplitSeq(word, "|") {
		i := slices.IndexFunc(parent.Commands(), func(c *cobra.Command) bool { return c.Name() == name })
		if i >= 0 {
			all = append(all, parent.Commands()[i])
			continue
		}
		i = slices.IndexFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == name })
		if i < 0 {
			return nil
		}
		all = append(all, root.Commands()[i])
	}
	return all
}

// badFlag names a flag that a command does not have, or returns "".
func badFlag(c *cobra.Command, word string) string {
	name, _, _ := strings.Cut(word, "=")
	if name == "--help" || name == "-h" {
		return ""
	}
	if long, ok := strings.CutPrefix(name, "--"); ok {
		if c.Flags().Lookup(long) == nil && c.InheritedFlags().Lookup(long) == nil {
			return c.CommandPath() + " has no flag " + name
		}
		return ""
	}
	if short := strings.TrimPrefix(name, "-"); len(short) == 1 && c.Flags().ShorthandLookup(short) == nil &&
		c.InheritedFlags().ShorthandLookup(short) == nil {
		return c.CommandPath() + " has no flag " + name
	}
	return ""
}

// A flag that a page names without its command belongs to a command of the same section, or to any where the section
// names none.
func TestDocumentedFlags(t *testing.T) {
	for _, e := range excerpts(t) {
		if !strings.HasPrefix(e.text, "--") {
			continue
		}
		var owners []*cobra.Command
		each(program(), func(c *cobra.Command) {
			path := c.CommandPath()
			if !c.HasParent() || strings.Contains(e.section, path) || "`"+path+" --help`" == e.page {
				owners = append(owners, c)
			}
		})
		if len(owners) == 1 {
			each(program(), func(c *cobra.Command) { owners = append(owners, c) })
		}
		for word := range strings.FieldsSeq(e.text) {
			if name := strings.Trim(word, ",."); strings.HasPrefix(name, "--") && !slices.Contains(foreignFlags, name) {
				if !slices.ContainsFunc(owners, func(c *cobra.Command) bool { return badFlag(c, name) == "" }) {
					t.Errorf("%s: %s: no command of the section has %s", e.page, e.text, name)
				}
			}
		}
	}
}

// foreignFlags lists flags of other programs that pages name by themselves.
var foreignFlags = []string{"--lora-modules", "--enable-lora", "--no-enable-chunked-prefill"} // vLLM

// Every query of the documentation runs, on an empty record.
func TestDocumentedQueries(t *testing.T) {
	ran := 0
	for _, e := range excerpts(t) {
		query := e.text
		if _, after, ok := strings.Cut(e.text, "ropewalk sql "); ok {
			query = quoted(after)
		}
		lower := strings.ToLower(query)
		if !strings.HasPrefix(lower, "select ") && !strings.HasPrefix(lower, "with ") || strings.Contains(lower, "…") {
			continue
		}
		_, err := sql.Query(t.Context(), analysis.New(mem.New()), query)
		require.NoError(t, err, "%s: %s", e.page, query)
		ran++
	}
	require.Greater(t, ran, 5)
}

// quoted returns the first text in double quotes.
func quoted(text string) string {
	if _, after, ok := strings.Cut(text, `"`); ok {
		text, _, _ = strings.Cut(after, `"`)
		return text
	}
	return ""
}

// Lists of the tables are whole, and tables of the Python package exist.
func TestDocumentedTables(t *testing.T) {
	pages := documentation(t)
	page := strings.Join(strings.Fields(pages["docs/analyse.md"]), " ")
	require.Contains(t, page, "The tables are `"+strings.Join(sql.Tables(), ", ")+"`")
	var help bytes.Buffer
	require.Equal(t, exitDone, Run(t.Context(), []string{"sql", "--help"}, &help, &help))
	require.Contains(t, strings.Join(strings.Fields(help.String()), " "), strings.Join(sql.Tables(), ", "))
	read := regexp.MustCompile(`\.(?:table|polars|pandas)\("([a-z_]+)"`)
	for name, text := range pages {
		for _, m := range read.FindAllStringSubmatch(text, -1) {
			require.Contains(t, sql.Tables(), m[1], "%s: %s", name, m[0])
		}
	}
}
