package recipes

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env/environments"
)

const introduction = `# Recipes

<!-- Made from the struct tags of recipes and rl/method, and the slot table, by: go test ./recipes -update -->

A recipe is one YAML document that composes a run: ` + "`ropewalk run RECIPE`" + `. RECIPE is a file, or the
name of a recipe that comes with the program (%s, and the presets of [methods.md](methods.md)).

- ` + "`--set path=value`" + ` replaces part of a recipe before it is validated; the value is YAML, and sections on
  the way are made. Examples: ` + "`--set resample.roc.keep=4`, `--set warm_start.levels=[2]`, `--set resample.roc=null`" + `.
- ` + "`--seed N`" + ` is short for ` + "`--set seed=N`" + `, and wins over it. A run that is started in Temporal's UI takes ` + "`seed` and `steps`" + ` in
  its input, which win in the same way.
- Every fault is reported at once, one a line, by file, line and path, and nothing starts:
  ` + "`recipes/quickstart.yaml:72: resample.roc.keep: must be ≤ rollout.samples_per_prompt (8), got 32`" + `.
- Editors check recipes against ` + "[`recipes/schema.json`](../recipes/schema.json)" + ` when the file begins with
  ` + "`# yaml-language-server: $schema=schema.json`" + `.
- ` + "`extends: presets/ppo`" + ` inherits the entries of recipes that come with the program; [Extending a recipe](#extending-a-recipe) says how.
- The record keeps the resolved recipe: every field, as canonical JSON, named by its SHA-256.

A field without a default is required. The last column says where a field has a place; elsewhere it is refused. *calc* is
that environment alone; *trained* are all environments but ` + "`openai`" + `, whose trajectories are imported,
so that nothing is sampled, trained or evaluated; *tooled* are those whose calls run in the sandbox; *demonstrated* are those
that a script can demonstrate; *noised* are those of them whose faults have one number; *calling* are those whose policies
call tools; *configured* are those with settings of their own.
*with* names
choices: ` + "`lambda`" + ` is read by ` + "`gae`" + ` alone and refused with another estimator.
YAML's anchors, aliases and merge keys are not part of the format.

## Extending a recipe

A file can hold only what differs from recipes that come with the program:

    extends: presets/ppo
    name: ppo-longer
    steps: 200
    optimizer: {lr: 0.0001}

` + "`" + `extends` + "`" + ` is a name, or a list of names that are laid over each other in their order; the file
itself comes last. ` + "`" + `name` + "`" + ` and ` + "`" + `description` + "`" + ` are the file's own; everything else
is inherited. Sections are merged entry by entry; lists, mappings of numbers, ` + "`" + `environment.settings` + "`" + `
and single values replace what was inherited. ` + "`" + `null` + "`" + ` takes an inherited entry out, so that it has
its default again. If the file makes another choice (` + "`" + `loss: {name: sapo}` + "`" + `), inherited fields that
this choice does not read fall away. A file cannot extend another file on disk: a run keeps the text of one, and
resolves it wherever a worker runs. ` + "`" + `ropewalk run FILE --dry-run` + "`" + ` prints the whole recipe, and the
record keeps that.
`

// The reference page holds what the table says about each field.
func TestReferenceIsUpToDate(t *testing.T) {
	page := filepath.Join("..", "docs", "recipes.md")
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(page), 0o755))
	}
	upToDate(t, page, []byte(reference()))
}

// headings makes the anchor of a heading from a path, as GitHub does.
var headings = strings.NewReplacer(".", "", "[", "", "]", "")

func reference() string {
	var b strings.Builder
	fmt.Fprintf(&b, introduction, "`"+strings.Join(Builtin(), "`, `")+"`")
	b.WriteString("\n## The document\n\n")
	writeTable(&b, root())
	for _, f := range Fields() {
		if f.IsSection() || f.IsList() {
			path := f.Path
			if f.IsList() {
				path += "[]"
			}
			fmt.Fprintf(&b, "\n## %s\n\n%s%s.\n\n", path, strings.ToUpper(f.Doc[:1]), f.Doc[1:])
			writeTable(&b, f)
			for _, c := range f.Fields {
				writeChoices(&b, c)
				writeSettings(&b, c)
			}
		}
	}
	writeChoices(&b, root().child("layout"))
	b.WriteString("\n## Combinations\n\nRules over several fields, beyond the limits above:\n\n")
	b.WriteString("| field | must be such that | |\n| --- | --- | --- |\n")
	for _, c := range rules {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", c.at, c.inWords(), italic(c.only))
	}
	return b.String()
}

