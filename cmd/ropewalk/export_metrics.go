package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ropewalk/ropewalk/analysis/metrics"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/cause"
	"github.com/ropewalk/ropewalk/internal/runs"
)

// tensorBoard is the format of event files.
const tensorBoard = "tensorboard"

// checkMetrics checks the flags of metrics.
func (o exportOptions) checkMetrics(given func(string) bool) error {
	for _, name := range []string{"step", "steps", "gen", "only"} {
		if given(name) {
			return badInput("--%s: selects trajectories, and --format tensorboard writes the metrics of all steps",
				name)
		}
	}
	if o.out == "" || o.out == "-" {
		return badInput("-o: name a folder, which tensorboard --logdir shows")
	}
	return nil
}

// exportMetrics writes a run's event file into a folder of the run's name below out, because TensorBoard names runs by
// their folders.
func exportMetrics(ctx context.Context, con *console, run, out string) error {
	s, record, err := readRecord(ctx, con)
	if err != nil {
		return err
	}
	defer s.Close()
	steps, err := metrics.Compute(ctx, record, run)
	if errors.Is(err, metrics.ErrNone) {
		return badinput.Of(err)
	}
	if err != nil {
		return runs.Missing(err)
	}
	file, err := writeEvents(con, out, run, steps)
	if err != nil {
		return err
	}
	values := 0
	for _, step := range steps {
		values += len(step.Values)
	}
	fmt.Fprintf(con.err, "written to %s: %d values at %d steps; tensorboard --logdir %s shows them\n", file,
		values, len(steps), out)
	return nil
}

// writeEvents writes an event file into a folder below out, and returns its name.
func writeEvents(con *console, out, folder string, steps []metrics.Step) (string, error) {
	folder = filepath.Join(out, folder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", badInput("-o %s: cannot be written: %w", out, cause.Of(err))
	}
	target, err := con.target(filepath.Join(folder, metrics.EventsFile(steps)), "")
	if err != nil {
		return "", err
	}
	defer target.discard() // does nothing once the file is kept
	if err := metrics.WriteEvents(target, steps); err != nil {
		return "", err
	}
	return target.name, target.keep()
}
