package schema

import (
	"cmp"
	"fmt"
	"strings"
)

// ForkPoint is where a run that is a fork begins: after a step of another run. It shares the steps up to that one. Its
// heads of these steps name the other run's manifests, and it has no manifests of its own for them.
type ForkPoint struct {
	Run  string `json:"run_id"`
	Step int    `json:"step"`
}

// NoteFork is the note of the manifest that prepares a fork: the other run and the step, as RUN@STEP.
const NoteFork = "fork"

// NoteForkFrom is the note of the manifest that prepares a fork at a stage: the stage. The fork then has copies of what
// the other run has committed of the next step before it.
const NoteForkFrom = "fork_from"

// String is what NoteFork holds.
func (f ForkPoint) String() string { return fmt.Sprintf("%s@%d", f.Run, f.Step) }

// Fork returns where the run forks off that a manifest prepares; zero if it is no fork.
func (m Manifest) Fork() (f ForkPoint, err error) {
	text, ok := m.Note[NoteFork]
	if !ok {
		return f, nil
	}
	run, number, _ := strings.Cut(text, "@")
	f = ForkPoint{Run: run}
	if f.Step, err = parseNumber(number); err == nil {
		err = f.Validate()
	}
	if err != nil {
		return ForkPoint{}, fmt.Errorf("%s: note %s: want RUN@STEP, got %q: %w", m.ManifestKey(), NoteFork, text, err)
	}
	return f, nil
}

// Validate checks that there can be such a step.
func (f ForkPoint) Validate() error {
	if err := CheckRunID(f.Run); err != nil {
		return err
	}
	if f.Step < 1 || f.Step > MaxSteps {
		return fmt.Errorf("step %d: must be from 1 to %d", f.Step, MaxSteps)
	}
	return nil
}

// Shares reports whether what the other run has committed at a place belongs to the fork, too: everything of the shared
// steps, and evaluations before the first one. The recipe and the first policy are the fork's own.
func (f ForkPoint) Shares(p Place) bool {
	if f.Run == "" {
		return false // it is no fork
	}
	if n, ok := p.StepNumber(); ok {
		return n <= f.Step
	}
	return p.Stage == StageEvaluate || p.Stage == StageInitial
}

// SharedBy returns the head by which a fork shares the head's step.
func (h Head) SharedBy(fork string) Head {
	h.From, h.Run = h.Owner(), fork
	return h
}

// Owner is the run whose manifests the head names.
func (h Head) Owner() string { return cmp.Or(h.From, h.Run) }

// ForksPrefix is the prefix of the notes about a run's forks. No manifest names them; they keep the checkpoints that
// forks begin with from being pruned.
func ForksPrefix(run string) string { return RunPrefix(run) + forkNotes }

// ForkKey is the key of the note that a run forks off.
func (f ForkPoint) ForkKey(run string) string {
	return fmt.Sprintf("%sstep=%d/%s.json", ForksPrefix(f.Run), f.Step, run)
}
