package activities

import (
	"context"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/schema"
)

// CompareReplay says which stages of a replay gave the bytes that the step had before.
type CompareReplay struct{ *Deps }

// Execute reads manifests alone: equal bytes have equal digests.
func (a CompareReplay) Execute(ctx context.Context, in wire.CompareInput) (wire.Compared, error) {
	out := wire.Compared{}
	timing := wire.Timing{Stage: wire.StageReplay, Shard: -1, Turn: -1}
	err := tracked(ctx, &timing, func(ctx context.Context, p *progress) error {
		for i, pair := range in.Stages {
			c, err := a.compare(ctx, pair)
			if err != nil {
				return err
			}
			out.Stages = append(out.Stages, c)
			p.set(i+1, len(in.Stages))
		}
		return nil
	})
	out.Timing = timing
	return out, err
}

func (a CompareReplay) compare(ctx context.Context, pair wire.StagePair) (wire.StageComparison, error) {
	out := wire.StageComparison{Stage: pair.Stage}
	made, now, err := a.stageShards(ctx, pair.New)
	if err != nil {
		return out, err
	}
	out.New, out.Shards = shardsDigest(now), len(now)
	if pair.Old == (schema.Ref{}) {
		out.Differs = len(now)
		return out, nil
	}
	old, before, err := a.stageShards(ctx, pair.Old)
	if err != nil {
		return out, err
	}
	out.Old = shardsDigest(before)
	out.Same = out.Old == out.New
	for i, s := range now {
		if i >= len(before) || before[i].Digest != s.Digest {
			out.Differs++
		}
	}
	if old.Code != made.Code {
		out.Code = old.Code
	}
	return out, nil
}

// stageShards returns a stage manifest and its shards, its own or those of its parts, in order.
func (d *Deps) stageShards(ctx context.Context, ref schema.Ref) (schema.Manifest, []schema.ShardInfo, error) {
	m, err := d.Record.Read(ctx, ref)
	if err != nil {
		return m, nil, err
	}
	parts, err := d.Record.Parts(ctx, m)
	if err != nil {
		return m, nil, err
	}
	shards := m.Shards
	for _, p := range parts {
		shards = append(shards, p.Shards...)
	}
	return m, shards, nil
}

// shardsDigest is one digest for a stage: its shard's, or that of the list of its shards'.
func shardsDigest(shards []schema.ShardInfo) string {
	if len(shards) == 1 {
		return shards[0].Digest
	}
	var b strings.Builder
	for i, s := range shards {
		fmt.Fprintf(&b, "%d %s\n", i, s.Digest)
	}
	return schema.Digest([]byte(b.String()))
}
