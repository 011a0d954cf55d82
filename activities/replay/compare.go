package replay

import (
	"context"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// Compare compares the shards of a stage before and after a replay, in order.
func Compare(before, now []schema.ShardInfo) api.StageComparison {
	out := api.StageComparison{Old: Digest(before), New: Digest(now), Shards: len(now)}
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

// CompareReplay says which stages of a replay have the same bytes as before.
type CompareReplay struct{ *stage.Worker }

// Execute reads only manifests: equal bytes have equal digests.
func (a CompareReplay) Execute(ctx context.Context, e *stage.Env, in api.CompareInput) (out api.Compared, err error) {
	out.Timing = api.Timing{Stage: schema.StageReplay, Shard: -1, Turn: -1}
	err = a.Track(ctx, e, in.Scope, &out.Timing, func(ctx context.Context, p *stage.Progress) error {
		for i, pair := range in.Stages {
			c, err := a.compare(ctx, pair)
			if err != nil {
				return err
			}
			out.Stages = append(out.Stages, c)
			p.Set(i+1, len(in.Stages))
		}
		return nil
	})
	return out, err
}

func (a CompareReplay) compare(ctx context.Context, pair api.StagePair) (api.StageComparison, error) {
	made, now, err := a.StageShards(ctx, pair.New)
	if err != nil {
		return api.StageComparison{}, err
	}
	if pair.Old == (schema.Ref{}) {
		return api.StageComparison{Stage: pair.Stage, Shards: len(now), New: Digest(now), Differs: len(now)}, nil
	}
	old, before, err := a.StageShards(ctx, pair.Old)
	if err != nil {
		return api.StageComparison{}, err
	}
	out := Compare(before, now)
	out.Stage = pair.Stage
	if old.Code != made.Code {
		out.Code = old.Code
	}
	return out, nil
}
