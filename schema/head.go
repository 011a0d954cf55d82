package schema

import (
	"encoding/json"
	"fmt"
)

// Head names, for one step, the stage manifests that the step's update consumed. A replay never
// moves it.
type Head struct {
	Version int    `json:"version"`
	Run     string `json:"run"`
	Step    string `json:"step"` // a number, or InitStep
	// Generations holds the generation of each stage.
	Generations map[string]int `json:"generations"`
	// Stages holds each stage's manifests; rollout and sandbox have one for each turn, in order.
	Stages map[string][]Ref `json:"stages"`
}

// NewHead makes a step's head from the refs of its stage manifests, grouped by stage in the order
// given.
func NewHead(run, step string, manifests ...Ref) (Head, error) {
	h := Head{Version: ManifestVersion, Run: run, Step: step, Generations: map[string]int{}, Stages: map[string][]Ref{}}
	for _, r := range manifests {
		p, err := ParseManifestKey(r.Key)
		if err != nil {
			return Head{}, fmt.Errorf("head of run %s step %s: %w", run, step, err)
		}
		if g, ok := h.Generations[p.Stage]; ok && g != p.Gen {
			return Head{}, fmt.Errorf("head of run %s step %s: stage %s has manifests of generations %d and %d", run, step, p.Stage, g, p.Gen)
		}
		h.Generations[p.Stage] = p.Gen
		h.Stages[p.Stage] = append(h.Stages[p.Stage], r)
	}
	return h, h.Validate()
}

// Key is where the head lies.
func (h Head) Key() string { return HeadKey(h.Run, h.Step) }

// EncodeHead validates a head and writes its canonical JSON.
func EncodeHead(h Head) ([]byte, error) {
	h.Version = ManifestVersion
	if err := h.Validate(); err != nil {
		return nil, err
	}
	return Canonical(h)
}

// DecodeHead reads and validates a head. Only the canonical text is taken.
func DecodeHead(data []byte) (Head, error) {
	var h Head
	if err := checkVersion("head", data); err != nil {
		return Head{}, err
	}
	if err := decodeStrict(data, &h); err != nil {
		return Head{}, fmt.Errorf("head: %w", err)
	}
	return h, h.Validate()
}

// Validate checks that every ref is a stage manifest of this run, step, stage and generation.
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
	if p.Run != h.Run || p.Step != h.Step || p.Stage != stage || p.Gen != gen || p.Shard != absent {
		return fmt.Errorf("%s is not a stage manifest of this step in generation %d", r.Key, gen)
	}
	return nil
}

// checkVersion reads only the version, so that a document of a later one is named as such and not
// as one with unknown fields.
func checkVersion(what string, data []byte) error {
	var v struct {
		Version *int `json:"version"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return fmt.Errorf("%s: decode JSON: %w", what, err)
	}
	if v.Version == nil {
		return fmt.Errorf("%s: has no version", what)
	}
	if *v.Version != ManifestVersion {
		return fmt.Errorf("%s: version %d is not one that this program knows (%d)", what, *v.Version, ManifestVersion)
	}
	return nil
}
