package schema

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
)

// The fields of documents have tags: doc describes a field, form names the form of a text (document.go), and since is
// the minor version that added the field. The JSON schemas are made of them.

// Ref names an object: its key and the digest of its bytes.
type Ref struct {
	Key    string `json:"key" doc:"key of the object"`
	Digest string `json:"digest" form:"digest" doc:"SHA-256 of its bytes"`
}

// ShardInfo describes one data shard.
type ShardInfo struct {
	Key    string `json:"key" doc:"key of the shard, which follows from the manifest's place, the table and the digest"`
	Table  Table  `json:"table" doc:"its table, or documents"`
	Digest string `json:"digest" form:"digest" doc:"SHA-256 of its bytes"`
	Bytes  int64  `json:"bytes" doc:"their number, > 0"`
	Rows   int    `json:"rows" doc:"number of rows; 1 for a document"`
}

// Checkpoint describes a checkpoint: files under one prefix.
type Checkpoint struct {
	Prefix  string           `json:"prefix" doc:"prefix of the keys of the files; ends in a slash"`
	Digest  string           `json:"digest" form:"digest" doc:"the checkpoint digest: SHA-256 over the sorted lines NAME SHA256 of the files that make the policy"`
	Weights string           `json:"weights,omitempty" form:"digest" since:"3" doc:"the weights digest: over the tensors of the model, of an adapter and of a value head, independent of file names (see Checkpoints)"`
	Files   []CheckpointFile `json:"files" doc:"the files, sorted by name"`
}

// CheckpointFile is one file of a checkpoint.
type CheckpointFile struct {
	Name   string `json:"name" form:"file" doc:"name of the file"`
	Digest string `json:"digest" form:"digest" doc:"SHA-256 of its bytes"`
	Bytes  int64  `json:"bytes" doc:"their number"`
	At     string `json:"at,omitempty" since:"3" doc:"key of another checkpoint's file that holds the bytes, which is never pruned; absent if they are under the prefix"`
}

// Key returns the key of a file's bytes.
func (c Checkpoint) Key(f CheckpointFile) string {
	if f.At != "" {
		return f.At
	}
	return c.Prefix + f.Name
}

// Manifest commits what was made at a place. README.md describes the commit protocol.
type Manifest struct {
	Version       int `json:"version" form:"major" doc:"major version of the format"`
	SchemaVersion int `json:"schema_version" form:"minor" doc:"minor version of the format"`
	Place
	Code       string             `json:"code" form:"digest" doc:"digest of the program that made it"`
	Config     string             `json:"config" form:"digest" doc:"digest of the resolved recipe"`
	Inputs     []Ref              `json:"inputs" doc:"the manifests that the stage read, in the order in which it lists them"`
	Shards     []ShardInfo        `json:"shards" doc:"the data shards that were made"`
	Parts      []Ref              `json:"parts" doc:"in a stage manifest, the manifests of its shards, in their order"`
	Checkpoint *Checkpoint        `json:"checkpoint" doc:"the policy that was made; null if none was"`
	Critic     *Checkpoint        `json:"critic,omitempty" since:"3" doc:"the critic that belongs to the policy of checkpoint; absent if the run trains none"`
	Stats      map[string]float64 `json:"stats" doc:"numbers about what was made, such as rows and tokens; a reader needs none of them"`
	Note       map[string]string  `json:"note" doc:"texts about what was made; result holds the result of the activity as JSON"`
}

func (m Manifest) format() formatVersion { return formatVersion{m.Version, m.SchemaVersion} }

// NewManifest returns an empty manifest with the versions that this code writes.
func NewManifest(place Place, code, config string) Manifest {
	m := Manifest{Place: place, Code: code, Config: config}
	m.normalise()
	return m
}

