package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/export"
)

type exportOptions struct {
	format, out, steps, only string
	step, gen                int
}

func (a *app) exportCommand() *cobra.Command {
	o := exportOptions{}
	cmd := &cobra.Command{
		Use:   "export RUN",
		Short: "write a run's trajectories for other programs",
		Long: "export writes the trajectories of a run's finished steps, one step after the other:\n\n" +
			"  openai   JSON lines, a conversation each: messages in OpenAI's chat format with tool_calls, and\n" +
			"           task_id, trial, reward, step, … beside them. An imported conversation has the messages\n" +
			"           that it came with. `ropewalk import openai` reads the lines back.\n" +
			"  sft      JSON lines for supervised fine-tuning: prompt (the messages before the first response) and\n" +
			"           completion (from there to the last response), as TRL's SFTTrainer takes them. Only kept\n" +
			"           trajectories with a positive reward; --only positive adds those that resampling dropped.\n" +
			"  parquet  one table, a row a trajectory: rewards, selection, advantage, token lists, messages as\n" +
			"           JSON text, and turns with their tool_calls as nested lists.",
		Example: "  ropewalk export quickstart-s1-20260102-030405 --format openai --step 3 -o step3.jsonl\n" +
			"  ropewalk export quickstart-s1-20260102-030405 --format sft --steps 60-85 -o - | head -1\n" +
			"  ropewalk export quickstart-s1-20260102-030405 --format parquet -o episodes.parquet",
		Args: oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := o.options(args[0], cmd.Flags().Changed)
			if err != nil {
				return err
			}
			return a.export(cmd.Context(), options, o.out)
		},
	}
	cmd.Flags().StringVar(&o.format, "format", "openai", "`FORMAT`: openai, sft or parquet")
	cmd.Flags().StringVarP(&o.out, "output", "o", "", "write to this `FILE`, into this folder, or to standard output (-)")
	cmd.Flags().IntVar(&o.step, "step", 0, "this `STEP` only")
	cmd.Flags().StringVar(&o.steps, "steps", "", "these steps only: `A-B`, both included")
	cmd.Flags().IntVar(&o.gen, "gen", 0, "read generation `N` of the stages that a replay has made anew (default: what the heads name)")
	cmd.Flags().StringVar(&o.only, "only", "", "kept, positive or all (default: all; sft: kept and positive)")
	return cmd
}

// options checks the flags.
func (o exportOptions) options(run string, given func(string) bool) (export.Options, error) {
	out := export.Options{Run: run, Format: export.Format(o.format), Only: export.Only(o.only)}
	var err error
	switch out.Format {
	case export.OpenAI, export.SFT, export.Parquet:
	default:
		return out, badInput("--format: must be openai, sft or parquet, got %q", o.format)
	}
	if out.Only, err = o.choice(out.Format); err != nil {
		return out, err
	}
	switch {
	case o.out == "":
		return out, badInput("-o: say where to write: a file, a folder, or - for standard output")
	case o.out == "-" && out.Format == export.Parquet:
		return out, badInput("-o -: a Parquet file cannot be written to standard output; name a file")
	case given("step") && given("steps"):
		return out, badInput("--step and --steps: choose one")
	case given("step") && o.step < 1:
		return out, badInput("--step: must be ≥ 1, got %d", o.step)
	case given("gen") && o.gen < 0:
		return out, badInput("--gen: must be ≥ 0, got %d", o.gen)
	}
	if given("gen") {
		out.Gen = &o.gen
	}
	out.First, out.Last = o.step, o.step
	if given("steps") {
		out.First, out.Last, err = stepRange(o.steps)
	}
	return out, err
}

func (o exportOptions) choice(f export.Format) (export.Only, error) {
	only := export.Only(o.only)
	switch {
	case only == "" && f == export.SFT:
		return export.KeptPositive, nil
	case only == "":
		return export.All, nil
	case only != export.All && only != export.Kept && only != export.Positive:
		return "", badInput("--only: must be kept, positive or all, got %q", o.only)
	case f == export.SFT && only != export.Positive:
		return "", badInput("--only %s: sft teaches what it writes, so it writes positive trajectories alone; leave the flag out, or give positive", only)
	}
	return only, nil
}

// stepRange reads A-B.
func stepRange(text string) (first, last int, err error) {
	a, b, ok := strings.Cut(text, "-")
	first, errA := strconv.Atoi(a)
	last, errB := strconv.Atoi(b)
	if !ok || errA != nil || errB != nil || first < 1 || last < first {
		return 0, 0, badInput("--steps: must be A-B with 1 ≤ A ≤ B, got %q", text)
	}
	return first, last, nil
}

func (a *app) export(ctx context.Context, o export.Options, out string) (err error) {
	target, err := a.target(out, o.Run+o.Format.Ext())
	if err != nil {
		return err
	}
	defer target.discard() // once it is kept there is nothing to discard
	s, err := a.read(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	record, err := s.record()
	if err != nil {
		return err
	}
	view := &exportProgress{a: a}
	o.Progress = view.show
	done, err := export.Write(ctx, record, target, o)
	view.clear()
	if errors.Is(err, export.ErrNoSteps) || errors.Is(err, analysis.ErrNoGeneration) {
		return badInputError{err}
	}
	if err != nil {
		return missing(err)
	}
	if err := target.keep(); err != nil {
		return err
	}
	fmt.Fprintf(a.err, "written to %s: trajectories %d, not chosen %d, steps %d\n", target.name, done.Episodes, done.Skipped, done.Steps)
	return nil
}

// exportProgress tells how far a long export is: on a terminal in one line that is drawn again,
// elsewhere in a line now and then.
type exportProgress struct {
	a     *app
	last  time.Time
	drawn bool
}

// often is how often progress is told where lines stay.
const often = 5 * time.Second

func (v *exportProgress) show(p export.Progress) {
	if v.last.IsZero() {
		v.last = time.Now()
	}
	switch {
	case v.a.terminal && time.Since(v.last) > often/50:
		fmt.Fprintf(v.a.err, "\r\x1b[Kstep %d of %d, %d trajectories", p.Steps, p.OfSteps, p.Episodes)
		v.drawn = true
	case !v.a.terminal && time.Since(v.last) > often:
		fmt.Fprintf(v.a.err, "step %d of %d, %d trajectories\n", p.Steps, p.OfSteps, p.Episodes)
	default:
		return
	}
	v.last = time.Now()
}

func (v *exportProgress) clear() {
	if v.drawn {
		fmt.Fprint(v.a.err, "\r\x1b[K")
	}
}
