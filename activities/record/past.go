package record

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// The manifests of a shard's turns and tool calls form a chain: each names the one before it among its inputs. So an
// activity receives only the last manifest, and the digests in the chain fix everything before it.

// before returns the latest turn or tool calls of the same shard that a manifest was made from.
func before(m schema.Manifest) (schema.Ref, error) {
	var latest schema.Ref
	at, end := -1, math.MaxInt
	if inRollout(m.Place) {
		end = inTurns(m.Place)
	}
	for _, ref := range m.Inputs {
		p, err := schema.ParseManifestKey(ref.Key)
		if err == nil && p.Shard == m.Shard && inRollout(p) && inTurns(p) > at && inTurns(p) < end {
			latest, at = ref, inTurns(p)
		}
	}
	if at < 0 {
		return latest, fmt.Errorf("%w: %s names no earlier turn of its shard among its inputs", commit.ErrDamaged,
			m.ManifestKey())
	}
	return latest, nil
}

// inRollout reports whether a place is a turn or its tool calls.
func inRollout(p schema.Place) bool {
	return p.Stage == schema.StageRollout || p.Stage == schema.StageSandbox
}

// inTurns is the position of a place among the turns of a shard: a turn's tool calls follow the turn.
func inTurns(p schema.Place) int {
	if p.Stage == schema.StageSandbox {
		return 2*p.Turn + 1
	}
	return 2 * p.Turn
}

// Behind returns the manifests of a shard's past, oldest first. It walks the chain backwards and stops at the first
// manifest for which known is true, without returning that manifest. A nil known is true for none.
func (r Records) Behind(ctx context.Context, past api.Past, known func(schema.Ref) bool) ([]schema.Manifest, error) {
	if past.Last == (schema.Ref{}) {
		return nil, nil
	}
	var chain []schema.Manifest
	for ref := past.Last; known == nil || !known(ref); {
		m, err := r.Record.Read(ctx, ref)
		if err != nil {
			return nil, err
		}
		chain = append(chain, m)
		if m.Stage == schema.StageRollout && m.Turn == 0 {
			break
		}
		if ref, err = before(m); err != nil {
			return nil, err
		}
	}
	slices.Reverse(chain)
	return chain, nil
}

// TurnRefs lists the refs of an assembled shard's turns, in order.
func (r Records) TurnRefs(ctx context.Context, assembled schema.Ref) ([]schema.Ref, error) {
	chain, err := r.ShardChain(ctx, assembled)
	if err != nil {
		return nil, err
	}
	var out []schema.Ref
	for _, ref := range chain {
		if IsOfStage(ref, schema.StageRollout) {
			out = append(out, ref)
		}
	}
	return out, nil
}

// ShardChain lists the refs of an assembled shard's turns and tool calls, in order.
func (r Records) ShardChain(ctx context.Context, assembled schema.Ref) ([]schema.Ref, error) {
	m, err := r.Record.Read(ctx, assembled)
	if err != nil {
		return nil, err
	}
	last, err := before(m)
	if err != nil {
		return nil, err
	}
	var refs []schema.Ref
	_, err = r.Behind(ctx, api.Past{Last: last}, func(ref schema.Ref) bool { refs = append(refs, ref); return false })
	slices.Reverse(refs)
	return refs, err
}

// Transitions returns the transitions of assembled trajectories and the manifests that commit them. In interactive
// environments, the stage sandbox commits transitions instead of tool calls. Stages that read them find them through
// the trajectories, so a step's workflow does not need to pass them.
func (r Records) Transitions(ctx context.Context, assembled ...schema.Ref) (rows []schema.TransitionRow,
	made []schema.Ref, err error) {
	var branches []schema.BranchRow
	for _, ref := range assembled {
		chain, err := r.ShardChain(ctx, ref)
		if err != nil {
			return nil, nil, err
		}
		own, err := BranchesIn(ctx, r, chain)
		if err != nil {
			return nil, nil, err
		}
		branches = append(branches, own...)
		for _, ref := range chain {
			if IsOfStage(ref, schema.StageSandbox) {
				made = append(made, ref)
			}
		}
	}
	rows, err = Read[schema.TransitionRow](ctx, r, made...)
	return schema.Inherit(rows, branches), made, err
}

// The samples of a tree share turns, which the record holds once. These functions read rows as if every trajectory had
// all of its own.

// WholeTurns returns the turns behind manifests of the rollout, with those that branches share.
func WholeTurns(ctx context.Context, r Records, refs ...schema.Ref) ([]schema.TurnRow, error) {
	turns, err := Read[schema.TurnRow](ctx, r, refs...)
	if err != nil {
		return nil, err
	}
	branches, err := Read[schema.BranchRow](ctx, r, refs...)
	if err != nil {
		return nil, err
	}
	return schema.Inherit(turns, branches), nil
}

// BranchesIn returns the rows of trees behind a shard's chain of turns and tool calls.
func BranchesIn(ctx context.Context, r Records, chain []schema.Ref) ([]schema.BranchRow, error) {
	var turns []schema.Ref
	for _, ref := range chain {
		if IsOfStage(ref, schema.StageRollout) {
			turns = append(turns, ref)
		}
	}
	return Read[schema.BranchRow](ctx, r, turns...)
}
