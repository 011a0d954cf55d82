package recipes

import (
	"path"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/internal/spelling"
)

// mostLike bounds the number of recipes that a message suggests.
const mostLike = 6

// Like returns the recipes of the program that a name may mean: the one of that name in another folder, case or file
// type, else those whose names continue it (sapo: presets/sapo-webshop), else those with the nearest names.
func Like(name string) []string { return like(name, slices.Concat(Builtin(), Presets())) }

func like(name string, names []string) []string {
	word := plainName(name)
	plain := make([]string, len(names))
	for i, n := range names {
		plain[i] = plainName(n)
	}
	pick := func(fits func(plain string) bool) (out []string) {
		for i, p := range plain {
			if fits(p) && len(out) < mostLike {
				out = append(out, names[i])
			}
		}
		return out
	}
	if same := pick(func(p string) bool { return p == word }); len(same) > 0 {
		return same
	}
	if longer := pick(func(p string) bool { return strings.HasPrefix(p, word+"-") }); len(longer) > 0 {
		return longer
	}
	near := spelling.AllNearest(word, plain)
	return pick(func(p string) bool { return slices.Contains(near, p) })
}

// plainName returns a recipe's name without folders and file type, in lower case.
func plainName(name string) string {
	name = strings.ToLower(path.Base(name))
	return strings.TrimSuffix(strings.TrimSuffix(name, ".yaml"), ".yml")
}
