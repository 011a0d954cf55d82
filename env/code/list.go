package code

import (
	"context"
	"fmt"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/dataset"
	"github.com/ropewalk/ropewalk/internal/refusal"
)

// Tasks lists the tasks of a split in the order of the files.
func (c *Code) Tasks(ctx context.Context, split env.Split) ([]env.Task, error) {
	if c.bank == nil {
		return nil, refusal.Unusablef("environment.settings.train: names no file, and generated tasks are not listed")
	}
	list := c.bank.HeldOut
	if split == env.Train {
		list = c.bank.Train
	}
	all, err := list(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the tasks: %w", err)
	}
	return tasksOf(all)
}

// TasksAt reads the tasks of another file.
func (c *Code) TasksAt(ctx context.Context, path string) ([]env.Task, string, error) {
	all, digest, err := dataset.LoadSet(ctx, c.fields.Fields, path, format, read)
	if err != nil {
		return nil, "", err
	}
	tasks, err := tasksOf(all)
	return tasks, digest, err
}

func tasksOf(all []function) ([]env.Task, error) {
	out := make([]env.Task, len(all))
	for i, one := range all {
		var err error
		if out[i], err = one.task(); err != nil {
			return nil, err
		}
	}
	return out, nil
}
