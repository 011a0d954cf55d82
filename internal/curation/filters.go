package curation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/recipes"
)

// mostGrams bounds the n-grams of the evaluation sets: about 1.5 GB of memory.
const mostGrams = 20_000_000

// FiltersOf makes the filters of a data section that read tasks alone, without another run's outcomes and a model's
// answers. read is called after each further evaluation set, with its number and the digest of its file.
func FiltersOf(ctx context.Context, d recipes.Data, list env.Lister, read func(i int, digest string)) (Filters, error) {
	f := Filters{IntegerAnswers: d.IntegerAnswers, Deduplicate: d.Deduplicate}
	if d.Decontaminate == nil {
		return f, nil
	}
	f.Evaluation = newGrams(d.Decontaminate.NGram, mostGrams)
	tasks, err := list.Tasks(ctx, env.HeldOut)
	if err == nil {
		err = f.Evaluation.addAll("the held-out tasks", tasks)
	}
	if err != nil {
		return f, err
	}
	for i, path := range d.Decontaminate.Against {
		tasks, digest, err := list.TasksAt(ctx, path)
		if err != nil {
			return f, fmt.Errorf("data.decontaminate.against: %w", err)
		}
		if err := f.Evaluation.addAll(path, tasks); err != nil {
			return f, err
		}
		read(i, digest)
	}
	return f, nil
}

func (g *gramSet) addAll(set string, tasks []env.Task) error {
	for _, t := range tasks {
		if err := g.Add(set, t.Text); err != nil {
			return err
		}
	}
	return nil
}

// DropsAll is the error of filters that keep no task. dropped counts the tasks by the filter that drops them.
func DropsAll(tasks int, world string, dropped map[string]int) error {
	var counts []string
	for _, reason := range slices.Sorted(maps.Keys(dropped)) {
		counts = append(counts, fmt.Sprintf("%d as %s", dropped[reason], reason))
	}
	return badinput.Errorf("data: the filters drop all of the %d training tasks of %s: %s", tasks, world,
		strings.Join(counts, ", "))
}
