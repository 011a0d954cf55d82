package analysis

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/schema"
)

// FaultKind says which promise of the record is broken.
type FaultKind string

// The kinds of faults.
const (
	FaultMissing FaultKind = "missing" // something names an object that is not there
	FaultDamaged FaultKind = "damaged" // bytes are not those that their digest names, or do not parse
	FaultRows    FaultKind = "rows"    // a shard decodes, and not to what its manifest or table says
	FaultLineage FaultKind = "lineage" // a manifest was not made of what it should have been made of
	FaultConfig  FaultKind = "config"  // a manifest was made under another recipe
	FaultPruned  FaultKind = "pruned"  // a checkpoint is pruned that the run needs
)

// Advice says what to do about a fault of the kind.
func (k FaultKind) Advice() string {
	switch k {
	case FaultMissing, FaultDamaged, FaultRows:
		return "restore the object from a copy of the bucket; without one, delete the manifest that names it and the step's head, and resume the run: the stage is done again"
	case FaultLineage:
		return "somebody changed the record after it was made: restore the manifest from a copy of the bucket, or train the run again under another id"
	case FaultConfig:
		return "two recipes were run under one id: keep the record for reading only, and train again under another id"
	case FaultPruned:
		return "restore the checkpoint's files from a copy of the bucket and delete the pruned.json beside them; without them the run cannot be resumed"
	}
	return ""
}

// Fault is something that the record promises and does not keep.
type Fault struct {
	Key     string    `json:"key"`
	Kind    FaultKind `json:"kind"`
	Message string    `json:"message"`
}

// Verification is what Verify found. A record without faults can be read and resumed.
type Verification struct {
	Run         string  `json:"run"`
	Generations []int   `json:"generations"` // of the manifests
	Manifests   int     `json:"manifests"`
	Heads       int     `json:"heads"`
	Shards      int     `json:"shards"`
	Rows        int64   `json:"rows"`
	Bytes       int64   `json:"bytes"`       // of the shards and checkpoint files that were read
	Checkpoints int     `json:"checkpoints"` // whole
	Pruned      int     `json:"pruned"`      // checkpoints
	Orphans     int     `json:"orphans"`     // objects of the run that nothing names: not a fault, and never read
	Faults      []Fault `json:"faults"`
}

// Of keeps the faults of one generation, and those of heads, checkpoints and other objects that
// have none.
func (v Verification) Of(gen int) (Verification, error) {
	if !slices.Contains(v.Generations, gen) {
		return v, fmt.Errorf("%w: generation %d of run %s; there %s", ErrNoGeneration, gen, v.Run, generationWords(v.Generations))
	}
	v.Faults = slices.DeleteFunc(slices.Clone(v.Faults), func(f Fault) bool {
		of, has := generationOf(f.Key)
		return has && of != gen
	})
	return v, nil
}

// generationOf is the generation that a manifest's or a shard's key names.
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
