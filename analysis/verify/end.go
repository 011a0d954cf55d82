package verify

import (
	"maps"
	"slices"

	"github.com/ropewalk/ropewalk/schema"
)

// checkMeasured checks that each evaluation that has measured times is there. Until the next step names it, nothing
// else of an unfinished run does.
func checkMeasured(v *evidence) {
	fork, _ := v.manifests[schema.AtInit(v.run, schema.StagePrepare).ManifestKey()].Fork() // a fault of its own
	for _, m := range v.ordered() {
		for _, s := range m.ShardsOf(schema.Timings) {
			for _, stage := range slices.Sorted(maps.Keys(v.shards[s.Key].measured)) {
				made := m.Place
				made.Stage, made.Gen = stage, 0
				if fork.Shares(made) {
					continue
				}
				key := made.ManifestKey()
				if _, there := v.manifests[key]; !there && !v.named[key] {
					v.name(key)
					v.fault(FaultMissing, key, "does not exist, but %s holds its measured time", m.ManifestKey())
				}
			}
		}
	}
}

// checkEnd checks that the run is complete. The end of a run that trains or evaluates has a manifest; that of an import
// is its only head.
func checkEnd(v *evidence) {
	last := 0
	for step := range v.heads {
		last = max(last, step)
	}
	end := -1
	for step, made := range v.stages {
		n, numbered := stepOf(step)
		if numbered && slices.ContainsFunc(made, func(m committed) bool { return m.Stage == schema.StageEnd }) {
			end = max(end, n)
		}
	}
	_, imported := v.manifests[schema.AtInit(v.run, schema.StageImport).ManifestKey()]
	if end >= last && end >= 0 || imported && last > 0 {
		return
	}
	v.fault(FaultMissing, schema.At(v.run, last, schema.StageEnd).ManifestKey(), "does not exist: the run is not "+
		"complete, or its end was cut off (--unfinished allows that)")
}
