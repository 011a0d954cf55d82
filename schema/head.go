package schema

import "fmt"

// Head names the stage manifests that a step's update consumed. A replay never changes it.
type Head struct {
	Version       int              `json:"version" form:"major" doc:"major version of the format"`
	SchemaVersion int              `json:"schema_version" form:"minor" doc:"minor version of the format"`
	Run           string           `json:"run" form:"run" doc:"the run"`
	Step          string           `json:"step" form:"step" doc:"the step: a number without leading zeros, or init"`
	From          string           `json:"from,omitempty" form:"run" since:"9" doc:"the run that has made the step, and whose manifests the head names, if this run is a fork that shares the step; else absent"`
	Generations   map[string]int   `json:"generations" doc:"the generation of each stage"`
	Stages        map[string][]Ref `json:"stages" doc:"the manifests of each stage; rollout and sandbox have one for each turn, in order"`
}

func (h Head) format() formatVersion { return formatVersion{h.Version, h.SchemaVersion} }

// NewHead makes the head of a step from the refs of its stage manifests. Each stage keeps the order given.
func NewHead(run, step string, manifests ...Ref) (Head, error) {
	h := Head{Version: Major, SchemaVersion: Version, Run: run, Step: step, Generations: map[string]int{},
		Stages: map[string][]Ref{}}
	for _, r := range manifests {
		p, err := ParseManifestKey(r.Key)
		if err != nil {
			return Head{}, fmt.Errorf("head of run %s step %s: %w", run, step, err)
		}
		if g, ok := h.Generations[p.Stage]; ok && g != p.Gen {
			return Head{}, fmt.Errorf("head of run %s step %s: stage %s has manifests of generations %d and %d", run,
				step, p.Stage, g, p.Gen)
		}
		h.Generations[p.Stage] = p.Gen
		h.Stages[p.Stage] = append(h.Stages[p.Stage], r)
	}
	return h, h.Validate()
}

// Key returns the key of the head.
func (h Head) Key() string { return HeadKey(h.Run, h.Step) }

// EncodeHead validates a head and writes its canonical JSON.
func EncodeHead(h Head) ([]byte, error) {
	h.Version, h.SchemaVersion = Major, Version
	if err := h.Validate(); err != nil {
		return nil, err
	}
	return Canonical(h)
}

// DecodeHead reads and validates a head. It accepts only the canonical text, and ignores fields that a later minor
// version has added.
func DecodeHead(data []byte) (Head, error) {
	h, err := decodeDocument[Head]("head", data)
	if err != nil {
		return Head{}, err
	}
	return h, h.Validate()
}

// Validate checks that every ref names a stage manifest of its owner, step, stage and generation.
func (h Head) Validate() error {
	if err := h.validate(); err != nil {
		return fmt.Errorf("head of run %s step %s: %w", h.Run, h.Step, err)
	}
	return nil
}

func (h Head) validate() error {
	if err := CheckRunID(h.Run); err != nil {
		return err
	}
	if err := checkStep(h.Step); err != nil {
		return err
	}
	if h.From != "" {
		if err := CheckRunID(h.From); err != nil {
			return fmt.Errorf("from: %w", err)
		}
	}
	if len(h.Generations) != len(h.Stages) {
		return fmt.Errorf("has %d generations for %d stages", len(h.Generations), len(h.Stages))
	}
	for _, stage := range sortedKeys(h.Stages) {
		gen, ok := h.Generations[stage]
		if !ok {
			return fmt.Errorf("stage %s has no generation", stage)
		}
		if len(h.Stages[stage]) == 0 {
			return fmt.Errorf("stage %s has no manifest", stage)
		}
		for i, r := range h.Stages[stage] {
			if err := h.validateRef(stage, gen, r); err != nil {
				return fmt.Errorf("stage %s manifest %d: %w", stage, i, err)
			}
		}
	}
	return nil
}

func (h Head) validateRef(stage string, gen int, r Ref) error {
	if err := r.Validate(); err != nil {
		return err
	}
	p, err := ParseManifestKey(r.Key)
	if err != nil {
		return err
	}
	if p.Run != h.Owner() || p.Step != h.Step || p.Stage != stage || p.Gen != gen || p.Shard != absent {
		return fmt.Errorf("%s is not a stage manifest of this step in generation %d", r.Key, gen)
	}
	return nil
}
