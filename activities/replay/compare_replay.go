package replay

import (
	"context"

	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// CompareReplay says which stages of a replay have the same bytes as before.
type CompareReplay struct{ *stage.Worker }

// Execute reads only manifests: equal bytes have equal digests.
func (a CompareReplay) Execute(ctx context.Context, e *stage.Env, in api.CompareInput) (out api.Compared, err error) {
	timing := api.Timing{Stage: schema.StageReplay, Shard: -1, Turn: -1}
	err = a.Track(ctx, e, in.Scope, &timing, func(ctx context.Context, p *stage.Progress) error {
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
	out.Timing = timing
	return out, err
}

func (a CompareReplay) compare(ctx context.Context, pair api.StagePair) (api.StageComparison, error) {
	out := api.StageComparison{Stage: pair.Stage}
	made, now, err := a.StageShards(ctx, pair.New)
	if err != nil {
		return out, err
	}
	out.Shards = len(now)
	if pair.Old == (schema.Ref{}) {
		out.New, out.Differs = Digest(now), len(now)
		return out, nil
	}
	old, before, err := a.StageShards(ctx, pair.Old)
	if err != nil {
		return out, err
	}
	c := Compare(before, now)
	out.Old, out.New, out.Same, out.Differs = c.Old, c.New, c.Same, c.Differs
	if old.Code != made.Code {
		out.Code = old.Code
	}
	return out, nil
}
