package resolver

import (
	"context"
	"slices"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/remote"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// WorldCode is the listing of the Python that a recipe's environment runs; "" if it runs none.
func (r *Recipes) WorldCode(ctx context.Context, recipe *recipes.Recipe) (string, error) {
	python := func(p recipes.Part) bool { return p.Name == remote.Python.Name }
	if recipe.Environment.Name != remote.Python.Name && !slices.ContainsFunc(recipe.Environment.Parts, python) {
		return "", nil
	}
	world, err := r.World(recipe)
	if err != nil {
		return "", err
	}
	coded, ok := world.(env.Coded)
	if !ok {
		return "", nil
	}
	return coded.Code(ctx)
}

// codeNotes are the notes about the user's Python in the manifest of a recipe.
func codeNotes(m schema.Manifest) map[string]string {
	notes := map[string]string{}
	for _, name := range []string{schema.NoteRewardCode, schema.NoteEnvironmentCode} {
		if files, ok := m.Note[name]; ok {
			notes[name] = files
		}
	}
	return notes
}
