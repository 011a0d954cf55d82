package learn

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// CommitStages commits the stage manifests of sharded stages, and the step's head if the step ends without a
// publication.
type CommitStages struct{ *stage.Worker }

// Execute commits each stage in turn; a stage that is already committed is adopted.
func (a CommitStages) Execute(ctx context.Context, e *stage.Env, in api.CommitInput) (out api.Committed, err error) {
	out.Timing = api.Timing{Stage: stages.Commit, Shard: -1, Turn: -1}
	err = a.Track(ctx, e, in.Scope, &out.Timing, func(ctx context.Context, p *stage.Progress) error {
		sharded, err := a.rolledOut(ctx, in.Rewards)
		if err != nil {
			return err
		}
		sharded = slices.Concat(in.Stages, sharded)
		for i, parts := range sharded {
			ref, err := a.commitStage(ctx, in.Scope, parts)
			if err != nil {
				return err
			}
			out.Stages = append(out.Stages, api.StageRef{Stage: parts.Stage, Ref: ref})
			p.Set(i+1, len(sharded))
		}
		if len(in.Head) > 0 {
			return a.CommitHead(ctx, in.Scope, in.Head)
		}
		return nil
	})
	out.Timing.Rows = int64(len(out.Stages))
	return out, err
}

func (a CommitStages) commitStage(ctx context.Context, scope api.Scope, of api.StageParts) (schema.Ref, error) {
	m, err := a.Manifest(ctx, stage.Spec{Scope: scope, Stage: of.Stage, Turn: of.Turn, Shard: -1})
	if err != nil {
		return schema.Ref{}, err
	}
	m.Parts = of.Parts
	_, ref, _, err := a.Record.Commit(ctx, m)
	return ref, err
}

// shardsAtOnce is how many shards' chains are read concurrently.
const shardsAtOnce = 8

// rolledOut finds what shards have committed from their prompts to their rewards, stage by stage and turn by turn.
func (a CommitStages) rolledOut(ctx context.Context, rewards []schema.Ref) ([]api.StageParts, error) {
	chains := make([][]schema.Ref, len(rewards))
	err := rescue.Each(ctx, shardsAtOnce, len(rewards), func(ctx context.Context, i int) (err error) {
		chains[i], err = a.behindReward(ctx, rewards[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	var out []api.StageParts
	at := map[stagePlace]int{}
	for i, chain := range chains {
		for _, ref := range append(chain, rewards[i]) {
			place, err := schema.ParseManifestKey(ref.Key)
			if err != nil {
				return nil, err
			}
			n, ok := at[stagePlace{place.Stage, place.Turn}]
			if !ok {
				n = len(out)
				at[stagePlace{place.Stage, place.Turn}] = n
				out = append(out, api.StageParts{Stage: place.Stage, Turn: place.Turn})
			}
			out[n].Parts = append(out[n].Parts, ref)
		}
	}
	order := stages.Sharded()
	slices.SortStableFunc(out, func(x, y api.StageParts) int {
		return cmp.Or(cmp.Compare(inStep(x), inStep(y)), cmp.Compare(x.Turn, y.Turn),
			cmp.Compare(slices.Index(order, x.Stage), slices.Index(order, y.Stage)))
	})
	return out, nil
}

// stagePlace is a stage, or one turn of a stage that has turns.
type stagePlace struct {
	stage string
	turn  int
}

// inStep sorts stages that have turns before those that have none.
func inStep(s api.StageParts) int {
	if s.Turn >= 0 {
		return 0
	}
	return 1
}

// behindReward lists the manifests behind a shard's rewards: its turns and tool calls in order, its trajectories, and
// other inputs of the rewards, such as gradings.
func (a CommitStages) behindReward(ctx context.Context, reward schema.Ref) ([]schema.Ref, error) {
	m, err := a.Record.Read(ctx, reward)
	if err != nil {
		return nil, err
	}
	var own []schema.Ref
	scored, _ := stages.Of(schema.StageReward)
	for _, read := range scored.Reads {
		for _, ref := range m.Inputs {
			if record.IsOfStage(ref, read.Stage) {
				own = append(own, ref)
			}
		}
	}
	if len(own) == 0 || !record.IsOfStage(own[0], schema.StageAssemble) {
		return nil, fmt.Errorf("%w: %s names no trajectories among its inputs", commit.ErrDamaged, m.ManifestKey())
	}
	chain, err := a.ShardChain(ctx, own[0])
	if err != nil {
		return nil, err
	}
	for _, ref := range own {
		if !slices.Contains(chain, ref) { // transitions are in both: trajectories were assembled from them
			chain = append(chain, ref)
		}
	}
	return chain, nil
}
