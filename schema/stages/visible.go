package stages

import (
	_ "embed"
	"encoding/json"
	"strings"

	"github.com/ropewalk/ropewalk/schema"
)

// visibleJSON says where each table is read. The Python package reads a copy of it.
//
//go:embed visible.json
var visibleJSON []byte

// Visibility is the form of visible.json.
type Visibility struct {
	// InHeads names, for each table that heads lead to, the stages of a head that can hold it: the first of them that
	// the head has. An import has no stage prompts; its rollout holds the prompts too.
	InHeads map[schema.Table][]string `json:"in_heads"`
	// WithoutHead names the stages whose tables are visible as soon as they have committed.
	WithoutHead map[schema.Table]WithoutHead `json:"without_head"`
}

// WithoutHead selects the manifests of a table that is visible without a head.
type WithoutHead struct {
	Stage  string `json:"stage"`        // one stage, or
	Prefix string `json:"stage_prefix"` // all stages whose names start so
	Shards bool   `json:"shards"`       // also manifests of single shards, which no stage manifest combines
}

var visible = func() Visibility {
	var out Visibility
	if err := json.Unmarshal(visibleJSON, &out); err != nil {
		panic("visible.json: " + err.Error())
	}
	return out
}()

// Visible returns where each table is read. The caller must not change it.
func Visible() Visibility { return visible }

// Include reports whether a manifest is one of these stages'.
func (s WithoutHead) Include(p schema.Place) bool {
	if p.Shard >= 0 && !s.Shards {
		return false
	}
	return (s.Stage != "" && p.Stage == s.Stage) || (s.Prefix != "" && strings.HasPrefix(p.Stage, s.Prefix))
}

// Holding returns those of a step's manifests in which a table is read, in their order.
func (v Visibility) Holding(table schema.Table, manifests []schema.Ref) []schema.Ref {
	byStage := map[string][]schema.Ref{}
	var loose []schema.Ref
	for _, ref := range manifests {
		p, err := schema.ParseManifestKey(ref.Key)
		if err != nil {
			continue // no manifest holds a table under another key
		}
		byStage[p.Stage] = append(byStage[p.Stage], ref)
		if v.WithoutHead[table].Include(p) {
			loose = append(loose, ref)
		}
	}
	for _, stage := range v.InHeads[table] {
		if found := byStage[stage]; len(found) > 0 {
			return found
		}
	}
	return loose
}
