package schema

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
)

// ManifestVersion is the version of the manifests and heads that this code writes and reads.
const ManifestVersion = 1

// Ref names bytes: the key under which they lie and their digest.
type Ref struct {
	Key    string `json:"key"`
	Digest string `json:"digest"`
}

// ShardInfo describes one data shard.
type ShardInfo struct {
	Key    string `json:"key"`
	Table  Table  `json:"table"`
	Digest string `json:"digest"`
	Bytes  int64  `json:"bytes"`
	Rows   int    `json:"rows"`
}

// Checkpoint describes a checkpoint: files under one prefix.
type Checkpoint struct {
	Prefix string `json:"prefix"` // ends in a slash
	// Digest is the checkpoint digest: SHA-256 over the sorted lines "name sha256" of the files
	// that make the policy.
	Digest string           `json:"digest"`
	Files  []CheckpointFile `json:"files"` // sorted by name
}

// CheckpointFile is one file of a checkpoint.
type CheckpointFile struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
	Bytes  int64  `json:"bytes"`
	// At is the key of another checkpoint's file with the same bytes, which then are not put again; absent where the bytes lie
	// under Prefix. That checkpoint is one that is never pruned.
	At string `json:"at,omitempty"`
}

// Key is where a file's bytes lie.
func (c Checkpoint) Key(f CheckpointFile) string {
	if f.At != "" {
		return f.At
	}
	return c.Prefix + f.Name
}

// Manifest commits what was made at a place. See DESIGN.md for the life of one.
type Manifest struct {
	Version       int `json:"version"`
	SchemaVersion int `json:"schema_version"`
	Place
	Code   string `json:"code"`   // digest of the program that made it
	Config string `json:"config"` // digest of the resolved recipe
	// Inputs are the manifests that were read.
	Inputs []Ref `json:"inputs"`
	// Shards are the data shards that were made, each under its Place's DataKey.
	Shards []ShardInfo `json:"shards"`
	// Parts are the shard manifests that a stage manifest commits, in the order of their shards.
	Parts      []Ref       `json:"parts"`
	Checkpoint *Checkpoint `json:"checkpoint"` // null where none was made
	// Critic is the checkpoint of the critic that belongs to the policy of Checkpoint; absent where the
	// run trains none.
	Critic *Checkpoint `json:"critic,omitempty"`
	// Stats are small numbers about what was made; they are not part of its identity.
	Stats map[string]float64 `json:"stats"`
	Note  map[string]string  `json:"note"`
}

// NewManifest returns an empty manifest of the versions that this code writes.
func NewManifest(place Place, code, config string) Manifest {
	m := Manifest{Place: place, Code: code, Config: config}
	m.normalise()
	return m
}

// normalise gives the manifest our versions and makes nil collections empty, so that equal
// manifests have equal bytes.
func (m *Manifest) normalise() {
	m.Version, m.SchemaVersion = ManifestVersion, Version
	if m.Inputs == nil {
		m.Inputs = []Ref{}
	}
	if m.Shards == nil {
		m.Shards = []ShardInfo{}
	}
	if m.Parts == nil {
		m.Parts = []Ref{}
	}
	if m.Stats == nil {
		m.Stats = map[string]float64{}
	}
	if m.Note == nil {
		m.Note = map[string]string{}
	}
	for _, c := range m.Checkpoints() {
		if c.Files == nil {
			c.Files = []CheckpointFile{}
		}
	}
}

// Checkpoints lists what there is: the policy's, then its critic's.
func (m Manifest) Checkpoints() []*Checkpoint {
	var out []*Checkpoint
	for _, c := range []*Checkpoint{m.Checkpoint, m.Critic} {
		if c != nil {
			out = append(out, c)
		}
	}
	return out
}

// Rows returns how many rows the manifest's shards of a table hold.
func (m Manifest) Rows(table Table) int {
	n := 0
	for _, s := range m.Shards {
		if s.Table == table {
			n += s.Rows
		}
	}
	return n
}

// ShardsOf returns the manifest's shards of a table, in order.
func (m Manifest) ShardsOf(table Table) []ShardInfo {
	var out []ShardInfo
	for _, s := range m.Shards {
		if s.Table == table {
			out = append(out, s)
		}
	}
	return out
}

// EncodeManifest validates a manifest and writes its canonical JSON; the versions are set here.
func EncodeManifest(m Manifest) ([]byte, error) {
	m.normalise()
	if err := m.Validate(); err != nil {
		return nil, err
	}
	data, err := Canonical(m)
	if err != nil {
		return nil, fmt.Errorf("manifest of %s: %w", m.Place, err)
	}
	return data, nil
}

// DecodeManifest reads and validates a manifest. Only the canonical text is taken.
func DecodeManifest(data []byte) (Manifest, error) {
	var m Manifest
	if err := checkVersion("manifest", data); err != nil {
		return Manifest{}, err
	}
	if err := decodeStrict(data, &m); err != nil {
		return Manifest{}, fmt.Errorf("manifest: %w", err)
	}
	if err := m.Validate(); err != nil {
		return Manifest{}, err
	}
	return m, nil
}

// Validate checks the manifest by itself; the error names the field at fault.
func (m Manifest) Validate() error {
	if err := m.validate(); err != nil {
		return fmt.Errorf("manifest of %s: %w", m.Place, err)
	}
	return nil
}

