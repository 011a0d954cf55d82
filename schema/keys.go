package schema

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// The keys of the record. All are relative to the bucket:
//
//	runs/run=<id>/table=<t>/step=<n>/gen=<g>/<shard>-<digest16>.<ext>        data shard of a stage
//	runs/run=<id>/compact/table=<t>/step=<n>/gen=<g>/all-<digest16>.parquet  merged copy of a step's shards
//	runs/run=<id>/manifests/step=<n>/<stage>[/try=<k>][/turn=<t>]/shard=<s>/gen=<g>.json
//	runs/run=<id>/manifests/step=<n>/<stage>[/try=<k>][/turn=<t>]/gen=<g>.json   stage manifest
//	runs/run=<id>/heads/step=<n>.json
//	runs/run=<id>/checkpoints/<version>/<file>
//	runs/run=<id>/calls/<place of a tool call>/<note>.json                 for tools whose calls must not run twice
//	runs/run=<id>/signatures/<rest of a manifest's or head's key>/<digest16>-<signer>.sig   likewise of warm starts
//	runs/run=<id>/forks/step=<n>/<fork>.json                               for runs that share the steps up to <n>
//	runs/run=<id>/segments/step=<n>/gen=<g>/shard=<s>/<attempt>/<number>-<table>.parquet   of shards that are sampled
//	models/hub/<owner>/<name>/<revision>/<commit>                          what a hub's branch named, as last seen
//	warmstarts/<digest>/manifest.json
//	warmstarts/<digest>/table=<t>/all-<digest16>.<ext>
//	warmstarts/<digest>/checkpoints/<version>/<file>
//	warmstarts/<digest>/evaluations/<inputs>.json                          which evaluation of it runs share
//
// In the keys of data shards and merged copies, <n> is 0 before the first step, so that it is a number in every table's
// folder; in the other keys it is "init". <shard> is five digits, or "all" for a stage without shards; <digest16> is
// the first 16 digits of the shard's digest; <version> is a checkpoint's digest.

const (
	runsPrefix  = "runs/run="
	warmPrefix  = "warmstarts/"
	digestChars = 16
)

// HubRevisionKey is the key of the note that a revision of a hub's repository named a commit. With the commit "" it is
// the prefix of such notes. No manifest names them: they say which model in the store a run takes while the hub cannot
// be reached.
func HubRevisionKey(repository, revision, commit string) string {
	return "models/hub/" + repository + "/" + url.PathEscape(revision) + "/" + commit
}

// RecordPrefixes are the prefixes of everything that a live run may still read.
func RecordPrefixes() []string { return []string{runsPrefix, warmPrefix, CataloguePrefix} }

// RunPrefix is the prefix of all keys of a run.
func RunPrefix(run string) string { return runsPrefix + run + "/" }

// compacted follows the prefix of a run in the keys of merged copies.
const compacted = "compact/"

// CompactPrefix is the prefix of the keys of merged copies of a run's shards.
func CompactPrefix(run string) string { return RunPrefix(run) + compacted }

// ManifestsPrefix is the prefix of the keys of a run's manifests.
func ManifestsPrefix(run string) string { return RunPrefix(run) + "manifests/" }

// HeadsPrefix is the prefix of the keys of a run's heads.
func HeadsPrefix(run string) string { return RunPrefix(run) + "heads/" }

// HeadKey is the key of a step's head; step is a number or InitStep.
func HeadKey(run, step string) string { return HeadsPrefix(run) + "step=" + step + ".json" }

// CallNoteKey is the key of a note about a tool call that must not run twice. No manifest names it. call is the call's
// place in the run.
func CallNoteKey(run, call, note string) string {
	return RunPrefix(run) + callNotes + call + "/" + note + ".json"
}

// forkNotes follows the prefix of a run in the keys of notes about its forks.
const forkNotes = "forks/"

// callNotes follows the prefix of a run in the keys of notes about tool calls.
const callNotes = "calls/"

// evaluationNotes follows the prefix of a warm start in the keys of notes about its evaluations.
const evaluationNotes = "evaluations/"

// EvaluationKey is the key of the note by which runs find an evaluation of the manifest's policy: it holds a Ref to the
// manifest of the evaluation. inputs is the digest of all that the rows follow from. No manifest names the note, and it
// is deleted with the warm start. ok is false unless the policy is a warm start.
func (m Manifest) EvaluationKey(inputs string) (key string, ok bool) {
	if m.Checkpoint == nil || !strings.HasPrefix(m.Checkpoint.Prefix, warmPrefix) {
		return "", false
	}
	prefix, _, _ := strings.Cut(m.Checkpoint.Prefix, "checkpoints/")
	return prefix + evaluationNotes + inputs + ".json", true
}

