package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis/report"
)

func (a *app) reportCommand() *cobra.Command {
	file, gen := "", generationFlag{}
	cmd := &cobra.Command{
		Use:   "report RUN",
		Short: "write a run's report as one HTML page that works offline",
		Long: "report draws how a run went: learning curves with bootstrap intervals, success by level, the\n" +
			"selection of trajectories, the update, the times, and a few trajectories turn by turn with their\n" +
			"tokens coloured by log-probability, entropy or advantage. Every figure shows the SQL that made it.\n" +
			"With --gen all the generations of replayed steps are set side by side.",
		Example: "  ropewalk report quickstart-s1-20260102-030405 -o report.html",
		Args:    oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.reportPage(cmd.Context(), args[0], cmp.Or(file, args[0]+".html"), gen)
		},
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "write to this `FILE` (default RUN.html)")
	gen.add(cmd)
	return cmd
}

func (a *app) reportPage(ctx context.Context, run, file string, gen generationFlag) (err error) {
	target, err := newTarget(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.abandon()) }()
	s, err := a.join(ctx, needStore)
	if err != nil {
		return err
	}
	defer s.close()
	page, err := report.Gather(ctx, report.Options{Store: s.store, Cache: cacheFolder(), Run: run, Gen: gen.Generation})
	if err != nil {
		return missing(err)
	}
	if err := page.WriteHTML(target); err != nil {
		return err
	}
	if err := target.commit(); err != nil {
		return err
	}
	fmt.Fprintf(a.err, "wrote %s\n", file)
	return nil
}

// target is a file that comes into place whole or not at all.
type target struct {
	*os.File
	path string
	done bool
}

// newTarget opens a temporary file beside path; that it cannot is the caller's to mend.
func newTarget(path string) (*target, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, badInput("-o %s: is a folder; name a file", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".ropewalk-*")
	if err != nil {
		return nil, badInput("-o %s: cannot be written: %w", path, err)
	}
	return &target{File: f, path: path}, nil
}

func (t *target) commit() error {
	if err := errors.Join(t.Chmod(0o644), t.Close()); err != nil {
		return fmt.Errorf("write %s: %w", t.path, err)
	}
	if err := os.Rename(t.Name(), t.path); err != nil {
		return fmt.Errorf("write %s: %w", t.path, err)
	}
	t.done = true
	return nil
}

// abandon removes the temporary file unless it has come into place.
func (t *target) abandon() error {
	if t.done {
		return nil
	}
	_ = t.Close() // it is thrown away
	return os.Remove(t.Name())
}