func (m Manifest) validate() error {
	if err := m.Place.Validate(); err != nil {
		return err
	}
	if m.SchemaVersion < 1 || m.SchemaVersion > Version {
		return fmt.Errorf("schema_version: this program knows 1 to %d, got %d", Version, m.SchemaVersion)
	}
	if !ValidDigest(m.Code) {
		return fmt.Errorf("code: want a digest, got %q", m.Code)
	}
	if !ValidDigest(m.Config) {
		return fmt.Errorf("config: want a digest, got %q", m.Config)
	}
	if err := checkRefs("inputs", m.Inputs); err != nil {
		return err
	}
	if err := m.validateParts(); err != nil {
		return err
	}
	if err := m.validateShards(); err != nil {
		return err
	}
	if err := m.validateCheckpoint(); err != nil {
		return err
	}
	for _, name := range sortedKeys(m.Stats) {
		if x := m.Stats[name]; math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("stats %s: must be finite, got %v", name, x)
		}
	}
	return nil
}

// validateParts checks that only a stage manifest has parts, and that they are its own shards'.
func (m Manifest) validateParts() error {
	if len(m.Parts) > 0 && (m.Shard != absent || m.Warm != "") {
		return fmt.Errorf("parts: only a stage manifest has parts")
	}
	last := absent
	for i, r := range m.Parts {
		if err := r.Validate(); err != nil {
			return fmt.Errorf("parts %d: %w", i, err)
		}
		p, err := ParseManifestKey(r.Key)
		if err != nil {
			return fmt.Errorf("parts %d: %w", i, err)
		}
		if p.Shard == absent || p.StageManifest().WithGen(m.Gen) != m.Place {
			return fmt.Errorf("parts %d: %s is not a shard of %s", i, p, m.Place)
		}
		if p.Shard <= last {
			return fmt.Errorf("parts %d: shard %d comes after shard %d", i, p.Shard, last)
		}
		last = p.Shard
	}
	return nil
}

func (m Manifest) validateShards() error {
	seen := map[string]bool{}
	for i, s := range m.Shards {
		if err := s.validate(m.Place); err != nil {
			return fmt.Errorf("shards %d: %w", i, err)
		}
		if seen[s.Key] {
			return fmt.Errorf("shards %d: %s is listed twice", i, s.Key)
		}
		seen[s.Key] = true
	}
	return nil
}

func (s ShardInfo) validate(place Place) error {
	if err := s.Table.Valid(); err != nil {
		return err
	}
	if !ValidDigest(s.Digest) {
		return fmt.Errorf("%s: want a digest, got %q", s.Key, s.Digest)
	}
	if want := place.DataKey(s.Table, s.Digest, s.Table.Ext()); s.Key != want {
		return fmt.Errorf("%s: a shard with that digest made here lies under %s", s.Key, want)
	}
	if s.Bytes <= 0 {
		return fmt.Errorf("%s: bytes must be > 0, got %d", s.Key, s.Bytes)
	}
	if s.Rows < 0 {
		return fmt.Errorf("%s: rows must be ≥ 0, got %d", s.Key, s.Rows)
	}
	return nil
}

func (m Manifest) validateCheckpoint() error {
	if m.Critic != nil && m.Checkpoint == nil {
		return fmt.Errorf("critic: belongs to a policy, and checkpoint is null")
	}
	if m.Checkpoint == nil {
		return nil
	}
	if err := m.Checkpoint.validate(); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if m.Critic == nil {
		return nil
	}
	if err := m.Critic.validate(); err != nil {
		return fmt.Errorf("critic: %w", err)
	}
	return nil
}

func (c Checkpoint) validate() error {
	if !ValidDigest(c.Digest) {
		return fmt.Errorf("want a digest, got %q", c.Digest)
	}
	of := strings.HasPrefix(c.Prefix, runsPrefix) || strings.HasPrefix(c.Prefix, warmPrefix)
	if !of || path.Clean(c.Prefix)+"/" != c.Prefix {
		return fmt.Errorf("prefix %q: want that of a run's or a warm start's checkpoint, and a slash at its end", c.Prefix)
	}
	if len(c.Files) == 0 {
		return fmt.Errorf("%s: has no files", c.Prefix)
	}
	for i, f := range c.Files {
		switch {
		case !fileForm.MatchString(f.Name):
			return fmt.Errorf("files %d: name %q is not that of a plain file", i, f.Name)
		case !ValidDigest(f.Digest):
			return fmt.Errorf("file %s: want a digest, got %q", f.Name, f.Digest)
		case f.At != "" && !sharable(f.At, f.Name):
			return fmt.Errorf("file %s: at %q: want the key of that file of a warm start's or a run's first checkpoint", f.Name, f.At)
		case f.Bytes < 0:
			return fmt.Errorf("file %s: bytes must be ≥ 0, got %d", f.Name, f.Bytes)
		case i > 0 && f.Name <= c.Files[i-1].Name:
			return fmt.Errorf("file %s: comes after %s; want them sorted by name", f.Name, c.Files[i-1].Name)
		}
	}
	return nil
}

// Validate checks the form of a ref.
func (r Ref) Validate() error {
	if r.Key == "" || strings.HasPrefix(r.Key, "/") {
		return fmt.Errorf("key %q: want a relative key", r.Key)
	}
	if !ValidDigest(r.Digest) {
		return fmt.Errorf("%s: want a digest, got %q", r.Key, r.Digest)
	}
	return nil
}

func checkRefs(field string, refs []Ref) error {
	for i, r := range refs {
		if err := r.Validate(); err != nil {
			return fmt.Errorf("%s %d: %w", field, i, err)
		}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