// IsNote reports whether a key is one of CallNoteKey, ForkKey or EvaluationKey.
func IsNote(key string) bool {
	if rest, ok := strings.CutPrefix(key, warmPrefix); ok {
		_, rest, _ = strings.Cut(rest, "/")
		return strings.HasPrefix(rest, evaluationNotes)
	}
	rest, ok := strings.CutPrefix(key, runsPrefix)
	_, rest, _ = strings.Cut(rest, "/")
	return ok && (strings.HasPrefix(rest, callNotes) || strings.HasPrefix(rest, forkNotes))
}

// SegmentsPrefix is the prefix of the keys of a shard's segments: rows of turns that are finished before the turns of
// the whole shard are. No manifest names them. They are deleted when the shard is committed.
func SegmentsPrefix(run string, step, gen, shard int) string {
	return fmt.Sprintf("%s%sstep=%d/gen=%d/shard=%d/", RunPrefix(run), segments, step, gen, shard)
}

// SegmentKey is the key of one table of a segment. An attempt to sample the shard numbers its own segments.
func SegmentKey(prefix, attempt string, number int, table Table) string {
	return fmt.Sprintf("%s%s/%06d-%s.parquet", prefix, attempt, number, table)
}

// ParseSegmentKey returns the run and step of a segment, its attempt and its table; ok is false if the key is none.
func ParseSegmentKey(key string) (run string, step int, attempt string, table Table, ok bool) {
	m := segmentForm.FindStringSubmatch(key)
	if m == nil {
		return "", 0, "", "", false
	}
	step, err := strconv.Atoi(m[2])
	return m[1], step, m[3], Table(m[4]), err == nil
}

// segments follows the prefix of a run in the keys of segments.
const segments = "segments/"

var segmentForm = regexp.MustCompile(
	`^runs/run=([^/]+)/segments/step=(\d+)/gen=\d+/shard=\d+/([^/]+)/\d+-([a-z_]+)\.parquet$`)

// lastingForm matches the keys of checkpoint files that pruning never deletes: a warm start's, and those from before a
// run's first step.
var lastingForm = regexp.MustCompile(
	`^(runs/run=[a-z0-9][a-z0-9._-]*|warmstarts/[0-9a-f]{64})/checkpoints/0+-[0-9a-f]+/([^/]+)$`)

// Lasting reports whether pruning never deletes the checkpoint file at a key.
func Lasting(key string) bool { return lastingForm.MatchString(key) }

// sharable reports whether a key belongs to a lasting file with that name.
func sharable(key, name string) bool {
	m := lastingForm.FindStringSubmatch(key)
	return m != nil && m[2] == name
}

// prunedForm matches the keys of notes that a checkpoint was pruned. They have the prefix of the deleted files.
var prunedForm = regexp.MustCompile(`^runs/run=[a-z0-9][a-z0-9._-]*/checkpoints/[^/]+/pruned\.json$`)

// WarmStartPrefix is the prefix of all keys of a warm start.
func WarmStartPrefix(inputs string) string { return warmPrefix + inputs + "/" }

// prefix is the prefix of all keys of the place's run or warm start.
func (p Place) prefix() string {
	if p.Warm != "" {
		return WarmStartPrefix(p.Warm)
	}
	return RunPrefix(p.Run)
}

// CheckpointPrefix is the prefix of a checkpoint that is made at this place.
func (p Place) CheckpointPrefix(version string) string {
	return p.prefix() + "checkpoints/" + version + "/"
}

