package recipes

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/schema"
)

//go:embed *.yaml presets/*.yaml
var builtin embed.FS

// Resolved is a recipe with every field in place.
type Resolved struct {
	Recipe Recipe
	// JSON is the canonical form: every field, in the order of the structs, indented by two
	// spaces, ending in a newline. It is itself a recipe (JSON is YAML).
	JSON []byte
	// Digest is the SHA-256 of JSON, in hexadecimal.
	Digest string
}

// Builtin returns the names of the recipes that come with the program, sorted; see Presets for more.
func Builtin() []string {
	entries, err := builtin.ReadDir(".")
	if err != nil {
		panic(err) // the folder is part of the binary
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
		}
	}
	return names
}

// presetFolder precedes the names of presets.
const presetFolder = "presets/"

// Presets returns the names of the presets, sorted: built-in recipes with the settings of published
// methods, each presets/NAME.
func Presets() []string {
	entries, err := builtin.ReadDir("presets")
	if err != nil {
		panic(err) // the folder is part of the binary
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = presetFolder + strings.TrimSuffix(e.Name(), ".yaml")
	}
	slices.Sort(names) // the files' order is another: a dash precedes a dot
	return names
}

// Source returns the text of a built-in recipe.
func Source(name string) ([]byte, bool) {
	data, err := builtin.ReadFile(name + ".yaml")
	return data, err == nil
}

// Resolve reads a recipe, puts overrides, seed and steps in place (the latter two win where they
// are not nil), and validates the outcome. With inline text, name is only what messages call
// it; without, it names a built-in recipe. The error is of type Problems.
func Resolve(name, inline string, overrides []string, seed *uint64, steps *int) (*Resolved, error) {
	data := []byte(inline)
	file := name
	if inline == "" {
		text, ok := Source(name)
		if !ok {
			return nil, Problems{{File: "recipe " + name, Message: unknownName(name)}}
		}
		data, file = text, "recipes/"+name+".yaml"
	}
	if file == "" {
		file = "inline recipe"
	}
	r, err := parse(file, data, pairs(overrides, seed, steps))
	if err != nil {
		return nil, err
	}
	text, err := r.Canonical()
	if err != nil {
		return nil, err
	}
	return &Resolved{Recipe: *r, JSON: text, Digest: schema.Digest(text)}, nil
}

func unknownName(name string) string {
	text := "no such built-in recipe"
	plain := strings.TrimSuffix(path.Base(name), ".yaml") // a file's name where only names are known
	if path.Base(path.Dir(name)) == "presets" {
		plain = presetFolder + plain
	}
	if near := nearest(plain, append(Builtin(), Presets()...)); near != "" {
		return text + "; did you mean " + near + "?"
	}
	return text + "; there are " + strings.Join(Builtin(), ", ") + " and presets/NAME (another recipe is given as a file or inline)"
}

func pairs(set []string, seed *uint64, steps *int) []override {
	var all []override
	for _, s := range set {
		all = append(all, override{origin: "--set " + s, text: s})
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
