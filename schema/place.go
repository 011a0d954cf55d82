package schema

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

// InitStep is the step of the stages that run before the first training step.
const InitStep = "init"

// The stages that commit manifests.
const (
	StagePrepare    = "prepare"    // init: the resolved recipe
	StageAmend      = "amend"      // init: the recipe as a person changed it during the run; its try numbers the change
	StageWarmStart  = "warm_start" // init: the first policy
	StageData       = "data"       // init: which training tasks are drawn
	StageCandidates = "candidates" // init: which training tasks a model answers, to find out how hard they are
	StageAnswers    = "answers"    // init: its answers
	StageImport     = "import"     // init: trajectories from elsewhere
	StagePrompts    = "prompts"
	StageRollout    = "rollout"
	StageSandbox    = "sandbox"
	StageAssemble   = "assemble"
	StageGrade      = "grade"    // only if the recipe asks for symbolic grading
	StageJudge      = "judge"    // only if the recipe's reward asks a judge
	StageFunction   = "function" // only if the reward is a user's function
	StageReward     = "reward"
	StageResample   = "resample"
	StageLogprobs   = "logprobs" // log-probabilities, entropies and values of the kept tokens
	StageAdvantage  = "advantage"
	StageBuffer     = "buffer" // the replay buffer after the step, and the rows of it that are learnt from again
	StageUpdate     = "update"
	StagePublish    = "publish"
	StageEvaluate   = "evaluate"
	StageInitial    = "initial"  // init: the policy before the warm start on held-out problems
	StageCompact    = "compact"  // merged copies of the step's small shards
	StageReplay     = "replay"   // the claim of a generation, with the recipe of the replay
	StageContrast   = "contrast" // how far the policy of a replay is from the run's own after the step
	StageFactual    = "factual"  // of a replay: the run's own policy after the step on held-out problems
	StageEnd        = "end"      // the run is complete: its inputs are its last policy and the evaluation of it
)

var (
	runForm   = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,127}$`)
	stageForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	tableForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	fileForm  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
)

// absent marks a try, turn or shard that a place does not have.
const absent = -1

// Place says where a manifest belongs. Make one with At, AtInit or AtWarmStart and its With methods; the zero value is
// not a place.
type Place struct {
	Run   string `json:"run" form:"run" doc:"the run; empty for a warm start"`
	Step  string `json:"step" form:"step" doc:"the step: a number without leading zeros, or init for what precedes the first; empty for a warm start"`
	Stage string `json:"stage" form:"stage" doc:"the stage (see Stages)"`
	Try   int    `json:"try" doc:"number of an amendment, or of a later draw of prompts; −1 for none"`
	Turn  int    `json:"turn" doc:"the turn, for stages that run turn by turn; −1 for none"`
	Shard int    `json:"shard" doc:"the shard; −1 for a stage manifest"`
	Gen   int    `json:"gen" doc:"the generation: 0 for what the run itself made"`
	Warm  string `json:"warm" doc:"digest of the inputs of a warm start, which belongs to no run, so that any run of the same recipe, seed and code finds it; else empty"`
}

// At returns the place of the stage manifest of a training step, generation 0.
func At(run string, step int, stage string) Place {
	return Place{Run: run, Step: strconv.Itoa(step), Stage: stage, Try: absent, Turn: absent, Shard: absent}
}

// AtInit returns the place of the stage manifest of a stage before the first step, generation 0.
func AtInit(run, stage string) Place {
	return Place{Run: run, Step: InitStep, Stage: stage, Try: absent, Turn: absent, Shard: absent}
}

// AtWarmStart returns the place of the manifest of the warm start whose inputs have the digest.
func AtWarmStart(inputs string) Place {
	return Place{Stage: StageWarmStart, Try: absent, Turn: absent, Shard: absent, Warm: inputs}
}

// WithTry returns the place with try k.
func (p Place) WithTry(k int) Place { p.Try = k; return p }

// WithTurn returns the place with turn t.
func (p Place) WithTurn(t int) Place { p.Turn = t; return p }

// WithShard returns the place with shard s.
func (p Place) WithShard(s int) Place { p.Shard = s; return p }

// WithGen returns the place with generation g.
func (p Place) WithGen(g int) Place { p.Gen = g; return p }

// StageManifest returns the place of the stage manifest that lists this shard's manifest.
func (p Place) StageManifest() Place { p.Shard = absent; return p }

// StepNumber returns the training step; ok is false for init and warm starts.
func (p Place) StepNumber() (step int, ok bool) {
	n, err := parseNumber(p.Step)
	return n, err == nil
}

// CheckRunID returns an error that describes valid run ids, unless id is one.
func CheckRunID(id string) error {
	if !runForm.MatchString(id) {
		return fmt.Errorf("run id %q: want 1 to 128 of a-z, 0-9, dot, dash and underscore, the first a letter or digit",
			id)
	}
	return nil
}

// Validate checks that the place has a key.
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
	if !validDigest(p.Warm) {
		return fmt.Errorf("warm start %q: want the digest of its inputs", p.Warm)
	}
	if p.Run != "" || p.Step != "" || p.Stage != StageWarmStart ||
		p.Try != absent || p.Turn != absent || p.Shard != absent || p.Gen != 0 {
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

// parseNumber accepts only the spelling that strconv.Itoa returns, so that every place has exactly one key.
func parseNumber(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || strconv.Itoa(n) != s {
		return 0, errors.New("not a number without sign or leading zeros")
	}
	return n, nil
}

// String describes the place in words, for errors and logs.
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
