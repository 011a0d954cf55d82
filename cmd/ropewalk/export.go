package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/export"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/runs"
)

type exportOptions struct {
	format, out, steps, only string
	step, gen                int
	model                    modelFlags
}

func exportCommand(con *console) *cobra.Command {
	o := exportOptions{}
	cmd := &cobra.Command{
		Use:   "export RUN|MODEL",
		Short: "write a run's trajectories, metrics or a checkpoint for other programs",
		Long: "export writes the trajectories of a run's finished steps, step by step. export fails if the head\n" +
			"of one of them is missing. Formats:\n\n" +
			"  openai   JSON lines, one conversation each: messages in OpenAI's chat format with tool_calls, and\n" +
			"           the fields task_id, trial, reward, step, … An imported conversation keeps its messages.\n" +
			"           `ropewalk import openai` reads the lines back.\n" +
			"  sft      JSON lines for supervised fine-tuning: prompt (the messages before the first response) and\n" +
			"           completion (from there to the last response), as TRL's SFTTrainer expects them, with\n" +
			"           tools, and arguments of calls as objects. Only kept trajectories with a positive reward;\n" +
			"           --only positive adds those that resampling dropped.\n" +
			"  parquet  one table with a row per trajectory: rewards, selection, advantage, token lists, messages\n" +
			"           as JSON text, and turns with their tool_calls as nested lists.\n\n" +
			"--format tensorboard writes the metrics of each step as an event file, in a folder of the run's name\n" +
			"below -o. `python -m ropewalk.trackers` writes the same metrics for W&B and MLflow.\n\n" +
			"With --checkpoint it writes a policy: the latest, the best (highest held-out success among those\n" +
			"that were evaluated and still exist) or that of step N. Formats:\n\n" +
			"  huggingface  a folder for from_pretrained: config.json, the weights, the tokenizer and, unless\n" +
			"               --merge adds it to the weights, a LoRA adapter. The files are as they were committed.\n" +
			"  gguf         one file for llama.cpp, with the tokenizer.\n\n" +
			"MODEL is a model outside the record: hf://OWNER/NAME, s3://BUCKET/KEY, a folder (./model) or a GGUF\n" +
			"file. The flags for --checkpoint apply to it, but --checkpoint itself does not.\n\n" +
			"The file or folder appears when it is complete. Existing files of trajectories or metrics are\n" +
			"replaced. An existing checkpoint or model is replaced only with --force.",
		Example: "  ropewalk export quickstart-s1-20260102-030405 --format openai --step 3 -o step3.jsonl\n" +
			"  ropewalk export quickstart-s1-20260102-030405 --format sft --steps 60-85 -o - | head -1\n" +
			"  ropewalk export quickstart-s1-20260102-030405 --format parquet -o episodes.parquet\n" +
			"  ropewalk export quickstart-s1-20260102-030405 --format tensorboard -o logs\n" +
			"  ropewalk export quickstart-s1-20260102-030405 --checkpoint best -o policy\n" +
			"  ropewalk export quickstart-s1-20260102-030405 --checkpoint 60 --format gguf --dtype f16 -o p.gguf\n" +
			"  ropewalk export hf://Qwen/Qwen3-4B --untied --dtype bf16 -o qwen3-4b",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && isPublished(args[0]) {
				return nil
			}
			return oneRun(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if isPublished(args[0]) {
				return o.published(cmd.Context(), con, args[0], cmd.Flags().Changed)
			}
			if given := cmd.Flags().Changed; o.isModel(given) {
				options, err := o.modelOptions(args[0], given)
				if err != nil {
					return err
				}
				return exportModel(cmd.Context(), con, options, o.out)
			}
			if o.format == tensorBoard {
				if err := o.checkMetrics(cmd.Flags().Changed); err != nil {
					return err
				}
				return exportMetrics(cmd.Context(), con, args[0], o.out)
			}
			options, err := o.options(args[0], cmd.Flags().Changed)
			if err != nil {
				return err
			}
			return exportRun(cmd.Context(), con, options, o.out)
		},
	}
	cmd.Flags().StringVar(&o.format, "format", "openai", "`FORMAT`: openai, sft, parquet or tensorboard; with "+
		"--checkpoint huggingface (the default) or gguf")
	cmd.Flags().StringVarP(&o.out, "output", "o", "", "write to this `FILE`, into this folder, or to standard "+
		"output (-)")
	cmd.Flags().IntVar(&o.step, "step", 0, "this `STEP` only")
	cmd.Flags().StringVar(&o.steps, "steps", "", "these steps only: `A-B`, both included")
	cmd.Flags().IntVar(&o.gen, "gen", 0, "read generation `N` of the stages that a replay has repeated (default: "+
		"the generations that the heads name)")
	cmd.Flags().StringVar(&o.only, "only", "", "kept, positive or all (default: all; sft: kept and positive)")
	o.model.add(cmd.Flags())
	return cmd
}

// options checks the flags.
func (o exportOptions) options(run string, given func(string) bool) (export.Options, error) {
	out := export.Options{Run: run, Format: export.Format(o.format), Only: export.Only(o.only)}
	var err error
	switch out.Format {
	case export.OpenAI, export.SFT, export.Parquet:
	default:
		return out, badInput("--format: must be openai, sft, parquet or tensorboard, or with --checkpoint "+
			"huggingface or gguf, got %q", o.format)
	}
	if out.Only, err = o.choice(out.Format); err != nil {
		return out, err
	}
	switch {
	case o.out == "":
		return out, badInput("-o: name a file, a folder, or - for standard output")
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
		return "", badInput("--only %s: sft writes demonstrations, so only positive trajectories; leave the flag "+
			"out, or give positive", only)
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

func exportRun(ctx context.Context, con *console, o export.Options, out string) (err error) {
	target, err := con.target(out, o.Run+o.Format.Ext())
	if err != nil {
		return err
	}
	defer target.discard() // does nothing once the file is kept
	s, record, err := readRecord(ctx, con)
	if err != nil {
		return err
	}
	defer s.Close()
	view := newProgressLine(con)
	o.Progress = func(p export.Progress) {
		view.show("step %d of %d, %d trajectories", p.Steps, p.OfSteps, p.Episodes)
	}
	done, err := export.Write(ctx, record, target, o)
	view.clear()
	if errors.Is(err, export.ErrNoSteps) || errors.Is(err, analysis.ErrNoGeneration) {
		return badinput.Of(err)
	}
	if err != nil {
		return runs.Missing(err)
	}
	if err := target.keep(); err != nil {
		return err
	}
	fmt.Fprintf(con.err, "written to %s: trajectories %d, not chosen %d, steps %d\n", target.name, done.Episodes,
		done.Skipped, done.Steps)
	return nil
}
