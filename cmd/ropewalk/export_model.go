package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ropewalk/ropewalk/analysis/export"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// modelFlags are the flags of export that select and shape a checkpoint.
type modelFlags struct {
	checkpoint, dtype string
	merge, force      bool
	untied            bool
}

// modelFlagNames are their names.
var modelFlagNames = []string{"checkpoint", "merge", "untied", "dtype", "force"}

func (m *modelFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&m.checkpoint, "checkpoint", "", "write this checkpoint instead of trajectories: `latest|best|N`; "+
		"0 is the policy before the first step")
	flags.BoolVar(&m.merge, "merge", false, "with --checkpoint: add a LoRA adapter to the weights")
	flags.BoolVar(&m.untied, "untied", false, "with --checkpoint: give the output head a matrix of its own, which "+
		"vLLM needs to take new weights (docs/servers.md)")
	flags.StringVar(&m.dtype, "dtype", "", "with --checkpoint: write the weights as f32, f16 or bf16 (default: as "+
		"they are committed; gguf and --merge: f32)")
	flags.BoolVar(&m.force, "force", false, "with --checkpoint: replace the file or model folder that -o names")
}

// isModel reports whether the flags ask for a checkpoint.
func (o exportOptions) isModel(given func(string) bool) bool {
	return slices.ContainsFunc(modelFlagNames, given) || o.format == string(export.HuggingFace) ||
		o.format == string(export.GGUF)
}

// modelOptions checks the flags of a checkpoint.
func (o exportOptions) modelOptions(run string, given func(string) bool) (export.ModelOptions, error) {
	out := export.ModelOptions{Run: run, Checkpoint: o.model.checkpoint, Form: export.ModelForm(o.format),
		Merge: o.model.merge, Untied: o.model.untied, Dtype: checkpoint.Dtype(strings.ToUpper(o.model.dtype)),
		Force: o.model.force}
	if !given("format") {
		out.Form = export.HuggingFace
	}
	for _, name := range []string{"step", "steps", "gen", "only"} {
		if given(name) {
			return out, badInput("--%s: selects trajectories, and --checkpoint writes a policy: choose one", name)
		}
	}
	switch {
	case o.model.checkpoint == "" && o.model.force && !given("merge") && !given("untied") && !given("dtype"):
		return out, badInput("--force: belongs to --checkpoint; a file of trajectories or metrics is replaced " +
			"without it")
	case o.model.checkpoint == "":
		return out, badInput("--checkpoint: name latest, best or a step")
	case o.model.untied && out.Form == export.GGUF:
		return out, badInput("--untied: belongs to --format huggingface")
	case out.Form != export.HuggingFace && out.Form != export.GGUF:
		return out, badInput("--format: with --checkpoint it must be huggingface or gguf, got %q", o.format)
	case !slices.Contains([]checkpoint.Dtype{"", checkpoint.F32, checkpoint.F16, checkpoint.BF16}, out.Dtype):
		return out, badInput("--dtype: must be f32, f16 or bf16, got %q", o.model.dtype)
	case o.out == "":
		return out, badInput("-o: name a %s", map[bool]string{true: "file", false: "folder"}[out.Form == export.GGUF])
	case o.out == "-":
		return out, badInput("-o -: a checkpoint cannot be written to standard output; name a file or folder")
	}
	return out, nil
}

func exportModel(ctx context.Context, con *console, o export.ModelOptions, out string) error {
	s, record, err := readRecord(ctx, con)
	if err != nil {
		return err
	}
	defer s.Close()
	chosen, err := export.Model(ctx, record, o, out)
	if errors.Is(err, export.ErrTaken) {
		return badInput("-o %w", err)
	}
	if errors.Is(err, export.ErrNoCheckpoint) {
		return badInput("--checkpoint %s: %w", o.Checkpoint, err)
	}
	if errors.Is(err, export.ErrModel) {
		return badinput.Of(err)
	}
	if err != nil {
		return runs.Missing(err)
	}
	success := ""
	if chosen.Success != nil {
		success = fmt.Sprintf(", held-out success %.1f%%", 100**chosen.Success)
	}
	fmt.Fprintf(con.err, "written to %s: the policy after step %d (checkpoint %s)%s\n", filepath.Clean(out),
		chosen.Step, chosen.Digest[:16], success)
	return nil
}
