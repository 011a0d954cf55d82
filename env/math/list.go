package math

import (
	"context"
	"fmt"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/dataset"
)

// Tasks lists the tasks of a split in the order of the files.
func (m *Math) Tasks(ctx context.Context, split env.Split) ([]env.Task, error) {
	list := m.bank.HeldOut
	if split == env.Train {
		list = m.bank.Train
	}
	all, err := list(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the tasks: %w", err)
	}
	return tasksOf(all)
}

// TasksAt reads the tasks of another file.
func (m *Math) TasksAt(ctx context.Context, path string) ([]env.Task, string, error) {
	all, digest, err := dataset.LoadSet(ctx, m.fields.Fields, path, m.fields.format(), m.fields.read)
	if err != nil {
		return nil, "", err
	}
	tasks, err := tasksOf(all)
	return tasks, digest, err
}

func tasksOf(all []question) ([]env.Task, error) {
	out := make([]env.Task, len(all))
	for i, one := range all {
		var err error
		if out[i], err = one.task(); err != nil {
			return nil, err
		}
	}
	return out, nil
}
