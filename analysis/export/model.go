package export

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/pretrained"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/gguf"
)

// ModelForm is a way to write a checkpoint.
type ModelForm string

// The forms.
const (
	HuggingFace ModelForm = "huggingface" // a folder for from_pretrained
	GGUF        ModelForm = "gguf"        // one file for llama.cpp
)

// The names of checkpoints, next to the numbers of steps.
const (
	Latest = "latest"
	Best   = "best"
)

// ModelOptions select a checkpoint of a run and how it is written.
type ModelOptions struct {
	Run string
	// Checkpoint is latest, best (the highest held-out success, the later one of equals), or a step's number; 0 is the
	// policy before the first step.
	Checkpoint string
	Form       ModelForm
	// Merge adds a LoRA adapter to the weights.
	Merge bool
	// Untied gives the output head of a folder a matrix of its own, for servers that do not reload a shared one.
	Untied bool
	// Dtype is the format of the weights. "" leaves a folder's files as they are committed, and is F32 where the
	// weights are written again.
	Dtype checkpoint.Dtype
	// Force replaces what is at the path: a file, or a folder that holds a model.
	Force bool
}

var (
	// ErrNoCheckpoint means that the checkpoint asked for is not there.
	ErrNoCheckpoint = errors.New("no such checkpoint")
	// ErrModel means that the checkpoint cannot be written in the form asked for.
	ErrModel = errors.New("the checkpoint cannot be written so")
)

// Model writes a checkpoint of a run to a path, which shows nothing or all of it.
func Model(ctx context.Context, record *analysis.Record, o ModelOptions, path string) (analysis.StepCheckpoint, error) {
	at, err := newOutput(path, o.Form == HuggingFace, o.Force)
	if err != nil {
		return analysis.StepCheckpoint{}, err
	}
	view, err := record.Visible(ctx, o.Run)
	if err != nil {
		return analysis.StepCheckpoint{}, err
	}
	all, err := view.Checkpoints(ctx)
	if err != nil {
		return analysis.StepCheckpoint{}, err
	}
	chosen, err := Choose(o.Run, o.Checkpoint, all)
	if err != nil {
		return chosen, err
	}
	return chosen, o.make(at, fmt.Sprintf("%s step %d", o.Run, chosen.Step), func(files string) error {
		if err := os.Mkdir(files, 0o755); err != nil {
			return err
		}
		return record.FetchCheckpoint(ctx, chosen.Checkpoint, files, checkpoint.IsModel)
	})
}

// make has the model's files put into a folder, and makes what is asked for of them.
func (o ModelOptions) make(at output, name string, get func(files string) error) error {
	return at.write(func(part string) (whole string, err error) {
		files := filepath.Join(part, "checkpoint")
		if err := get(files); err != nil {
			return "", err
		}
		adapter, err := checkpoint.HasAdapter(files)
		if err != nil {
			return "", err
		}
		if err := dropReference(files, adapter); err != nil {
			return "", err
		}
		return o.write(files, part, name, adapter)
	})
}

// dropReference removes the name of an adapter at a server, which nothing but the run needs, and refuses a folder
// without the adapter itself: the base alone is not the model.
func dropReference(dir string, adapter bool) error {
	err := os.Remove(filepath.Join(dir, checkpoint.FileReference))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && !adapter:
		return fmt.Errorf("%w: the checkpoint's adapter is at a Tinker server, which offers no download",
			ErrNoCheckpoint)
	}
	return err
}

// Choose finds the checkpoint that a name or a number stands for.
func Choose(run, which string, all []analysis.StepCheckpoint) (found analysis.StepCheckpoint, err error) {
	there := slices.DeleteFunc(slices.Clone(all), func(c analysis.StepCheckpoint) bool { return c.Pruned })
	if len(there) == 0 {
		return found, fmt.Errorf("%w: run %s has none", ErrNoCheckpoint, run)
	}
	number, notNumber := strconv.Atoi(which)
	switch {
	case which == Latest:
		return there[len(there)-1], nil
	case which == Best:
		return best(run, there)
	case notNumber != nil:
		return found, fmt.Errorf("%w: must be latest, best or a step, got %q", ErrNoCheckpoint, which)
	}
	at := func(c analysis.StepCheckpoint) bool { return c.Step == number }
	if i := slices.IndexFunc(there, at); i >= 0 {
		return there[i], nil
	}
	why := "is not finished"
	if slices.ContainsFunc(all, at) {
		why = "was deleted (pruned), as the recipe asks"
	}
	return found, fmt.Errorf("%w: that of step %d %s; run %s has those of %s", ErrNoCheckpoint, number, why, run,
		stepsOf(there))
}

func best(run string, there []analysis.StepCheckpoint) (found analysis.StepCheckpoint, err error) {
	for _, c := range there {
		if c.Success != nil && (found.Success == nil || *c.Success >= *found.Success) {
			found = c
		}
	}
	if found.Success == nil {
		return found, fmt.Errorf("%w: none that still exists was evaluated; run %s has those of %s", ErrNoCheckpoint,
			run, stepsOf(there))
	}
	return found, nil
}

func stepsOf(all []analysis.StepCheckpoint) string {
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = strconv.Itoa(c.Step)
	}
	word := "steps "
	if len(names) == 1 {
		word = "step "
	}
	return word + strings.Join(names, ", ")
}

// write makes the file or the folder from a checkpoint's files, and returns where it is.
func (o ModelOptions) write(files, part, name string, adapter bool) (whole string, err error) {
	again := o.Form == GGUF || o.Dtype != "" || o.Untied || adapter && o.Merge
	if !again {
		return files, nil
	}
	if adapter && !o.Merge {
		return "", fmt.Errorf("%w: it is a LoRA adapter and its base, and neither GGUF nor another dtype keeps them "+
			"apart; --merge adds the adapter to the weights", ErrModel)
	}
	c, err := checkpoint.Open(files, false)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	dtype := cmp.Or(o.Dtype, checkpoint.F32)
	whole = filepath.Join(part, "model")
	if o.Untied {
		if c, err = c.Untie(); err != nil {
			return "", err
		}
	}
	if o.Form == HuggingFace {
		return whole, rangeError(checkpoint.WriteModel(whole, c, dtype))
	}
	return whole, rangeError(writeGGUF(whole, name, c, dtype))
}

// rangeError marks numbers that do not fit into a narrow format: another format is the remedy.
func rangeError(err error) error {
	if errors.Is(err, checkpoint.ErrRange) {
		return fmt.Errorf("%w: %w; choose --dtype bf16 or f32", ErrModel, err)
	}
	return err
}

func writeGGUF(path, name string, c *checkpoint.Checkpoint, dtype checkpoint.Dtype) (err error) {
	m := gguf.Model{Name: name, Checkpoint: c, Dtype: dtype}
	if m.Vocabulary, err = pretrained.Vocabulary(c.Extra); err != nil {
		return fmt.Errorf("%w: %w", ErrModel, err)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return gguf.Write(f, m)
}
