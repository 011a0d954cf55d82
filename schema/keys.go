package schema

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The keys of the record. All are relative to the bucket:
//
//	runs/run=<id>/table=<t>/step=<n>/gen=<g>/<shard>-<digest16>.<ext>        data shard of a stage
//	runs/run=<id>/manifests/step=<n>/<stage>[/try=<k>][/turn=<t>]/shard=<s>/gen=<g>.json
//	runs/run=<id>/manifests/step=<n>/<stage>[/try=<k>][/turn=<t>]/gen=<g>.json   stage manifest
//	runs/run=<id>/heads/step=<n>.json
//	runs/run=<id>/checkpoints/<version>/<file>
//	warmstarts/<digest>/manifest.json
//	warmstarts/<digest>/table=<t>/all-<digest16>.<ext>
//	warmstarts/<digest>/checkpoints/<version>/<file>
//
// <shard> is five digits, or "all" for a stage without shards; <digest16> is the first 16 digits
// of the shard's digest; <version> is a checkpoint's digest.

const (
	runsPrefix  = "runs/run="
	warmPrefix  = "warmstarts/"
	digestChars = 16
)

// RunPrefix is the common prefix of everything of a run.
func RunPrefix(run string) string { return runsPrefix + run + "/" }

// ManifestsPrefix is the common prefix of a run's manifests.
func ManifestsPrefix(run string) string { return RunPrefix(run) + "manifests/" }

// HeadsPrefix is the common prefix of a run's heads.
func HeadsPrefix(run string) string { return RunPrefix(run) + "heads/" }

// HeadKey is the key of a step's head; step is a number or InitStep.
func HeadKey(run, step string) string { return HeadsPrefix(run) + "step=" + step + ".json" }

// CheckpointPrefix is the common prefix of the files of a run's checkpoint.
func CheckpointPrefix(run, version string) string {
	return RunPrefix(run) + "checkpoints/" + version + "/"
}

// lastingForm is where the file of a checkpoint lies that pruning never takes: a warm start's, or one of before a run's first step.
var lastingForm = regexp.MustCompile(`^(runs/run=[a-z0-9][a-z0-9._-]*|warmstarts/[0-9a-f]{64})/checkpoints/0+-[0-9a-f]+/([^/]+)$`)

// Lasting reports whether the file of a checkpoint at a key stays whatever is pruned.
func Lasting(key string) bool { return lastingForm.MatchString(key) }

// sharable reports whether a key is that of a lasting file of that name.
func sharable(key, name string) bool {
	m := lastingForm.FindStringSubmatch(key)
	return m != nil && m[2] == name
}

// PrunedKey is where the mark of a pruned checkpoint lies, beside the files that it lost.
func PrunedKey(run, version string) string { return CheckpointPrefix(run, version) + PrunedFile }

// WarmStartPrefix is the common prefix of a warm start.
func WarmStartPrefix(inputs string) string { return warmPrefix + inputs + "/" }

// prefix is where everything of the place's run or warm start lies.
func (p Place) prefix() string {
	if p.Warm != "" {
		return WarmStartPrefix(p.Warm)
	}
	return RunPrefix(p.Run)
}

// CheckpointPrefix is where a checkpoint that is made at this place lies.
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

// DataKey is the key of a shard that is made at this place.
func (p Place) DataKey(table Table, digest, ext string) string {
	name := "all"
	if p.Shard != absent {
		name = fmt.Sprintf("%05d", p.Shard)
	}
	name += "-" + digest[:min(digestChars, len(digest))] + "." + ext
	if p.Warm != "" {
		return fmt.Sprintf("%stable=%s/%s", p.prefix(), table, name)
	}
	return fmt.Sprintf("%stable=%s/step=%s/gen=%d/%s", p.prefix(), table, p.Step, p.Gen, name)
}

var (
	manifestKeyForm = regexp.MustCompile(`^runs/run=([^/]+)/manifests/step=([^/]+)/([^/=]+)(?:/try=(\d+))?(?:/turn=(\d+))?(?:/shard=(\d+))?/gen=(\d+)\.json$`)
	warmKeyForm     = regexp.MustCompile(`^warmstarts/([0-9a-f]{64})/manifest\.json$`)
	dataKeyForm     = regexp.MustCompile(`^(?:runs/run=([^/]+)/table=([^/]+)/step=([^/]+)/gen=(\d+)|warmstarts/([0-9a-f]{64})/table=([^/]+))/(all|\d{5,})-([0-9a-f]{16})\.([a-z]+)$`)
	headKeyForm     = regexp.MustCompile(`^runs/run=([^/]+)/heads/step=([^/]+)\.json$`)
)

// ParseManifestKey is the inverse of ManifestKey.
func ParseManifestKey(key string) (Place, error) {
	if m := warmKeyForm.FindStringSubmatch(key); m != nil {
		return AtWarmStart(m[1]), nil
	}
	m := manifestKeyForm.FindStringSubmatch(key)
	if m == nil {
		return Place{}, fmt.Errorf("key %s: is not a manifest's", key)
	}
	p := Place{Run: m[1], Step: m[2], Stage: m[3], Try: numberOr(m[4]), Turn: numberOr(m[5]), Shard: numberOr(m[6]), Gen: numberOr(m[7])}
	return p, checkKey(p, key, p.ManifestKey())
}

// DataKeyParts is what a shard's key tells.
type DataKeyParts struct {
	Run, Warm string // one of them is empty
	Table     Table
	Step      string // empty for a warm start
	Shard     int    // −1 for a stage without shards
	Gen       int
	Digest16  string
	Ext       string
}

// ParseDataKey is the inverse of DataKey.
func ParseDataKey(key string) (DataKeyParts, error) {
	m := dataKeyForm.FindStringSubmatch(key)
	if m == nil {
		return DataKeyParts{}, fmt.Errorf("key %s: is not a shard's", key)
	}
	parts := DataKeyParts{Run: m[1], Table: Table(m[2] + m[6]), Step: m[3], Warm: m[5], Shard: absent, Digest16: m[8], Ext: m[9]}
	if m[7] != "all" {
		parts.Shard, _ = strconv.Atoi(m[7])
	}
	p := AtWarmStart(parts.Warm)
	if parts.Warm == "" {
		parts.Gen = numberOr(m[4])
		p = Place{Run: parts.Run, Step: parts.Step, Stage: "any", Try: absent, Turn: absent, Gen: parts.Gen}
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
		return "", "", fmt.Errorf("key %s: is not a head's", key)
	}
	if err := CheckRunID(m[1]); err != nil {
		return "", "", fmt.Errorf("key %s: %w", key, err)
	}
	if err := checkStep(m[2]); err != nil {
		return "", "", fmt.Errorf("key %s: %w", key, err)
	}
	return m[1], m[2], nil
}

// checkKey refuses a key that is not the one spelling of a valid place.
func checkKey(p Place, key, canonical string) error {
	if err := p.Validate(); err != nil {
		return fmt.Errorf("key %s: %w", key, err)
	}
	if key != canonical {
		return fmt.Errorf("key %s: is spelt otherwise than %s", key, canonical)
	}
	return nil
}

// numberOr returns the number, or absent for no text. What is too large for an int becomes one
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
