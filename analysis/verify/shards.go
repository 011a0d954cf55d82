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
	if err := remember(v, s, data); err != nil {
		return fmt.Errorf("%s: %w", s.Key, err) // it has just been audited
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shards.audited[s.Key] = true
	v.out.Shards++
	v.out.Rows += int64(s.Rows)
	return nil
}

// remember keeps the facts about a shard's rows that the checks between shards need.
func remember(v *evidence, s schema.ShardInfo, data []byte) error {
	switch s.Table {
	case schema.Updates:
		rows, err := schema.Decode[schema.UpdateRow](data)
		v.mu.Lock()
		defer v.mu.Unlock()
		if len(rows) > 0 {
			v.shards.updates[s.Key] = policies{rows[0].PolicyBefore, rows[len(rows)-1].PolicyAfter}
		}
		return err
	case schema.Selection:
		rows, err := schema.Decode[schema.SelectionRow](data)
		v.mu.Lock()
		defer v.mu.Unlock()
		for _, r := range rows {
			if r.Excluded != nil {
				v.shards.excluded[s.Key]++
			}
			if r.Kept {
				v.shards.kept[s.Key]++
			}
			if r.Masked != nil {
				v.shards.masked[s.Key]++
			}
		}
		return err
	case schema.Evaluations:
		rows, err := schema.Decode[schema.EvaluationRow](data)
		v.mu.Lock()
		defer v.mu.Unlock()
		v.shards.evaluated[s.Key] = rows
		return err
	case schema.Timings:
		rows, err := schema.Decode[schema.TimingRow](data)
		measured := map[string]bool{}
		for _, r := range rows {
			if r.Stage == schema.StageEvaluate || r.Stage == schema.StageInitial {
				measured[r.Stage] = true
			}
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		v.shards.measured[s.Key] = measured
		return err
	case schema.EvaluationDebates:
		rows, err := schema.Decode[schema.EvaluationDebateRow](data)
		if err != nil || v.debating == nil {
			return err
		}
		if _, faulty := v.debating.Replay(rows); faulty != nil {
			v.fault(FaultFigures, s.Key, "%v", faulty)
		}
	}
	return nil
}
