package analysis

import (
	"maps"
	"slices"
	"strconv"

	"github.com/ropewalk/ropewalk/schema"
)

// checkReplays holds what was made of a finished step beside its head against the same rules: each
// stage of a generation is made from the stages of that generation, or else from the head's.
func (v *verifier) checkReplays(step int, h schema.Head) {
	replays := v.replays(step, h)
	for _, gen := range slices.Sorted(maps.Keys(replays)) {
		overlay := h
		overlay.Stages = maps.Clone(h.Stages)
		maps.Copy(overlay.Stages, replays[gen])
		if again := replays[gen][schema.StageReward]; v.loaded(again) && !v.reads(again, schema.StageGrade) {
			delete(overlay.Stages, schema.StageGrade) // made without symbolic gradings
		}
		v.checkStages(overlay, func(stage string) bool { return replays[gen][stage] == nil })
		v.checkRowCounts(overlay)
	}
}

// reads reports whether a stage's inputs hold a manifest of another stage.
func (v *verifier) reads(stage []schema.Ref, from string) bool {
	for ref := range v.inputs(stage) {
		if v.manifests[ref.Key].Stage == from {
			return true
		}
	}
	return false
}

// replays are a step's stage manifests that its head does not name, by generation and stage.
func (v *verifier) replays(step int, h schema.Head) map[int]map[string][]schema.Ref {
	out := map[int]map[string][]schema.Ref{}
	for _, m := range v.ordered() {
		gen, named := h.Generations[m.Stage]
		if m.Warm != "" || m.Step != strconv.Itoa(step) || m.Shard >= 0 || !named || gen == m.Gen {
			continue
		}
		if out[m.Gen] == nil {
			out[m.Gen] = map[string][]schema.Ref{}
		}
		out[m.Gen][m.Stage] = append(out[m.Gen][m.Stage], schema.Ref{Key: m.ManifestKey(), Digest: m.digest})
	}
	return out
}
