package main

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis/inspect"
	"github.com/ropewalk/ropewalk/store"
)

func (a *app) inspectCommand() *cobra.Command {
	rows, asJSON := 3, false
	cmd := &cobra.Command{
		Use:   "inspect FILE|KEY",
		Short: "say what is in one file of the record",
		Long: "inspect prints the schema, statistics, digest and first rows of a Parquet shard or a training\n" +
			"batch, and what is in a manifest, a head, another JSON document or a checkpoint's safetensors. The\n" +
			"argument is a file, or else a key of the store. A damaged file is named, and the exit code is 1.",
		Example: "  ropewalk inspect .ropewalk/s3/ropewalk/runs/run=r/table=rewards/step=1/gen=0/00000-0123456789abcdef.parquet\n" +
			"  ropewalk inspect runs/run=r/heads/step=1.json --json",
		Args: exactly("FILE|KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if rows < 0 {
				return badInput("--rows: must be ≥ 0, got %d", rows)
			}
			return a.inspect(cmd.Context(), args[0], rows, asJSON)
		},
	}
	cmd.Flags().IntVar(&rows, "rows", rows, "print this many rows of a shard")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func (a *app) inspect(ctx context.Context, name string, rows int, asJSON bool) error {
	data, err := a.fileOrObject(ctx, name)
	if err != nil {
		return err
	}
	f, err := inspect.Inspect(name, data, rows)
	if errors.Is(err, inspect.ErrUnknown) {
		return badInputError{err}
	}
	if err != nil {
		return err
	}
	if asJSON {
		return f.WriteJSON(a.out)
	}
	return f.WriteText(a.out)
}

// fileOrObject reads a local file, or else an object of the store.
func (a *app) fileOrObject(ctx context.Context, name string) ([]byte, error) {
	data, err := os.ReadFile(name)
	if err == nil {
		return data, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, badInput("read %s: %w", name, err)
	}
	s, err := a.read(ctx)
	if err != nil {
		return nil, err
	}
	defer s.close()
	data, err = s.store.Get(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return nil, badInput("%s: is neither a file here nor a key of %s", name, s.store)
	}
	return data, err
}