// normalise sets the manifest's versions to ours and makes nil collections empty, so that equal manifests have equal
// bytes.
func (m *Manifest) normalise() {
	m.Version, m.SchemaVersion = Major, Version
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

// Checkpoints returns the checkpoints that were made: the policy's, then its critic's.
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

// EncodeManifest validates a manifest and writes its canonical JSON. It sets the versions.
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

// DecodeManifest reads and validates a manifest. It accepts only the canonical text. It ignores fields and tables that
// a later minor version has added.
func DecodeManifest(data []byte) (Manifest, error) {
	m, err := decodeDocument[Manifest]("manifest", data)
	if err != nil {
		return Manifest{}, err
	}
	if err := m.Validate(); err != nil {
		return Manifest{}, err
	}
	return m, nil
}

// Validate checks the manifest without reading anything else; the error names the field at fault.
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
	if m.SchemaVersion < 1 {
		return fmt.Errorf("schema_version: must be ≥ 1, got %d", m.SchemaVersion)
	}
	if !validDigest(m.Code) {
		return fmt.Errorf("code: want a digest, got %q", m.Code)
	}
	if !validDigest(m.Config) {
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

// validateParts checks that only a stage manifest has parts, and that they belong to its own shards.
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
		if err := s.validate(m.Place, m.SchemaVersion > Version); err != nil {
			return fmt.Errorf("shards %d: %w", i, err)
		}
		if seen[s.Key] {
			return fmt.Errorf("shards %d: %s is listed twice", i, s.Key)
		}
		seen[s.Key] = true
	}
	return nil
}

// validate checks a shard of a manifest. later says that a later version wrote the manifest, which may have other
// tables.
func (s ShardInfo) validate(place Place, later bool) error {
	ext := s.Table.Ext()
	if err := s.Table.Valid(); err != nil {
		if !later || !tableForm.MatchString(string(s.Table)) {
			return err
		}
		ext = strings.TrimPrefix(path.Ext(s.Key), ".")
	}
	if !validDigest(s.Digest) {
		return fmt.Errorf("%s: want a digest, got %q", s.Key, s.Digest)
	}
	if want := place.DataKey(s.Table, s.Digest, ext); s.Key != want {
		return fmt.Errorf("%s: the key of a shard with that digest made here is %s", s.Key, want)
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
		return fmt.Errorf("critic: must be absent if checkpoint is null, because a critic belongs to a policy")
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
	if !validDigest(c.Digest) {
		return fmt.Errorf("want a digest, got %q", c.Digest)
	}
	if c.Weights != "" && !validDigest(c.Weights) {
		return fmt.Errorf("weights: want a digest, got %q", c.Weights)
	}
	of := strings.HasPrefix(c.Prefix, runsPrefix) || strings.HasPrefix(c.Prefix, warmPrefix)
	if !of || path.Clean(c.Prefix)+"/" != c.Prefix {
		return fmt.Errorf(
			"prefix %q: want the prefix of a checkpoint of a run or a warm start, with a slash at its end",
			c.Prefix)
	}
	if len(c.Files) == 0 {
		return fmt.Errorf("%s: has no files", c.Prefix)
	}
	for i, f := range c.Files {
		switch {
		case !fileForm.MatchString(f.Name):
			return fmt.Errorf("files %d: name %q is not the name of a plain file", i, f.Name)
		case !validDigest(f.Digest):
			return fmt.Errorf("file %s: want a digest, got %q", f.Name, f.Digest)
		case f.At != "" && !sharable(f.At, f.Name):
			return fmt.Errorf("file %s: at %q: want the key of this file in the first checkpoint of a run or in a "+
				"warm start", f.Name, f.At)
		case f.Bytes < 0:
			return fmt.Errorf("file %s: bytes must be ≥ 0, got %d", f.Name, f.Bytes)
		case i > 0 && f.Name <= c.Files[i-1].Name:
			return fmt.Errorf("file %s: comes after %s; want the files sorted by name", f.Name, c.Files[i-1].Name)
		}
	}
	return nil
}

// Validate checks the form of a ref.
func (r Ref) Validate() error {
	if r.Key == "" || strings.HasPrefix(r.Key, "/") {
		return fmt.Errorf("key %q: want a relative key", r.Key)
	}
	if !validDigest(r.Digest) {
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