func writeTable(b *strings.Builder, section *Field) {
	b.WriteString("| field | what | type | limits | default | |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, f := range section.Fields {
		name := "`" + f.Name + "`"
		if f.IsSection() || f.IsList() {
			name = fmt.Sprintf("[`%s`](#%s)", f.Name, headings.Replace(f.Path))
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n",
			name, strings.ReplaceAll(f.Doc, "|", `\|`), f.TypeName(), f.limitsInWords(), f.defaultInWords(), f.place())
	}
}

// writeSettings lists the settings that each environment declares.
func writeSettings(b *strings.Builder, f *Field) {
	if !f.isSettings() || strings.Contains(f.Path, "[]") { // a part has those of its environment
		return
	}
	for _, d := range environments.All {
		if len(d.Settings) > 0 {
			fmt.Fprintf(b, "\n`%s` of `%s`:\n\n", f.Path, d.Name)
			writeTable(b, &Field{Path: f.Path, Fields: f.settingFields(d.Name)})
		}
	}
}

// writeChoices writes the meaning of each name that a field can choose.
func writeChoices(b *strings.Builder, f *Field) {
	if f.Slot == nil {
		return
	}
	fmt.Fprintf(b, "\n`%s` is one of:\n\n| choice | what | source |\n| --- | --- | --- |\n", f.Path)
	for _, c := range f.Slot.Choices {
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", c.Name, strings.ReplaceAll(c.Doc, "|", `\|`), c.Source)
	}
}

// place says where a field applies.
func (f *Field) place() string {
	parts := []string{}
	if f.Classes != nil {
		parts = append(parts, italic(strings.Join(f.Classes, ", ")))
	}
	for _, g := range f.Governors {
		if readers := g.Slot.Readers(g.Param); len(readers) < len(g.Slot.Choices) {
			parts = append(parts, "*with* `"+strings.Join(readers, "`, `")+"`")
		}
	}
	if f.Spared != "" {
		parts = append(parts, "*may be absent with* `"+f.Spared+"`")
	}
	if f.Without != "" {
		parts = append(parts, "*without* `"+f.Without+"`")
	}
	return strings.Join(parts, "; ")
}

func (f *Field) limitsInWords() string {
	var parts []string
	if f.Enum != nil {
		parts = append(parts, "`"+strings.Join(f.Enum, "`, `")+"`")
	}
	if f.Keys != nil {
		parts = append(parts, "keys `"+strings.Join(f.Keys, "`, `")+"`")
	}
	if f.Above != nil {
		parts = append(parts, "> "+number(*f.Above))
	}
	if f.Min != nil {
		parts = append(parts, "≥ "+number(*f.Min))
	}
	if f.Max != nil {
		parts = append(parts, "≤ "+number(*f.Max))
	}
	if f.Pattern != "" {
		parts = append(parts, "`"+f.Pattern+"`")
	}
	return strings.Join(parts, ", ")
}

func (f *Field) defaultInWords() string {
	switch {
	case f.Required:
		return "**required**"
	case f.Nullable:
		return "off"
	case f.variesByChoice():
		return f.defaultsByChoice()
	case f.Default != "":
		return "`" + f.Default + "`"
	case len(f.Governors) > 0:
		return "**required**"
	}
	return ""
}

// defaultsByChoice lists the default of each choice.
func (f *Field) defaultsByChoice() string {
	var parts []string
	for _, g := range f.Governors {
		for _, c := range g.Slot.Choices {
			if p, ok := c.Param(g.Param); ok {
				parts = append(parts, fmt.Sprintf("%s `%s`", c.Name, cmp.Or(p.Default, f.Default)))
			}
		}
	}
	return strings.Join(parts, ", ")
}

func italic(s string) string {
	if s == "" {
		return ""
	}
	return "*" + s + "*"
}
