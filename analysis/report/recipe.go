package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/compare"
	"github.com/ropewalk/ropewalk/recipes"
)

// noRecipe is why the figures of the recipe are empty.
const noRecipe = "The run has not committed its recipe yet."

// recipeTable makes a table of the fields of the run's recipe that take accepts.
func recipeTable(d data, f *Figure, take func(recipes.Listed) bool) error {
	if d.origin == nil {
		f.Empty = noRecipe
		return nil
	}
	listed, err := recipes.List(d.origin.Recipe)
	if err != nil {
		return err
	}
	f.Table = &Table{Columns: []string{"field", "value", "default", "what it is"}, Text: true}
	for _, l := range listed {
		if take(l) {
			f.Table.Rows = append(f.Table.Rows,
				dashCells([]string{l.Path, recipes.Plain(l.Value), recipes.Plain(l.Default), l.Doc}))
		}
	}
	return nil
}

// dashCells puts a dash into empty cells.
func dashCells(row []string) []string {
	for i := range row {
		row[i] = cmp.Or(row[i], "–")
	}
	return row
}

// inHeader are fields that say nothing about how the run trained.
var inHeader = []string{"version", "name", "description", "extends"}

// recipeChosen lists what the recipe sets.
var recipeChosen = figure{
	id: "recipe-chosen", title: "What the recipe sets",
	note: "The fields of the resolved recipe that differ from their defaults, or that have none (–). A default may " +
		"depend on a choice, such as the loss.",
	draw: func(d data, f *Figure) error {
		err := recipeTable(d, f, func(l recipes.Listed) bool {
			return !l.Standard() && !slices.Contains(inHeader, l.Path)
		})
		if err != nil || f.Table == nil {
			return err
		}
		var recipe struct {
			Environment recipes.Environment `json:"environment"`
		}
		if err := json.Unmarshal(d.origin.Recipe, &recipe); err != nil {
			return err
		}
		if of := d.origin.Fork; of.Run != "" {
			f.Note += fmt.Sprintf(" The run is a fork of run %s: steps 1 to %d are that run's.", of.Run, of.Step)
		}
		for _, world := range recipe.Environment.Worlds() {
			f.Note += fmt.Sprintf(" The environment %s.", world)
		}
		for _, a := range d.origin.Amendments {
			f.Note += fmt.Sprintf(" From step %d the run went on with %s", a.From, strings.Join(a.Set, " "))
			if a.Actor != "" {
				f.Note += fmt.Sprintf(", as %s asked", a.Actor)
			}
			f.Note += "."
		}
		return nil
	},
}

// recipeStandard lists the rest of the recipe.
var recipeStandard = figure{
	id: "recipe-standard", title: "What has its default",
	draw: func(d data, f *Figure) error {
		if err := recipeTable(d, f, recipes.Listed.Standard); err != nil || f.Table == nil {
			return err
		}
		f.Table.Folded = fmt.Sprintf("%d fields", len(f.Table.Rows))
		return nil
	},
}

// madeBy lists what made the run.
var madeBy = figure{
	id: "made-by", title: "Made by",
	note: "Digests of the program, the recipe and the first policy; the engine, and what the warm start computed with.",
	draw: func(d data, f *Figure) error {
		if d.origin == nil {
			f.Empty = noRecipe
			return nil
		}
		f.Table = &Table{Columns: []string{"", ""}, Text: true}
		for _, r := range compare.MadeBy([]analysis.Origin{*d.origin}) {
			if r.Values[0] != "" {
				f.Table.Rows = append(f.Table.Rows, []string{r.Name, compare.Short(r.Values[0])})
			}
		}
		return nil
	},
}