// ManifestKey is the key of the place's manifest.
func (p Place) ManifestKey() string {
	if p.Warm != "" {
		return p.prefix() + "manifest.json"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%sstep=%s/%s", ManifestsPrefix(p.Run), p.Step, p.Stage)
	if p.Try != absent {
		fmt.Fprintf(&b, "/try=%d", p.Try)
	}
	if p.Turn != absent {
		fmt.Fprintf(&b, "/turn=%d", p.Turn)
	}
	if p.Shard != absent {
		fmt.Fprintf(&b, "/shard=%d", p.Shard)
	}
	fmt.Fprintf(&b, "/gen=%d.json", p.Gen)
	return b.String()
}

// dataInit is the step before the first in the keys of data shards, so that it is a number in every table's folder.
const dataInit = "0"

// DataKey is the key of a data shard that is made at this place.
func (p Place) DataKey(table Table, digest, ext string) string {
	step := p.Step
	if step == InitStep {
		step = dataInit
	}
	name := "all"
	if p.Shard != absent {
		name = fmt.Sprintf("%05d", p.Shard)
	}
	name += "-" + digest[:min(digestChars, len(digest))] + "." + ext
	if p.Warm != "" {
		return fmt.Sprintf("%stable=%s/%s", p.prefix(), table, name)
	}
	folder := p.prefix()
	if p.Stage == StageCompact { // apart from the shards that they copy, so that no pattern matches both
		folder += compacted
	}
	return fmt.Sprintf("%stable=%s/step=%s/gen=%d/%s", folder, table, step, p.Gen, name)
}

var (
	manifestKeyForm = regexp.MustCompile(`^runs/run=([^/]+)/manifests/step=([^/]+)/([^/=]+)` +
		`(?:/try=(\d+))?(?:/turn=(\d+))?(?:/shard=(\d+))?/gen=(\d+)\.json$`)
	warmKeyForm = regexp.MustCompile(`^warmstarts/([0-9a-f]{64})/manifest\.json$`)
	dataKeyForm = regexp.MustCompile(`^(?:runs/run=([^/]+)/(?:compact/)?table=([^/]+)/step=([^/]+)/gen=(\d+)` +
		`|warmstarts/([0-9a-f]{64})/table=([^/]+))/(all|\d{5,})-([0-9a-f]{16})\.([a-z]+)$`)
	headKeyForm = regexp.MustCompile(`^runs/run=([^/]+)/heads/step=([^/]+)\.json$`)
)

// ParseManifestKey is the inverse of ManifestKey.
func ParseManifestKey(key string) (Place, error) {
	if m := warmKeyForm.FindStringSubmatch(key); m != nil {
		return AtWarmStart(m[1]), nil
	}
	m := manifestKeyForm.FindStringSubmatch(key)
	if m == nil {
		return Place{}, fmt.Errorf("key %s: is not the key of a manifest", key)
	}
	p := Place{Run: m[1], Step: m[2], Stage: m[3], Try: numberOr(m[4]), Turn: numberOr(m[5]), Shard: numberOr(m[6]),
		Gen: numberOr(m[7])}
	return p, checkKey(p, key, p.ManifestKey())
}

// DataKeyParts is what the key of a data shard says.
type DataKeyParts struct {
	Run, Warm string // one of them is empty
	Table     Table
	Compact   bool   // a merged copy of shards
	Step      string // a number or InitStep; empty for a warm start
	Shard     int    // −1 for a stage without shards
	Gen       int
	Digest16  string
	Ext       string
}

// ParseDataKey is the inverse of DataKey.
func ParseDataKey(key string) (DataKeyParts, error) {
	m := dataKeyForm.FindStringSubmatch(key)
	if m == nil {
		return DataKeyParts{}, fmt.Errorf("key %s: is not the key of a data shard", key)
	}
	parts := DataKeyParts{Run: m[1], Table: Table(m[2] + m[6]), Step: m[3], Warm: m[5], Shard: absent, Digest16: m[8],
		Ext: m[9]}
	if parts.Step == dataInit {
		parts.Step = InitStep
	}
	if m[7] != "all" {
		parts.Shard, _ = strconv.Atoi(m[7])
	}
	p := AtWarmStart(parts.Warm)
	if parts.Warm == "" {
		parts.Gen = numberOr(m[4])
		p = Place{Run: parts.Run, Step: parts.Step, Stage: "any", Try: absent, Turn: absent, Gen: parts.Gen}
		if parts.Compact = strings.HasPrefix(key, CompactPrefix(parts.Run)); parts.Compact {
			p.Stage = StageCompact
		}
	}
	p.Shard = parts.Shard
	if parts.Warm != "" && p.Shard != absent {
		return DataKeyParts{}, fmt.Errorf("key %s: a warm start has no shards", key)
	}
	return parts, checkKey(p, key, p.DataKey(parts.Table, parts.Digest16, parts.Ext))
}

// ParseHeadKey is the inverse of HeadKey.
func ParseHeadKey(key string) (run, step string, err error) {
	m := headKeyForm.FindStringSubmatch(key)
	if m == nil {
		return "", "", fmt.Errorf("key %s: is not the key of a head", key)
	}
	if err := CheckRunID(m[1]); err != nil {
		return "", "", fmt.Errorf("key %s: %w", key, err)
	}
	if err := checkStep(m[2]); err != nil {
		return "", "", fmt.Errorf("key %s: %w", key, err)
	}
	return m[1], m[2], nil
}

// checkKey returns an error unless key is the canonical key of a valid place.
func checkKey(p Place, key, canonical string) error {
	if err := p.Validate(); err != nil {
		return fmt.Errorf("key %s: %w", key, err)
	}
	if key != canonical {
		return fmt.Errorf("key %s: must be spelt %s", key, canonical)
	}
	return nil
}

// numberOr returns the number in s, or absent if s is empty. For a number that is too large for an int it returns one
// that checkKey refuses.
func numberOr(s string) int {
	if s == "" {
		return absent
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return absent - 1
	}
	return n
}
