package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ropewalk/ropewalk/analysis/export"
	"github.com/ropewalk/ropewalk/internal/badinput"
)

// isPublished reports whether an argument of export is a model that belongs to no run: an address, a path or a GGUF
// file.
func isPublished(arg string) bool {
	return strings.Contains(arg, "://") || isFolder(arg) || strings.HasSuffix(arg, ".gguf")
}

// published exports a model that belongs to no run.
func (o exportOptions) published(ctx context.Context, con *console, model string, given func(string) bool) error {
	if given("checkpoint") {
		return badInput("--checkpoint: %s is a model and not a run: it has no others", model)
	}
	if o.model.checkpoint = export.Latest; !o.isModel(given) {
		return badInput("%s is a model: name what to change with --untied, --dtype, --merge or --format gguf", model)
	}
	options, err := o.modelOptions("", given)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "ropewalk-export-")
	if err != nil {
		return fmt.Errorf("make a scratch folder: %w", err)
	}
	defer os.RemoveAll(scratch)
	folder, name, err := servedFolder(ctx, con, model, scratch)
	if err != nil {
		return err
	}
	err = export.Published(folder, name, options, o.out)
	switch {
	case errors.Is(err, export.ErrTaken):
		return badInput("-o %w", err)
	case errors.Is(err, export.ErrModel):
		return badinput.Of(err)
	case err != nil:
		return err
	}
	fmt.Fprintf(con.err, "written to %s: %s\n", filepath.Clean(o.out), model)
	return nil
}
