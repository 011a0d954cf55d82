package replay

import (
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/schema"
)

// Comparison compares the shards of a stage before and after a replay.
type Comparison struct {
	// Old and New are the Digests of the shards.
	Old, New string
	// Same means that all bytes are equal. Differs counts the new shards whose bytes the old stage does not have.
	Same    bool
	Differs int
}

// Compare compares the shards of a stage in order.
func Compare(before, now []schema.ShardInfo) Comparison {
	out := Comparison{Old: Digest(before), New: Digest(now)}
	out.Same = out.Old == out.New
	for i, s := range now {
		if i >= len(before) || before[i].Digest != s.Digest {
			out.Differs++
		}
	}
	return out
}

// Digest is one digest for a stage: the digest of its only shard, or the digest of the list of its shards' digests.
func Digest(shards []schema.ShardInfo) string {
	if len(shards) == 1 {
		return shards[0].Digest
	}
	var b strings.Builder
	for i, s := range shards {
		fmt.Fprintf(&b, "%d %s\n", i, s.Digest)
	}
	return schema.Digest([]byte(b.String()))
}

// Different is a shard of a manifest that a check made differently.
type Different struct {
	// Table is "" if the manifest has no other shard.
	Table schema.Table
	// Digest is the digest of the bytes that the check made; "" if it made no such shard.
	Digest string
}

// Differences compares the shards of a manifest with those that a check made.
func Differences(before, after []schema.ShardInfo) []Different {
	var out []Different
	for i, s := range before {
		d := Different{}
		if i < len(after) {
			d.Digest = after[i].Digest
		}
		if d.Digest == s.Digest {
			continue
		}
		if len(before) > 1 {
			d.Table = s.Table
		}
		out = append(out, d)
	}
	return out
}
