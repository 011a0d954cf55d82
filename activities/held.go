package activities

import (
	"container/list"
	"context"
	"sync"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/tool/tools"
)

// heldBytes bounds the memory of the episodes that a worker holds between the turns of its shards.
const heldBytes = 256 << 20

// held keeps the episodes of shards between their turns, each under the digest of the manifest that committed their
// state. It is a cache of the record: missing episodes are rebuilt from committed rows, with the same result.
// Episodes have one owner: take removes them, and the caller that changed and committed them puts them back under the
// new manifest. A nil held is empty.
type held struct {
	mu     sync.Mutex
	most   int64 // maximum bytes
	bytes  int64
	recent list.List // elements are *heldShard, the latest in front
	shards map[string]*list.Element
}

// heldShard is one shard's episodes.
type heldShard struct {
	digest   string
	bytes    int64
	episodes []*rollout.Episode
}

func newHeld(most int64) *held { return &held{most: most, shards: map[string]*list.Element{}} }

// take removes and returns the episodes as of the manifest with the digest, or nil.
func (h *held) take(digest string) []*rollout.Episode {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	at, ok := h.shards[digest]
	if !ok {
		return nil
	}
	return h.drop(at)
}

// put keeps episodes under the digest of the manifest that has committed their state. It makes room by removing the
// least recently put episodes.
func (h *held) put(digest string, episodes []*rollout.Episode) {
	if h == nil {
		return
	}
	s := &heldShard{digest: digest, episodes: episodes}
	for _, e := range episodes {
		s.bytes += e.Size()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if before, ok := h.shards[digest]; ok {
		h.drop(before)
	}
	if s.bytes > h.most {
		return
	}
	h.shards[digest] = h.recent.PushFront(s)
	h.bytes += s.bytes
	for h.bytes > h.most {
		h.drop(h.recent.Back())
	}
}

func (h *held) drop(at *list.Element) []*rollout.Episode {
	s := h.recent.Remove(at).(*heldShard)
	delete(h.shards, s.digest)
	h.bytes -= s.bytes
	return s.episodes
}

// hold keeps the episodes that an activity has committed. It does not keep them if the activity adopted another
// attempt's commit, which may differ from them.
func (d *Deps) hold(done api.Done, err error, episodes []*rollout.Episode) {
	if err == nil && !done.Adopted && episodes != nil {
		d.held.put(done.Manifest.Digest, episodes)
	}
}

// treeOf returns the tree of a recipe's samples; nil if they are independent.
func treeOf(recipe *recipes.Recipe) *rollout.Tree {
	tree := recipe.Rollout.Branching()
	if tree != nil && recipe.Sandbox.Session {
		tree.Stateful = []string{tools.Python.Name}
	}
	return tree
}

// episodes returns one shard's episodes as of its past. It takes the episodes that this worker holds and applies the
// rows committed since, or rebuilds the episodes from the shard's prompts and all committed rows. The caller owns
// them.
func (d *Deps) episodes(ctx context.Context, recipe *recipes.Recipe, shard int, prompts schema.Ref,
	past api.Past) (*rollout.Loop, []*rollout.Episode, error) {
	draws := rolloutSampling(recipe)
	draws.tree = treeOf(recipe)
	loop, err := d.loop(recipe, draws)
	if err != nil {
		return nil, nil, err
	}
	var episodes []*rollout.Episode
	later, err := d.behind(ctx, past, func(ref schema.Ref) bool {
		episodes = d.held.take(ref.Digest)
		return episodes != nil
	})
	if err != nil {
		return nil, nil, err
	}
	if episodes == nil {
		rows, err := d.promptsOf(ctx, prompts, shard, recipe.Rollout)
		if err != nil {
			return nil, nil, err
		}
		if episodes, err = loop.Episodes(ctx, rows, recipe.Rollout.SamplesPerPrompt, rollout.Rows{}); err != nil {
			return nil, nil, err
		}
	}
	rows := rollout.Rows{}
	if rows.Turns, err = commit.Rows[schema.TurnRow](ctx, d.Record,
		ofStage(later, schema.StageRollout)...); err != nil {
		return nil, nil, err
	}
	if rows.Branches, err = commit.Rows[schema.BranchRow](ctx, d.Record,
		ofStage(later, schema.StageRollout)...); err != nil {
		return nil, nil, err
	}
	if rows.Calls, err = commit.Rows[schema.ToolCallRow](ctx, d.Record,
		ofStage(later, schema.StageSandbox)...); err != nil {
		return nil, nil, err
	}
	if rows.Transitions, err = commit.Rows[schema.TransitionRow](ctx, d.Record,
		ofStage(later, schema.StageSandbox)...); err != nil {
		return nil, nil, err
	}
	episodes, err = loop.Advance(ctx, episodes, rows)
	return loop, episodes, err
}
