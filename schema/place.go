package schema

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

// InitStep is the step of what a run does before its first training step.
const InitStep = "init"

// The stages that commit manifests.
const (
	StagePrepare   = "prepare"    // init: the resolved recipe
	StageAmend     = "amend"      // init: the recipe as a person changed it in mid-run; its try is its number
	StageWarmStart = "warm_start" // init: the first policy
	StageImport    = "import"     // init: trajectories from elsewhere
	StagePrompts   = "prompts"
	StageRollout   = "rollout"
	StageSandbox   = "sandbox"
	StageAssemble  = "assemble"
	StageGrade     = "grade" // where the recipe asks for symbolic grading
	StageReward    = "reward"
	StageResample  = "resample"
	StageForward   = "forward"
	StageAdvantage = "advantage"
	StageBuffer    = "buffer" // the replay buffer after the step, and what of it is learnt from again
	StageUpdate    = "update"
	StagePublish   = "publish"
	StageEvaluate  = "evaluate"
	StageReplay    = "replay" // the claim of a generation, and the recipe that it is made under
)

var (
	runForm   = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,127}$`)
	stageForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	fileForm  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
)

// absent marks a try, turn or shard that a place does not have.
const absent = -1

// Place says where a manifest stands. Make one with At, AtInit or AtWarmStart and its With
// methods; the zero value is not a place.
type Place struct {
	Run   string `json:"run"`
	Step  string `json:"step"` // a number without leading zeros, or InitStep
	Stage string `json:"stage"`
	Try   int    `json:"try"`   // further draws of dynamic sampling; −1 when absent
	Turn  int    `json:"turn"`  // −1 when absent
	Shard int    `json:"shard"` // −1 for a stage manifest
	Gen   int    `json:"gen"`   // ≥ 0; grows with each replay
	// Warm is the digest of a warm start's inputs. Such a place belongs to no run: Run and Step
	// are empty, so that any run of the same recipe, seed and code finds it.
	Warm string `json:"warm"`
}

// At is the stage manifest of a training step, generation 0.
func At(run string, step int, stage string) Place {
	return Place{Run: run, Step: strconv.Itoa(step), Stage: stage, Try: absent, Turn: absent, Shard: absent}
}

// AtInit is the stage manifest of a stage before the first step, generation 0.
func AtInit(run, stage string) Place {
	return Place{Run: run, Step: InitStep, Stage: stage, Try: absent, Turn: absent, Shard: absent}
}

// AtWarmStart is the manifest of the warm start whose inputs have the digest.
func AtWarmStart(inputs string) Place {
	return Place{Stage: StageWarmStart, Try: absent, Turn: absent, Shard: absent, Warm: inputs}
}

// WithTry returns the place for the k-th draw.
func (p Place) WithTry(k int) Place { p.Try = k; return p }

// WithTurn returns the place for a turn.
func (p Place) WithTurn(t int) Place { p.Turn = t; return p }

// WithShard returns the place for a shard of the stage.
func (p Place) WithShard(s int) Place { p.Shard = s; return p }

// WithGen returns the place for a generation.
func (p Place) WithGen(g int) Place { p.Gen = g; return p }

// StageManifest returns the place of the stage manifest that lists this shard's.
func (p Place) StageManifest() Place { p.Shard = absent; return p }

// StepNumber returns the training step; ok is false for init and warm starts.
func (p Place) StepNumber() (step int, ok bool) {
	n, err := parseNumber(p.Step)
	return n, err == nil
}

// CheckRunID returns an error that says what a run id must look like, unless id does.
func CheckRunID(id string) error {
	if !runForm.MatchString(id) {
		return fmt.Errorf("run id %q: want 1 to 128 of a-z, 0-9, dot, dash and underscore, the first a letter or digit", id)
	}
	return nil
}

// Validate checks that the place can stand in a key.
func (p Place) Validate() error {
	if !stageForm.MatchString(p.Stage) {
		return fmt.Errorf("stage %q: want lower-case letters, digits and underscores, the first a letter", p.Stage)
	}
	for _, n := range []struct {
		name  string
		value int
	}{{"try", p.Try}, {"turn", p.Turn}, {"shard", p.Shard}} {
		if n.value < absent {
			return fmt.Errorf("%s of stage %s: must be ≥ 0, or -1 for none, got %d", n.name, p.Stage, n.value)
		}
	}
	if p.Gen < 0 {
		return fmt.Errorf("generation of stage %s: must be ≥ 0, got %d", p.Stage, p.Gen)
	}
	if p.Warm != "" {
		return p.validateWarm()
	}
	if err := CheckRunID(p.Run); err != nil {
		return err
	}
	return checkStep(p.Step)
}

func (p Place) validateWarm() error {
	if !ValidDigest(p.Warm) {
		return fmt.Errorf("warm start %q: want the digest of its inputs", p.Warm)
	}
	if p.Run != "" || p.Step != "" || p.Stage != StageWarmStart || p.Try != absent || p.Turn != absent || p.Shard != absent || p.Gen != 0 {
		return fmt.Errorf("warm start %s: has no run, step, try, turn, shard or further generation", p.Warm)
	}
	return nil
}

func checkStep(step string) error {
	if step == InitStep {
		return nil
	}
	if _, err := parseNumber(step); err != nil {
		return fmt.Errorf("step %q: want a number or %q", step, InitStep)
	}
	return nil
}

// parseNumber takes only the one spelling that Itoa gives, so that every place has one key.
func parseNumber(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || strconv.Itoa(n) != s {
		return 0, errors.New("not a number without sign or leading zeros")
	}
	return n, nil
}

func (p Place) String() string {
	if p.Warm != "" {
		return "warm start " + p.Warm
	}
	s := fmt.Sprintf("run %s step %s stage %s", p.Run, p.Step, p.Stage)
	for _, n := range []struct {
		name  string
		value int
	}{{"try", p.Try}, {"turn", p.Turn}, {"shard", p.Shard}} {
		if n.value != absent {
			s += fmt.Sprintf(" %s %d", n.name, n.value)
		}
	}
	return fmt.Sprintf("%s generation %d", s, p.Gen)
}
