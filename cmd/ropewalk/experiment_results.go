package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/metrics"
	"github.com/ropewalk/ropewalk/experiment/trials"
	"github.com/ropewalk/ropewalk/internal/runs"
)

// watchEvery is how often a watched page is written.
const watchEvery = 10 * time.Second

func experimentReportCommand(con *console) *cobra.Command {
	read, file, figure, watch := readOptions{}, "", "", false
	cmd := &cobra.Command{
		Use:   "report FILE",
		Short: "write what an experiment has found as one HTML page",
		Long: "report writes one page without scripts: differences between arms with their intervals, the curves of\n" +
			"each arm over the budget's axis, what each trial cost, and the settings that differ. With --watch it\n" +
			"writes the page again until all trials are done, and browsers load it again. With --figure it writes\n" +
			"one figure of the page as an SVG file.",
		Example: "  ropewalk experiment report experiments/quickstart.yaml -o quickstart.html --watch",
		Args:    exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := read.open(args[0])
			if err != nil {
				return err
			}
			for {
				more, err := o.writePage(cmd.Context(), con, file, figure)
				if err != nil || !watch || !more {
					return err
				}
				select {
				case <-cmd.Context().Done():
					return cmd.Context().Err()
				case <-time.After(watchEvery):
				}
			}
		},
	}
	read.add(cmd)
	cmd.Flags().StringVarP(&file, "output", "o", "", "write to this `FILE` (default NAME.html, or NAME-FIGURE.svg)")
	cmd.Flags().StringVar(&figure, "figure", "", "write only this `FIGURE`, as SVG: curve-OUTCOME or "+
		"difference-OUTCOME")
	cmd.Flags().BoolVar(&watch, "watch", false, "write the page every ten seconds until all trials are done")
	return cmd
}

// writePage writes the page, or one figure of it, and reports whether trials are left.
func (o *opened) writePage(ctx context.Context, con *console, file, figure string) (more bool, err error) {
	name := o.Name + ".html"
	if figure != "" {
		name = o.Name + "-" + figure + ".svg"
	}
	target, err := con.target(cmp.Or(file, name), name)
	if err != nil {
		return false, err
	}
	defer target.discard() // does nothing once the file is kept
	observed, err := o.observe(ctx, con)
	if err != nil {
		return false, err
	}
	page, err := trials.NewPage(o.File, observed)
	if err != nil {
		return false, err
	}
	write := page.WriteHTML
	if figure != "" {
		drawing, err := page.Drawing(figure)
		if err != nil {
			return false, badInput("--figure: %w", err)
		}
		write = drawing.WriteSVG
	}
	return page.Refresh > 0, writePage(con, target, write)
}

func experimentExportCommand(con *console) *cobra.Command {
	out := ""
	cmd := &cobra.Command{
		Use:   "export FILE -o FOLDER",
		Short: "write the metrics of an experiment's trials for TensorBoard",
		Long: "export writes TensorBoard's event files to FOLDER/ARM/seed-N, so that TensorBoard groups the\n" +
			"trials by arm. `python -m ropewalk.trackers wandb RUN --group ARM` does the same for W&B.",
		Example: "  ropewalk experiment export experiments/quickstart.yaml -o tracked",
		Args:    exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return badInput("-o: name a folder")
			}
			o, err := openExperiment(args[0], "")
			if err != nil {
				return err
			}
			return o.export(cmd.Context(), con, out)
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "write to this `FOLDER`")
	return cmd
}

// export writes the event files of the trials that the record has.
func (o *opened) export(ctx context.Context, con *console, out string) error {
	s, record, err := readRecord(ctx, con)
	if err != nil {
		return err
	}
	defer s.Close()
	written := 0
	for _, t := range o.trials {
		steps, err := metrics.Compute(ctx, record, t.Run)
		if errors.Is(err, metrics.ErrNone) || errors.Is(err, analysis.ErrNoRun) {
			continue
		}
		if err != nil {
			return err
		}
		arm := strings.NewReplacer("/", "_", " ", "_").Replace(t.Arm)
		if _, err := writeEvents(con, out, filepath.Join(arm, fmt.Sprintf("seed-%d", t.Seed)), steps); err != nil {
			return err
		}
		written++
	}
	if written == 0 {
		return badInput("%s: the record has no step of any trial yet", o.path)
	}
	o.note(con, "%d of %d trials written to %s; tensorboard --logdir %s shows them", written, len(o.trials), out, out)
	return nil
}

func experimentDeleteCommand(con *console) *cobra.Command {
	dry := false
	cmd := &cobra.Command{
		Use:   "delete FILE",
		Short: "delete the runs of an experiment's trials",
		Long: "delete removes the runs of the trials as `ropewalk delete` removes a run: open ones are refused.\n" +
			"Other experiments may share them. The files of results stay.",
		Example: "  ropewalk experiment delete experiments/quickstart.yaml --dry-run",
		Args:    exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := openExperiment(args[0], "")
			if err != nil {
				return err
			}
			s, err := con.connector().Join(cmd.Context(), runs.NeedTemporal) // for all of them
			if err != nil {
				return err
			}
			defer s.Close()
			for _, t := range o.trials {
				if err := deleteRun(cmd.Context(), con, t.Run, dry); err != nil && !errors.Is(err, analysis.ErrNoRun) {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print what would be deleted, and delete nothing")
	return cmd
}
