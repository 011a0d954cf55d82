package runs

import (
	"context"
	"fmt"
	"io"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/schema"
)

// Confirm lets workers of the local stack use the programs and secrets that the recipe of an open run names. It says
// which.
func (s *Session) Confirm(ctx context.Context, run string, say io.Writer) error {
	last, err := LastOf(ctx, s.Temporal, run)
	if err != nil {
		return err
	}
	if !last.Open {
		return badinput.Errorf("--confirm: run %s is not open", run)
	}
	recipe, _, err := openInput(ctx, s.Temporal, last)
	if err != nil {
		return fmt.Errorf("read what run %s was started with: %w", run, err)
	}
	if recipe == nil {
		return badinput.Errorf("--confirm: run %s continues under a committed recipe, which needs none", run)
	}
	for _, named := range recipe.Recipe.Privileged() {
		fmt.Fprintf(say, "confirmed  %s\n", named)
	}
	return s.confirm(ctx, run, recipe.Digest)
}

// confirm notes that the user lets workers have what a recipe names.
func (s *Session) confirm(ctx context.Context, run, digest string) error {
	return s.Note(ctx, run, schema.DeedConfirm, digest)
}
