package commit

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// PutProgram notes what the program that works on a bucket was built from.
func PutProgram(ctx context.Context, objects store.Store, p schema.Program) error {
	text, err := schema.Canonical(p)
	if err != nil {
		return err
	}
	err = objects.PutIfAbsent(ctx, schema.ProgramKey(p.Code), text)
	if err != nil && !errors.Is(err, store.ErrExists) {
		return fmt.Errorf("note the program: %w", err)
	}
	return nil
}

// PutSpecification puts the specification of the format into a bucket, next to the runs that follow it. It leaves
// objects with the same bytes alone.
func PutSpecification(ctx context.Context, objects store.Store) error {
	for key, text := range schema.Specification() {
		there, err := objects.Get(ctx, key)
		if err == nil && bytes.Equal(there, text) {
			continue
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("read the format's specification: %w", err)
		}
		if err := objects.Put(ctx, key, text); err != nil {
			return fmt.Errorf("put the format's specification: %w", err)
		}
	}
	return nil
}
