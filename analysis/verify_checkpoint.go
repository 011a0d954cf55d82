package analysis

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// checkCheckpoints checks each checkpoint once, whoever names it.
func (v *verifier) checkCheckpoints(ctx context.Context) error {
	pruned := map[string]bool{} // by prefix
	for _, key := range v.keys() {
		for _, c := range v.manifests[key].Checkpoints() {
			if err := v.checkCheckpoint(ctx, key, *c, pruned); err != nil {
				return err
			}
		}
	}
	v.checkNeeded(pruned)
	return nil
}

func (v *verifier) checkCheckpoint(ctx context.Context, key string, c schema.Checkpoint, pruned map[string]bool) error {
	if _, done := pruned[c.Prefix]; done {
		return nil
	}
	note, err := v.prunedNote(ctx, key, c)
	if err != nil {
		return err
	}
	if pruned[c.Prefix] = note; note {
		return nil
	}
	return v.checkFiles(ctx, key, c)
}

// prunedNote reports whether the checkpoint's files were deleted on purpose.
func (v *verifier) prunedNote(ctx context.Context, owner string, c schema.Checkpoint) (bool, error) {
	key := c.Prefix + schema.PrunedFile
	v.name(key)
	for _, f := range c.Files {
		v.name(c.Key(f)) // what pruning has not deleted yet is no orphan
	}
	data, err := v.objects.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var note struct {
		Checkpoint schema.Checkpoint `json:"checkpoint"`
	}
	if err := json.Unmarshal(data, &note); err != nil {
		v.fault(FaultDamaged, key, "is no note of a pruned checkpoint: %v", err)
	} else if note.Checkpoint.Digest != c.Digest {
		v.fault(FaultLineage, key, "notes checkpoint %s, and %s says that %s lay here", note.Checkpoint.Digest, owner, c.Digest)
	}
	v.out.Pruned++
	return true, nil
}

func (v *verifier) checkFiles(ctx context.Context, owner string, c schema.Checkpoint) error {
	intact := make([]bool, len(c.Files))
	err := each(ctx, shardsAtOnce, len(c.Files), func(ctx context.Context, i int) error {
		f := c.Files[i]
		f.At = c.Key(f)
		sound, known := v.verdict(f)
		if known {
			intact[i] = sound
			return nil
		}
		data, err := v.get(ctx, f.At, owner)
		if err != nil {
			return err
		}
		intact[i] = data != nil && v.whole(f.At, owner, data, f.Digest, f.Bytes)
		v.judge(f, intact[i])
		return nil
	})
	if err != nil {
		return err
	}
	if got := checkpointDigest(c); got != c.Digest {
		v.fault(FaultDamaged, owner, "names checkpoint %s, and its files make %s", c.Digest, got)
		return nil
	}
	if !slices.Contains(intact, false) {
		v.out.Checkpoints++
	}
	return nil
}

// verdict is what was found of a file that another checkpoint has too, if it says the same of it: a base lies once, and is
// read once.
func (v *verifier) verdict(f schema.CheckpointFile) (sound, known bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	sound, known = v.files[f]
	return sound, known
}

func (v *verifier) judge(f schema.CheckpointFile, sound bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.files[f] = sound
}

// checkpointDigest works out the digest that the files' digests make; see checkpoint.Digest.
func checkpointDigest(c schema.Checkpoint) string {
	var lines strings.Builder
	for _, f := range c.Files { // sorted by name
		if checkpoint.Counts(f.Name) {
			lines.WriteString(f.Name + " " + f.Digest + "\n")
		}
	}
	return schema.Digest([]byte(lines.String()))
}

// checkNeeded finds a pruned checkpoint that the run would go on from.
func (v *verifier) checkNeeded(pruned map[string]bool) {
	last := 0
	for n := range v.heads {
		last = max(last, n)
	}
	for _, ref := range v.heads[last].Stages[schema.StageUpdate] {
		for _, c := range v.manifests[ref.Key].Checkpoints() {
			if pruned[c.Prefix] {
				v.fault(FaultPruned, c.Prefix+schema.PrunedFile, "says that the checkpoint is pruned, and step %d, the run's last, ends with it", last)
			}
		}
	}
}
