package main

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis/inspect"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/cause"
	"github.com/ropewalk/ropewalk/store"
)

func inspectCommand(con *console) *cobra.Command {
	rows := 3
	cmd := &cobra.Command{
		Use:   "inspect FILE|KEY",
		Short: "show what one file of the record contains",
		Long: "inspect prints the schema, statistics, digest and first rows of a Parquet shard or a training batch,\n" +
			"and the contents of a manifest, a head, another JSON document or list, or a checkpoint's safetensors.\n" +
			"The argument is a file or a key of the store. If the file is damaged, the exit code is 1.",
		Example: "  ropewalk inspect .ropewalk/s3/ropewalk/runs/run=r/table=rewards/step=1/gen=0/" +
			"00000-0123456789abcdef.parquet\n" +
			"  ropewalk inspect runs/run=r/heads/step=1.json --json",
		Args: exactly("FILE|KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if rows < 0 {
				return badInput("--rows: must be ≥ 0, got %d", rows)
			}
			return inspectFile(cmd.Context(), con, args[0], rows)
		},
	}
	cmd.Flags().IntVar(&rows, "rows", rows, "print this many rows of a shard")
	con.jsonFlag(cmd, oneObject)
	return cmd
}

func inspectFile(ctx context.Context, con *console, name string, rows int) error {
	data, err := fileOrObject(ctx, con, name)
	if err != nil {
		return err
	}
	f, err := inspect.Inspect(name, data, rows)
	if errors.Is(err, inspect.ErrUnknown) {
		return badinput.Of(err)
	}
	if err != nil {
		return err
	}
	if con.asJSON {
		return f.WriteJSON(con.out)
	}
	return f.WriteText(con.out)
}

// fileOrObject reads a local file, or an object of the store if there is no such file.
func fileOrObject(ctx context.Context, con *console, name string) ([]byte, error) {
	data, err := os.ReadFile(name)
	if err == nil {
		return data, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, badInput("read %s: %w", name, cause.Of(err))
	}
	s, err := con.connector().Read(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	data, err = s.Store.Get(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return nil, badInput("%s: is neither a local file nor a key of %s", name, s.Store)
	}
	return data, err
}
