package replay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/grading"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// Recipe applies overrides to a run's committed recipe and validates the whole result. It refuses an override of a
// field that the replayed stages do not read, because the override would change nothing.
func Recipe(run string, committed *recipes.Recipe, set, replayed []string) (*recipes.Recipe, error) {
	if unread := unreadOverrides(set, replayed); len(unread) > 0 {
		return nil, unread
	}
	text, err := committed.Canonical()
	if err != nil {
		return nil, err
	}
	recipe, err := recipes.ParseCommitted("recipe of run "+run, text, set)
	if err != nil {
		return nil, err
	}
	// An optional stage before the update is left out if the recipe does not have it, unless the replay begins there.
	for _, stage := range []string{replayed[0], replayed[len(replayed)-1]} {
		if declared, _ := stages.Of(stage); !declared.Runs(recipe.Needs()) {
			return nil, badinput.Errorf("from, through: %s runs only if %s, and that of run %s does not; replay the "+
				"stages before it", stage, declared.If, run)
		}
	}
	if slices.Contains(replayed, schema.StageReward) {
		return recipe, grading.FromRecord(recipe.Reward.Name)
	}
	return recipe, nil
}

// unreadOverrides finds the overrides of known recipe fields that no replayed stage reads.
func unreadOverrides(set, replayed []string) recipes.Problems {
	known := map[string]bool{}
	for _, f := range recipes.Fields() {
		known[f.Path] = true
	}
	var out recipes.Problems
	for _, s := range set {
		path, _, _ := strings.Cut(s, "=")
		part, _, _ := strings.Cut(path, ".")
		if known[part] && !slices.ContainsFunc(replayed, func(stage string) bool { return readsPath(stage, path) }) {
			out = append(out, recipes.Problem{File: "--set " + s, Path: path, Message: "no replayed stage reads it; " +
				readWords(replayed)})
		}
	}
	return out
}

// readsPath reports whether a stage reads a field of the recipe.
func readsPath(stage, path string) bool {
	declared, _ := stages.Of(stage)
	return slices.ContainsFunc(declared.Recipe, func(part string) bool {
		return path == part || strings.HasPrefix(path, part+".")
	})
}

func readWords(replayed []string) string {
	var parts []string
	for _, stage := range replayed {
		declared, _ := stages.Of(stage)
		reads := declared.Recipe[0] + ".*"
		for _, more := range declared.Recipe[1:] {
			reads += " and " + more
		}
		parts = append(parts, fmt.Sprintf("%s reads %s", stage, reads))
	}
	return strings.Join(parts, ", ")
}
