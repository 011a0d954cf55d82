package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/experiment"
	"github.com/ropewalk/ropewalk/experiment/trials"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/cause"
	"github.com/ropewalk/ropewalk/internal/runs"
)

// experimentCommand compares recipes.
func experimentCommand(con *console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "experiment",
		Short: "train many runs as one experiment, and compare them",
		Long: "experiment trains the trials that a file names: arms, which are recipes with settings, times seeds.\n" +
			"It compares outcomes of the arms, paired by seed. docs/experiments.md describes the file.",
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(experimentRunCommand(con), experimentShowCommand(con), experimentReportCommand(con),
		experimentExportCommand(con), experimentDeleteCommand(con))
	return cmd
}

// opened is an experiment's file with its trials.
type opened struct {
	*experiment.File
	path    string
	sources experiment.Sources
	trials  []experiment.Trial
	results string // the folder of results
}

// openExperiment reads an experiment's file, and the recipes that it names next to it.
func openExperiment(path, results string) (*opened, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, badInput("no experiment file %s", path)
	}
	if err != nil {
		return nil, badInput("read experiment %s: %w", path, cause.Of(err))
	}
	f, err := experiment.Parse(path, text)
	if err != nil {
		return nil, badinput.Of(err)
	}
	o := &opened{File: f, path: path, sources: experiment.Sources{}, results: results}
	if results == "" {
		o.results = filepath.Join(filepath.Dir(path), "results")
	}
	for _, name := range f.Recipes() {
		file := name
		if !filepath.IsAbs(name) {
			file = filepath.Join(filepath.Dir(path), name)
		}
		_, recipe, err := readRecipeFile(file)
		if err != nil {
			return nil, badInput("%s: %w", path, err)
		}
		o.sources[name] = recipe
	}
	code := ""
	if f.Program {
		if code, err = codeDigest(); err != nil {
			return nil, err
		}
	}
	if o.trials, err = f.Expand(o.sources, code); err != nil {
		return nil, badinput.Of(err)
	}
	return o, nil
}

// observe reads how the trials are, from files of results and from the record.
func (o *opened) observe(ctx context.Context, con *console) ([]experiment.Observed, error) {
	s, record, err := readRecord(ctx, con)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	observed, err := con.connector().Observe(ctx, s)
	if err != nil {
		return nil, err
	}
	return trials.Reader{Record: record.WithServer(observed), Folder: o.results}.Observe(ctx, o.Outcomes, o.trials)
}

// id is that of the experiment's workflow.
func (o *opened) id() string { return runs.ExperimentID(o.Name) }

// resultsFlag adds --results.
func resultsFlag(cmd *cobra.Command, results *string) {
	cmd.Flags().StringVar(results, "results", "", "the `FOLDER` of the trials' results, which are taken as done "+
		"(default: results, next to FILE)")
}

// readOptions are the options of commands that read trials.
type readOptions struct{ results, axis string }

func (r *readOptions) add(cmd *cobra.Command) {
	resultsFlag(cmd, &r.results)
	cmd.Flags().StringVar(&r.axis, "axis", "", "compare over this `AXIS` instead of the file's: steps, tokens, calls, "+
		"updates or seconds")
}

func (r readOptions) open(path string) (*opened, error) {
	o, err := openExperiment(path, r.results)
	if err != nil {
		return nil, err
	}
	if err := o.Along(r.axis); err != nil {
		return nil, badInput("--axis: %w", err)
	}
	return o, nil
}

func experimentShowCommand(con *console) *cobra.Command {
	read := readOptions{}
	cmd := &cobra.Command{
		Use:   "show FILE",
		Short: "print the trials of an experiment, and the differences between its arms",
		Long: "show reads the trials from their files of results and from the record, also while they run. A\n" +
			"difference is paired by seed. It has 95% intervals by Student's t and by the bootstrap, a p value that\n" +
			"is corrected for the number of differences, and the number of seeds that it needs.",
		Example: "  ropewalk experiment show experiments/quickstart.yaml",
		Args:    exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := read.open(args[0])
			if err != nil {
				return err
			}
			observed, err := o.observe(cmd.Context(), con)
			if err != nil {
				return err
			}
			r := o.Report(observed)
			return con.render(r, r.Write)
		},
	}
	read.add(cmd)
	con.jsonFlag(cmd, oneObject)
	return cmd
}

// note says on standard error what a command did.
func (o *opened) note(con *console, format string, args ...any) {
	fmt.Fprintf(con.err, o.Name+": "+format+"\n", args...)
}
