package verify

import (
	"context"
	"fmt"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/schema"
)

// checkShards reads every shard once, however many manifests name it.
func checkShards(ctx context.Context, v *evidence) error {
	var shards []schema.ShardInfo
	var owners []string
	seen := map[string]bool{}
	for _, key := range v.keys() {
		for _, s := range v.manifests[key].Shards {
			if !seen[s.Key] {
				seen[s.Key] = true
				shards, owners = append(shards, s), append(owners, key)
			}
		}
	}
	return rescue.Each(ctx, shardsAtOnce, len(shards), func(ctx context.Context, i int) error {
		return checkShard(ctx, v, shards[i], owners[i])
	})
}

func checkShard(ctx context.Context, v *evidence, s schema.ShardInfo, owner string) error {
	v.name(s.Key)
	data, err := v.get(ctx, s.Key, owner)
	if err != nil || data == nil {
		return err
	}
	if !v.whole(s.Key, owner, int64(len(data)), schema.Digest(data), s.Digest, s.Bytes) {
		return nil
	}
	if s.Table.Valid() != nil { // a table of a later minor version: its bytes are what the manifest names
		v.mu.Lock()
		defer v.mu.Unlock()
		v.out.Shards++
		return nil
	}
	if err := schema.AuditShard(s.Table, data, s.Rows); err != nil {
		v.fault(FaultRows, s.Key, "%v", err)
		return nil
	}
	facts, err := factsOf(v, s, data)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Key, err) // it has just been audited
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shards[s.Key] = facts
	v.out.Shards++
	v.out.Rows += int64(s.Rows)
	return nil
}

// factsOf returns what the checks between shards need of a shard's rows.
func factsOf(v *evidence, s schema.ShardInfo, data []byte) (out shardFacts, err error) {
	switch s.Table {
	case schema.Updates:
		rows, err := schema.Decode[schema.UpdateRow](data)
		if len(rows) > 0 {
			out.update = &policies{rows[0].PolicyBefore, rows[len(rows)-1].PolicyAfter}
		}
		return out, err
	case schema.Selection:
		rows, err := schema.Decode[schema.SelectionRow](data)
		for _, r := range rows {
			if r.Excluded != nil {
				out.excluded++
			}
			if r.Kept {
				out.kept++
			}
			if r.Masked != nil {
				out.masked++
			}
		}
		return out, err
	case schema.Evaluations:
		out.evaluated, err = schema.Decode[schema.EvaluationRow](data)
	case schema.Timings:
		rows, err := schema.Decode[schema.TimingRow](data)
		out.measured = map[string]bool{}
		for _, r := range rows {
			if r.Stage == schema.StageEvaluate || r.Stage == schema.StageInitial {
				out.measured[r.Stage] = true
			}
		}
		return out, err
	case schema.EvaluationDebates:
		rows, err := schema.Decode[schema.EvaluationDebateRow](data)
		if err != nil || v.debating == nil {
			return out, err
		}
		if _, faulty := v.debating.Replay(rows); faulty != nil {
			v.fault(FaultFigures, s.Key, "%v", faulty)
		}
	}
	return out, err
}
