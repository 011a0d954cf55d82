package verify

import (
	"maps"
	"slices"
	"strconv"

	"github.com/ropewalk/ropewalk/schema"
)

// checkReplays checks the replays of a finished step by the same rules: each stage of a generation is made from the
// stages of that generation, or else from the head's. An update of a replay starts where the step's own does.
func checkReplays(v *evidence, step int, h schema.Head) {
	replays := v.replays(step, h)
	for _, gen := range slices.Sorted(maps.Keys(replays)) {
		overlay := h
		overlay.Stages = maps.Clone(h.Stages)
		maps.Copy(overlay.Stages, replays[gen])
		for _, r := range reads {
			again := replays[gen][r.stage]
			if r.spared && v.manifests.loaded(again) && !v.manifests.reads(again, r.from) {
				delete(overlay.Stages, r.from)
			}
		}
		checkStages(v, overlay, func(stage string) bool { return replays[gen][stage] == nil })
		checkRowCounts(v, step, overlay)
		if replays[gen][schema.StageLogprobs] != nil {
			checkOutputs(v, step, overlay)
		}
		if replays[gen][schema.StageUpdate] != nil {
			checkPolicy(v, step, overlay)
		}
	}
}

// reads reports whether a stage's inputs hold a manifest of another stage.
func (a manifests) reads(stage []schema.Ref, from string) bool {
	for ref := range a.inputs(stage) {
		if a[ref.Key].Stage == from {
			return true
		}
	}
	return false
}

// replays returns a step's stage manifests that its head does not name, by generation and stage.
func (v *evidence) replays(step int, h schema.Head) map[int]map[string][]schema.Ref {
	out := map[int]map[string][]schema.Ref{}
	for _, m := range v.stages[strconv.Itoa(step)] {
		gen, named := h.Generations[m.Stage]
		if !named || gen == m.Gen {
			continue
		}
		if out[m.Gen] == nil {
			out[m.Gen] = map[string][]schema.Ref{}
		}
		out[m.Gen][m.Stage] = append(out[m.Gen][m.Stage], schema.Ref{Key: m.ManifestKey(), Digest: m.digest})
	}
	return out
}
