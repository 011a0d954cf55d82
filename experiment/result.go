package experiment

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/cause"
	"github.com/ropewalk/ropewalk/recipes"
)

// Result is what an experiment keeps of a trial, in a small file: enough for every table and figure.
type Result struct {
	Run    string `json:"run_id"`
	Recipe string `json:"recipe"` // its name
	Digest string `json:"digest"` // of the resolved recipe, which has the seed
	Seed   uint64 `json:"seed"`
	// Steps are the finished ones of Planned. Done says that the last evaluation is committed.
	Steps   int  `json:"steps"`
	Planned int  `json:"steps_planned"`
	Done    bool `json:"done"`
	// Programs are the digests of the programs that made the run.
	Programs []string `json:"programs"`
	Cost     Cost     `json:"cost"`
	// Curves are over steps, by the names of outcomes that have the same one. Spent are sums up to each step, by axis.
	Curves map[string]Curve `json:"curves"`
	Spent  map[string]Curve `json:"spent"`
}

// Cost is what a trial has taken.
type Cost struct {
	RLSeconds         float64 `json:"rl_seconds"`
	WarmStartSeconds  float64 `json:"warm_start_seconds"` // 0 where it was shared
	EvaluationSeconds float64 `json:"evaluation_seconds"`
	Tokens            int64   `json:"tokens"`
	Calls             int64   `json:"calls"`
	Updates           int64   `json:"updates"`
	Bytes             int64   `json:"bytes"`
}

// Seconds is how long the trial took.
func (c Cost) Seconds() float64 { return c.RLSeconds + c.WarmStartSeconds + c.EvaluationSeconds }

// ID names the curve that an outcome is made from; outcomes with equal ones share it.
func (o Outcome) ID() string {
	if o.Metric != "" {
		return o.Metric
	}
	return o.SQL
}

// Has reports whether the result has the curves of all outcomes.
func (r *Result) Has(outcomes []Outcome) bool {
	for _, o := range outcomes {
		if _, ok := r.Curves[o.ID()]; !ok {
			return false
		}
	}
	return true
}

// over is an outcome's curve over an axis.
func (r *Result) over(o Outcome, axis string) Curve {
	c := r.Curves[o.ID()]
	if axis == AxisSteps {
		return c
	}
	return c.over(r.Spent[axis])
}

// End is where the trial ends on an axis.
func (r *Result) End(axis string) float64 {
	if axis == AxisSteps {
		return float64(r.Steps)
	}
	if spent := r.Spent[axis]; len(spent) > 0 {
		return spent[len(spent)-1].Y
	}
	return 0
}

// fileOf is the file of a run's result.
func fileOf(folder, run string) string { return filepath.Join(folder, run+".json") }

// ReadResult reads the result of a trial from a folder; nil if there is none. A file of another recipe is refused.
func ReadResult(folder string, t Trial) (*Result, error) {
	file := fileOf(folder, t.Run)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, badinput.Errorf("read the result %s: %w", file, cause.Of(err))
	}
	var r Result
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, badinput.Errorf("%s: %w", file, badinput.JSON(err))
	}
	if r.Run != t.Run || r.Digest != t.Resolved.Digest {
		return nil, badinput.Errorf("%s: holds the result of run %s and recipe %.16s, want %s and %.16s", file, r.Run,
			r.Digest, t.Run, t.Resolved.Digest)
	}
	return &r, nil
}

// Write writes the result into a folder, whole or not at all.
func (r *Result) Write(folder string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the result of run %s: %w", r.Run, err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return badinput.Errorf("make the folder of results %s: %w", folder, cause.Of(err))
	}
	file := fileOf(folder, r.Run)
	if err := os.WriteFile(file+".new", append(text, '\n'), 0o644); err != nil {
		return badinput.Errorf("write the result %s: %w", file, cause.Of(err))
	}
	return os.Rename(file+".new", file)
}

// Observed is a trial and its result, as far as it is known.
type Observed struct {
	Trial
	State  string  // as runs are listed; "" if nothing is known
	Result *Result // nil: the trial has committed nothing yet
}

// Settings lists the recipe fields in which the arms differ, by the trials with the first seed.
func (f *File) Settings(trials []Observed) (Table, error) {
	out := Table{Title: "Settings that differ", Columns: []string{"field"}}
	rows := map[string][]string{} // by path
	for _, t := range trials {
		if t.Seed != f.Seeds[0] {
			continue
		}
		fields, err := recipes.List(t.Resolved.JSON)
		if err != nil {
			return out, err
		}
		arm := len(out.Columns) - 1
		out.Columns = append(out.Columns, t.Arm)
		for _, field := range fields {
			row := rows[field.Path]
			row = append(row, make([]string, arm-len(row))...) // arms before without the field
			rows[field.Path] = append(row, recipes.Plain(field.Value))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(rows)) {
		row := rows[path]
		row = append(row, make([]string, len(out.Columns)-1-len(row))...)
		if slices.ContainsFunc(row, func(v string) bool { return v != row[0] }) && path != "name" {
			out.Rows = append(out.Rows, slices.Concat([]string{path}, row))
		}
	}
	return out, nil
}
