package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ropewalk/ropewalk/internal/cause"
	"github.com/ropewalk/ropewalk/internal/spelling"
	"github.com/ropewalk/ropewalk/recipes"
)

// readRecipe returns the file's text, or no text for the name of a built-in recipe.
func readRecipe(recipe string) (name, text string, err error) {
	if _, ok := recipes.Source(recipe); ok {
		return recipe, "", nil
	}
	return readRecipeFile(recipe)
}

// readRecipeFile returns the text of a recipe's file.
func readRecipeFile(recipe string) (name, text string, err error) {
	data, err := os.ReadFile(recipe)
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", noRecipe(recipe)
	}
	if err != nil {
		return "", "", badInput("read recipe %s: %w", recipe, cause.Of(err))
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return "", "", badInput("%s: the file is empty", recipe)
	}
	return recipe, string(data), nil
}

// noRecipe says that a recipe is neither a file nor built in, and suggests files next to it, then built-in recipes.
func noRecipe(recipe string) error {
	meant := filesLike(recipe)
	if len(meant) == 0 {
		meant = recipes.Like(recipe)
	}
	if len(meant) > 0 {
		return badInput("no recipe file %s; did you mean %s?", recipe, spelling.OrList(meant))
	}
	return badInput("no recipe file %s; the built-in recipes are %s, and the presets (`ropewalk methods`)",
		recipe, strings.Join(recipes.Builtin(), ", "))
}

// filesLike returns the YAML files of the same folder that have nearly the name, or the name and another extension.
func filesLike(recipe string) (files []string) {
	folder := filepath.Dir(recipe)
	entries, _ := os.ReadDir(folder) // without the folder there is nothing to suggest
	var stems []string
	byStem := map[string]string{}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); !e.IsDir() && (ext == ".yaml" || ext == ".yml") {
			stem := strings.TrimSuffix(e.Name(), ext)
			stems = append(stems, stem)
			byStem[stem] = filepath.Join(folder, e.Name())
		}
	}
	name := filepath.Base(recipe)
	for _, stem := range spelling.AllNearest(strings.TrimSuffix(name, filepath.Ext(name)), stems) {
		files = append(files, byStem[stem])
	}
	return files
}
