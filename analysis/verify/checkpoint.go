package verify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// checkpointCheck checks each checkpoint once, whichever manifests name it.
type checkpointCheck struct {
	*evidence
	pruned map[string]bool // of the checkpoints that are done: whether its files were deleted on purpose, by prefix
	there  map[string]bool // the keys of the run

	mu    sync.Mutex
	files map[schema.CheckpointFile]verdict // each with its key
}

// checkCheckpoints checks all checkpoints that the manifests name.
func checkCheckpoints(ctx context.Context, v *evidence) error {
	c := &checkpointCheck{evidence: v, pruned: map[string]bool{}, there: map[string]bool{},
		files: map[schema.CheckpointFile]verdict{}}
	for _, o := range v.listed {
		c.there[o.Key] = true
	}
	for _, key := range v.keys() {
		for _, named := range v.manifests[key].Checkpoints() {
			if err := c.check(ctx, key, *named); err != nil {
				return err
			}
		}
	}
	c.checkNeeded()
	return nil
}

func (v *checkpointCheck) check(ctx context.Context, key string, c schema.Checkpoint) error {
	if _, done := v.pruned[c.Prefix]; done {
		return nil
	}
	note, err := v.prunedNote(ctx, key, c)
	if err != nil {
		return err
	}
	if v.pruned[c.Prefix] = note; note {
		return nil
	}
	return v.checkFiles(ctx, key, c)
}

// prunedNote reports whether pruning deleted the checkpoint's files.
func (v *checkpointCheck) prunedNote(ctx context.Context, owner string, c schema.Checkpoint) (bool, error) {
	key := c.Prefix + schema.PrunedFile
	v.name(key)
	for _, f := range c.Files {
		v.name(c.Key(f)) // files that pruning has not deleted yet are not orphans
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
		v.fault(FaultDamaged, key, "is not the note of a pruned checkpoint: %v", err)
	} else if note.Checkpoint.Digest != c.Digest {
		v.fault(FaultLineage, key, "names checkpoint %s, but %s says that %s was here", note.Checkpoint.Digest, owner,
			c.Digest)
	}
	v.out.Pruned++
	for _, f := range c.Files { // what pruning has not deleted yet is as it was
		if f.At = c.Key(f); v.there[f.At] && strings.HasPrefix(f.At, c.Prefix) {
			if _, err := v.checkFile(ctx, owner, f, false); err != nil {
				return true, err
			}
		}
	}
	return true, nil
}

func (v *checkpointCheck) checkFiles(ctx context.Context, owner string, c schema.Checkpoint) error {
	intact, lines := make([]bool, len(c.Files)), make([][]string, len(c.Files))
	err := rescue.Each(ctx, shardsAtOnce, len(c.Files), func(ctx context.Context, i int) error {
		f := c.Files[i]
		f.At = c.Key(f)
		sound, known := v.verdictOn(f)
		if known {
			intact[i], lines[i] = sound.intact, sound.tensors
			return nil
		}
		found, err := v.checkFile(ctx, owner, f, checkpoint.HoldsWeights(f.Name) && c.Weights != "")
		if err != nil {
			return err
		}
		intact[i], lines[i] = found.intact, found.tensors
		v.remember(f, found)
		return nil
	})
	if err != nil {
		return err
	}
	if got := checkpointDigest(c); got != c.Digest {
		v.fault(FaultDamaged, owner, "names checkpoint %s, but the digests of its files give %s", c.Digest, got)
		return nil
	}
	if slices.Contains(intact, false) {
		return nil
	}
	if got := checkpoint.WeightsOf(slices.Concat(lines...)); c.Weights != "" && got != c.Weights {
		v.fault(FaultDamaged, owner, "names weights %s, but the tensors of checkpoint %s give %s", c.Weights, c.Digest,
			got)
		return nil
	}
	v.out.Checkpoints++
	return nil
}

// checkFile reads a file once, in parts, since a checkpoint can be larger than memory.
func (v *checkpointCheck) checkFile(ctx context.Context, owner string, f schema.CheckpointFile, weights bool) (verdict,
	error) {
	t := &tensorReader{}
	if weights {
		t.start(f.Bytes)
	}
	h := sha256.New()
	n, err := store.Copy(ctx, v.objects, f.At, f.Bytes, io.MultiWriter(h, t))
	lines, unread := t.finish()
	if err != nil {
		return verdict{}, v.unread(ctx, f.At, owner, err)
	}
	if !v.whole(f.At, owner, n, hex.EncodeToString(h.Sum(nil)), f.Digest, f.Bytes) {
		return verdict{}, nil
	}
	if unread != nil {
		v.fault(FaultDamaged, f.At, "%v", unread)
		return verdict{}, nil
	}
	return verdict{true, lines}, nil
}

// tensorReader is a writer that parses what is written to it as a safetensors file, in its own goroutine. A reader that
// was not started ignores its input.
type tensorReader struct {
	in    *io.PipeWriter
	done  chan struct{}
	lines []string
	err   error
}

func (t *tensorReader) start(size int64) {
	out, in := io.Pipe()
	t.in, t.done = in, make(chan struct{})
	go func() {
		defer close(t.done)
		t.lines, t.err = checkpoint.TensorLines(out, size)
		_, drained := io.Copy(io.Discard, out) // the digest needs the rest of the file
		t.err = errors.Join(t.err, drained)
	}()
}

// Write implements io.Writer.
func (t *tensorReader) Write(p []byte) (int, error) {
	if t.in == nil {
		return len(p), nil
	}
	return t.in.Write(p)
}

// finish ends the file and returns the lines of its tensors, or the reason why there are none.
func (t *tensorReader) finish() ([]string, error) {
	if t.in == nil {
		return nil, nil
	}
	closed := t.in.Close()
	<-t.done
	return t.lines, errors.Join(t.err, closed)
}

// verdict is the result of checking a file: whether its bytes match its manifest, and the lines of its weights digest.
type verdict struct {
	intact  bool
	tensors []string
}

// verdictOn returns the verdict on a file that another checkpoint with the same description shares, such as a base
// model, which is stored and read once.
func (v *checkpointCheck) verdictOn(f schema.CheckpointFile) (found verdict, known bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	found, known = v.files[f]
	return found, known
}

func (v *checkpointCheck) remember(f schema.CheckpointFile, found verdict) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.files[f] = found
}

// checkpointDigest computes the checkpoint's digest from its files' digests; see checkpoint.Digest.
func checkpointDigest(c schema.Checkpoint) string {
	var lines strings.Builder
	for _, f := range c.Files { // sorted by name
		if checkpoint.Counts(f.Name) {
			lines.WriteString(f.Name + " " + f.Digest + "\n")
		}
	}
	return schema.Digest([]byte(lines.String()))
}

// checkNeeded finds a pruned checkpoint that the run would continue from.
func (v *checkpointCheck) checkNeeded() {
	last := 0
	for n := range v.heads {
		last = max(last, n)
	}
	for _, ref := range v.heads[last].Stages[schema.StageUpdate] {
		for _, c := range v.manifests[ref.Key].Checkpoints() {
			if v.pruned[c.Prefix] {
				v.fault(FaultPruned, c.Prefix+schema.PrunedFile, "says that the checkpoint is pruned, but step %d, "+
					"the run's last, ends with it", last)
			}
		}
	}
}
