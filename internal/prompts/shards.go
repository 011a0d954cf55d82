package prompts

import (
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// filePrompts is the maximum number of prompts in a file of the stage prompts, unless one shard has more. So a shard
// reads one or two files, however many prompts its step has.
const filePrompts = 512

// PerFile is how many prompts a file of the stage prompts holds: filePrompts rounded down to whole shards, at least
// one.
func PerFile(shardGroups int) int { return max(1, filePrompts/shardGroups) * shardGroups }

// OfShard returns the prompts of one shard of a step, or none if there is no such shard. Each sampling round has the
// same number of shards and continues the shard numbers of the previous round.
func OfShard(prompts []schema.PromptRow, shard int, r recipes.Rollout) ([]schema.PromptRow, error) {
	var rows []schema.PromptRow
	if r.Prompts == 0 || r.ShardGroups == 0 { // an import's
		return rows, nil
	}
	for _, p := range prompts {
		_, group, err := schema.ParseGroupID(p.GroupID)
		if err != nil {
			return nil, err
		}
		if shard == group/r.Prompts*shardsOfRound(r)+group%r.Prompts/r.ShardGroups {
			rows = append(rows, p)
		}
	}
	return rows, nil
}

// FilesOfShard returns those of a round's files that hold prompts of a shard. The files hold the groups in order.
func FilesOfShard(files []schema.ShardInfo, shard int, r recipes.Rollout) []schema.ShardInfo {
	from := shard % shardsOfRound(r) * r.ShardGroups
	to, first := min(from+r.ShardGroups, r.Prompts), 0
	var out []schema.ShardInfo
	for _, file := range files {
		if first < to && from < first+file.Rows {
			out = append(out, file)
		}
		first += file.Rows
	}
	return out
}

// shardsOfRound is how many shards a round has.
func shardsOfRound(r recipes.Rollout) int { return (r.Prompts + r.ShardGroups - 1) / r.ShardGroups }
