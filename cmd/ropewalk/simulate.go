package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/cause"
	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/internal/simulate"
	"github.com/ropewalk/ropewalk/internal/spelling"
	"github.com/ropewalk/ropewalk/rl/scheduler"
)

func simulateCommand(con *console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "predict how long something takes, without running it",
		Args:  noSuchCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(simulateRolloutCommand(con))
	return cmd
}

type simulateOptions struct {
	reserve, file, lengths string
	step, need             int
	hold, blind, json      bool
}

func simulateRolloutCommand(con *console) *cobra.Command {
	o := simulateOptions{}
	cmd := &cobra.Command{
		Use:   "rollout FILE|PRESET",
		Short: "simulate a rollout on many engines: the scheduler, static allocation, and the bound of both",
		Long: "rollout simulates the engines, rollouts, tools and failures of a workload file, under the rollout " +
			"scheduler\n" +
			"and under static allocation, and prints how long they take next to a time that no schedule can beat.\n" +
			"With --lengths the rollouts are those of a run's record, with the times of its tool calls. With -o " +
			"it draws\n" +
			"every engine over time. The built-in workloads are:\n" + listed(
			simulate.Presets(),
			96,
		),
		Example: "  ropewalk simulate rollout rstar2 -o engines.svg\n" +
			"  ropewalk simulate rollout workload.yaml --reserve expected\n" +
			"  ropewalk simulate rollout math-few --lengths quickstart-s1-20260102-030405 --step 3",
		Args: exactly("FILE|PRESET"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd.Flags().Changed("step")); err != nil {
				return err
			}
			return simulateRollout(cmd.Context(), con, args[0], o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.reserve, "reserve", string(scheduler.WorstStretch), "the `ROOM` that an episode is given: stretch "+
		"(the worst case of its next stretch), worst (of the whole episode), or expected (its expected length; "+
		"engines evict)")
	f.BoolVar(&o.hold, "hold", false, "keep an episode's room during every tool call, not for a second only")
	f.BoolVar(&o.blind, "blind", false, "do not tell the scheduler the mean length of the rollouts")
	f.IntVar(&o.need, "need", 0, "stop the other rollouts of a group when `N` have ended; this favours short rollouts")
	f.StringVar(&o.lengths, "lengths", "", "take the rollouts from the record of this `RUN`")
	f.IntVar(&o.step, "step", 1, "of this `STEP`, with --lengths")
	f.StringVarP(&o.file, "output", "o", "", "draw every engine over time into this SVG `FILE`")
	f.BoolVar(&o.json, "json", false, "print one JSON object")
	return cmd
}

// listed breaks names into lines.
func listed(names []string, width int) string {
	var b strings.Builder
	used := 0
	for i, n := range names {
		if i > 0 {
			n = ", " + n
		}
		if used+len(n) > width {
			b.WriteString(",\n")
			n, used = strings.TrimPrefix(n, ", "), 0
		}
		b.WriteString(n)
		used += len(n)
	}
	return b.String()
}

func (o *simulateOptions) check(stepGiven bool) error {
	switch {
	case stepGiven && o.lengths == "":
		return badInput("--step: is a step of a run's record; add --lengths")
	case o.step < 1:
		return badInput("--step: must be ≥ 1, got %d", o.step)
	case o.need < 0:
		return badInput("--need: must be ≥ 0, got %d", o.need)
	}
	switch scheduler.Reserve(o.reserve) {
	case scheduler.WorstStretch, scheduler.Worst, scheduler.Expected:
		return nil
	}
	return badInput("--reserve: must be stretch, worst or expected, got %q", o.reserve)
}

func (o *simulateOptions) options() simulate.Options {
	s := scheduler.Default()
	s.Reserve, s.Hold, s.Need = scheduler.Reserve(o.reserve), o.hold, o.need
	return simulate.Options{Settings: s, Blind: o.blind}
}

func simulateRollout(ctx context.Context, con *console, workload string, o simulateOptions) error {
	name, text, err := readWorkload(workload)
	if err != nil {
		return err
	}
	w, err := simulate.Parse(workload, text)
	if err != nil {
		return badinput.Of(err)
	}
	job, err := w.Draw()
	if err != nil {
		return badInput("%s: %w", workload, err)
	}
	if o.lengths != "" {
		if err := takeLengths(ctx, con, job, o); err != nil {
			return err
		}
		name += " with the rollouts of " + o.lengths
	}
	var picture *target
	if o.file != "" {
		if picture, err = con.target(o.file, filepath.Base(name)+".svg"); err != nil {
			return err
		}
		defer picture.discard() // does nothing once the file is kept
	}
	c, err := simulate.Compare(name, job, o.options())
	if err != nil {
		return err
	}
	if picture != nil {
		if err := errors.Join(c.WriteSVG(picture), picture.keep()); err != nil {
			return err
		}
		fmt.Fprintf(con.err, "wrote %s\n", picture.name)
	}
	if o.json {
		return con.printJSON(c)
	}
	return c.WriteText(con.out)
}

// readWorkload returns the text of a workload file or of a built-in workload.
func readWorkload(name string) (short string, text []byte, err error) {
	if text, ok := simulate.Preset(name); ok {
		return name, text, nil
	}
	text, err = os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		if meant := spelling.AllNearest(name, simulate.Presets()); len(meant) > 0 {
			return "", nil, badInput("no workload file %s; did you mean %s?", name, spelling.OrList(meant))
		}
		return "", nil, badInput("no workload file %s; the built-in workloads are %s", name,
			strings.Join(simulate.Presets(), ", "))
	}
	if err != nil {
		return "", nil, badInput("read workload %s: %w", name, cause.Of(err))
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return "", nil, badInput("%s: the file is empty", name)
	}
	return strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)), text, nil
}

// takeLengths replaces the job's rollouts by those of a run's record.
func takeLengths(ctx context.Context, con *console, job *simulate.Job, o simulateOptions) error {
	s, record, err := readRecord(ctx, con)
	if err != nil {
		return err
	}
	defer s.Close()
	v, err := record.Visible(ctx, o.lengths)
	if err != nil {
		return runs.Missing(err)
	}
	rollouts, err := v.Lengths(ctx, o.step)
	if err != nil {
		return runs.Missing(err)
	}
	if err := job.Take(rollouts); err != nil {
		return badInput("--lengths %s: %w", o.lengths, err)
	}
	return nil
}
