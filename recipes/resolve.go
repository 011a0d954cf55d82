package recipes

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/internal/spelling"
	"github.com/ropewalk/ropewalk/schema"
)

//go:embed *.yaml presets/*.yaml presets/bases/*.yaml
var builtin embed.FS

// Resolved is a recipe that has a value for every field.
type Resolved struct {
	Recipe Recipe
	// JSON is the canonical form: every field that applies, indented by two spaces, with a newline at the end. It is a
	// valid recipe itself, because JSON is YAML.
	JSON []byte
	// Digest is the SHA-256 of JSON, in hexadecimal.
	Digest string
	// Notes say which worlds its environments are, and which values are others than those that the recipe asks for.
	Notes []string
}

// presetFolder and baseFolder precede the names of presets and of bases.
const (
	presetFolder = "presets/"
	baseFolder   = presetFolder + "bases/"
)

// Builtin returns the sorted names of the recipes that come with the program, without the presets (see Presets).
func Builtin() []string { return namesIn("") }

// Presets returns the sorted names of the presets, each presets/NAME. A preset is a built-in recipe with the settings
// of a published method.
func Presets() []string { return namesIn(presetFolder) }

// bases returns the sorted names of the files that presets share. A base is not a complete recipe.
func bases() []string { return namesIn(baseFolder) }

// namesIn returns the sorted names of the recipes in a folder.
func namesIn(folder string) []string {
	entries, err := builtin.ReadDir(path.Clean(folder))
	if err != nil {
		panic(err) // the folder is part of the binary
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, folder+strings.TrimSuffix(e.Name(), ".yaml"))
		}
	}
	slices.Sort(names) // the order of the files differs: a dash sorts before a dot
	return names
}

// Source returns the text of a built-in recipe. The text may extend other recipes.
func Source(name string) ([]byte, bool) {
	if strings.HasPrefix(name, baseFolder) {
		return nil, false
	}
	return embedded(name)
}

// embedded is Source including the bases.
func embedded(name string) ([]byte, bool) {
	data, err := builtin.ReadFile(name + ".yaml")
	return data, err == nil
}

// fileOf returns the file name of a built-in recipe for messages.
func fileOf(name string) string { return "recipes/" + name + ".yaml" }

// Resolve reads a recipe, applies the overrides, then seed and steps unless they are nil, and validates the result. If
// inline is "", name is the name of a built-in recipe. Otherwise inline is the recipe's text and messages use name as
// its file name. The error is of type Problems.
func Resolve(name, inline string, overrides []string, seed *uint64, steps *int) (*Resolved, error) {
	data := []byte(inline)
	file := name
	if inline == "" {
		text, ok := Source(name)
		if !ok {
			return nil, Problems{{File: "recipe " + name, Message: unknownName(name)}}
		}
		data, file = text, fileOf(name)
	}
	if file == "" {
		file = "inline recipe"
	}
	r, err := parse(file, data, pairs(overrides, seed, steps))
	if err != nil {
		return nil, err
	}
	return r.resolved()
}

// ResolveCommitted is Resolve for a recipe from a record, with overrides applied. See ParseCommitted.
func ResolveCommitted(committed *Recipe, overrides []string) (*Resolved, error) {
	text, err := committed.Canonical()
	if err != nil {
		return nil, err
	}
	r, err := ParseCommitted(committed.Name, text, overrides)
	if err != nil {
		return nil, err
	}
	return r.resolved()
}

func (r *Recipe) resolved() (*Resolved, error) {
	if r.Staleness() == 0 { // the same recipe as one without the section
		r.Pipeline = nil
	}
	notes := r.Environment.Worlds()
	if n := r.Rollout.Prompts; r.Rollout.ShardGroups > n && n > 0 {
		notes = append(notes, fmt.Sprintf("rollout.shard_groups is %d, and a step has %d prompts: a shard has %d",
			r.Rollout.ShardGroups, n, n))
		r.Rollout.ShardGroups = n
	}
	text, err := r.Canonical()
	if err != nil {
		return nil, err
	}
	return &Resolved{Recipe: *r, JSON: text, Digest: schema.Digest(text), Notes: notes}, nil
}

func unknownName(name string) string {
	if _, ok := embedded(name); ok {
		return "is a part of recipes; a recipe names it as extends"
	}
	text := "no such built-in recipe"
	if near := Like(name); len(near) > 0 {
		return text + didYouMean(spelling.OrList(near))
	}
	return text + "; there are " + strings.Join(Builtin(), ", ") +
		" and presets/NAME (another recipe is given as a file or inline)"
}

func pairs(set []string, seed *uint64, steps *int) []override {
	var all []override
	for _, s := range set {
		all = append(all, overrideOf(s))
	}
	if seed != nil {
		s := fmt.Sprintf("seed=%d", *seed)
		all = append(all, override{origin: "--" + s, text: s})
	}
	if steps != nil {
		s := fmt.Sprintf("steps=%d", *steps)
		all = append(all, override{origin: "--" + s, text: s})
	}
	return all
}
