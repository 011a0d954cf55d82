package verify

import (
	"cmp"
	"slices"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/schema"
)

// FaultKind names the promise of the record that is broken.
type FaultKind string

// The kinds of faults.
const (
	FaultMissing FaultKind = "missing" // something names an object that does not exist
	FaultDamaged FaultKind = "damaged" // bytes do not match their digest, or do not parse
	FaultRows    FaultKind = "rows"    // a shard decodes, but its rows contradict its manifest or table
	FaultLineage FaultKind = "lineage" // a manifest was made from other inputs than it should have been
	FaultConfig  FaultKind = "config"  // a manifest was made under another recipe
	FaultPruned  FaultKind = "pruned"  // a checkpoint that the run needs was pruned
	FaultFigures FaultKind = "figures" // a manifest states a figure that does not follow from its rows
	// FaultSignature: no trusted key has signed the bytes of a manifest, head or note of pruning.
	FaultSignature FaultKind = "signature"
)

// Advice tells the user what to do about a fault of this kind.
func (k FaultKind) Advice() string {
	switch k {
	case FaultMissing, FaultDamaged, FaultRows:
		return "restore the object from a copy of the bucket; without one, delete the manifest that names it and " +
			"the step's head, and resume the run: the stage then runs again"
	case FaultLineage, FaultFigures:
		return "the record was changed after it was made: restore the manifest from a copy of the bucket, or train " +
			"the run again under another id"
	case FaultConfig:
		return "two recipes were run under one id: use the record only for reading, and train again under another id"
	case FaultSignature:
		return "find out who committed it: what was committed without the key, or changed afterwards, is no one's " +
			"word; trust another key (--keys), restore the object from a copy of the bucket, or train the run again"
	case FaultPruned:
		return "restore the checkpoint's files from a copy of the bucket and delete pruned.json in their folder; " +
			"without them the run cannot be resumed"
	}
	return ""
}

// Fault is a promise of the record that does not hold.
type Fault struct {
	Key     string    `json:"key"`
	Kind    FaultKind `json:"kind"`
	Message string    `json:"message"`
}

// Report is what Run found. A record without faults can be read and resumed.
type Report struct {
	Run         string `json:"run"`
	Generations []int  `json:"generations"` // of the manifests
	Manifests   int    `json:"manifests"`
	Heads       int    `json:"heads"`
	Shards      int    `json:"shards"`
	Rows        int64  `json:"rows"`
	Bytes       int64  `json:"bytes"`       // of the shards and checkpoint files that were read
	Checkpoints int    `json:"checkpoints"` // whole
	Pruned      int    `json:"pruned"`      // checkpoints
	// steps without measured times: not a fault, since no result depends on them
	Untimed int     `json:"untimed"`
	Orphans int     `json:"orphans"` // objects of the run that nothing names: not a fault; they are never read
	Faults  []Fault `json:"faults"`
}

// Of keeps the faults of one generation, and those of objects without a generation: heads, checkpoints and others.
func (v Report) Of(gen int) (Report, error) {
	if !slices.Contains(v.Generations, gen) {
		return v, analysis.LacksGeneration(v.Run, gen, v.Generations)
	}
	v.Faults = slices.DeleteFunc(slices.Clone(v.Faults), func(f Fault) bool {
		of, has := generationOf(f.Key)
		return has && of != gen
	})
	return v, nil
}

// generationOf returns the generation in the key of a manifest or a shard.
func generationOf(key string) (gen int, has bool) {
	if p, err := schema.ParseManifestKey(key); err == nil {
		return p.Gen, p.Warm == ""
	}
	parts, err := schema.ParseDataKey(key)
	return parts.Gen, err == nil && parts.Warm == ""
}

func sortFaults(faults []Fault) []Fault {
	slices.SortFunc(faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(faults)
}
