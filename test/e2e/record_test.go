package e2e

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/stack"
	"github.com/ropewalk/ropewalk/schema"
)

// record reads a store's objects as plain files.
type record struct{ folder string }

// record is the home's bucket.
func (h *home) record() record {
	return record{cmp.Or(h.objects, filepath.Join(h.dir, "s3", stack.DefaultBucket))}
}

func (r record) path(key string) string { return filepath.Join(r.folder, filepath.FromSlash(key)) }

// keys lists the objects below a prefix that ends in a slash, sorted.
func (r record) keys(prefix string) []string {
	var out []string
	_ = filepath.WalkDir(r.path(prefix), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			key, _ := filepath.Rel(r.folder, path)
			out = append(out, filepath.ToSlash(key))
		}
		return nil // a missing folder holds nothing; the callers wait further
	})
	slices.Sort(out)
	return out
}

func (r record) has(key string) bool {
	_, err := os.Stat(r.path(key))
	return !errors.Is(err, fs.ErrNotExist)
}

// heads counts the finished steps.
func (r record) heads(run string) int { return len(r.keys(schema.HeadsPrefix(run))) }

func (r record) manifest(t *testing.T, key string) schema.Manifest {
	t.Helper()
	text, err := os.ReadFile(r.path(key))
	require.NoError(t, err)
	m, err := schema.DecodeManifest(text)
	require.NoError(t, err, key)
	return m
}

// outline lists what a run has committed: a line for each manifest and head, with the digests of
// its shards and checkpoint. It is equal for runs of the same recipe, seed, code and machine.
// Timings, which no stage reads, are left out.
func (r record) outline(t *testing.T, run string) []string {
	t.Helper()
	var out []string
	for _, key := range r.keys(schema.ManifestsPrefix(run)) {
		m := r.manifest(t, key)
		if strings.HasPrefix(m.Stage, "timings") {
			continue
		}
		line := strings.TrimPrefix(key, schema.RunPrefix(run))
		for _, s := range m.Shards {
			if s.Table != schema.Timings {
				line += fmt.Sprintf(" %s:%s", s.Table, s.Digest)
			}
		}
		if m.Checkpoint != nil {
			line += " checkpoint:" + m.Checkpoint.Digest
		}
		out = append(out, line)
	}
	for _, key := range r.keys(schema.HeadsPrefix(run)) {
		out = append(out, strings.TrimPrefix(key, schema.RunPrefix(run)))
	}
	return out
}

// undisturbed requires that a run ended as the base run did: the same policy, the same record,
// every head and manifest once.
func (h *home) undisturbed(t *testing.T, base, got report) {
	t.Helper()
	require.Equal(t, base.Digest, got.Digest)
	require.Equal(t, h.record().outline(t, base.Run), h.record().outline(t, got.Run))
	require.Equal(t, steps, h.record().heads(got.Run))
	h.run(t, "verify", got.Run).ok(t)
}

// partialStep finds a step that has committed a rollout and no update yet, so that its head is not even on its way to
// the store; 0 if none.
func (r record) partialStep(run string) int {
	for step := 1; step <= steps; step++ {
		begun := len(r.keys(fmt.Sprintf("%sstep=%d/rollout/", schema.ManifestsPrefix(run), step))) > 0
		if begun && !r.has(schema.At(run, step, schema.StageUpdate).ManifestKey()) {
			return step
		}
	}
	return 0
}
