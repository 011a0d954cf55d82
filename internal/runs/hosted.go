package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env/environments"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/engines"
	"github.com/ropewalk/ropewalk/policy/servers"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/store"
)

// Hosted is a model that is asked by OpenAI's chat completions. Its tokens are not known: the record has bytes and the
// fixed strings of protocols instead, and a small random model instead of its weights.
type Hosted struct{ server servers.Server }

// OpenHosted reads URL#NAME, and a reference to the secret that requests carry; "" = none. An address without a path
// gets /v1.
func OpenHosted(address, key string) (Hosted, error) {
	at, name, _ := strings.Cut(address, "#")
	if u, err := url.Parse(at); err == nil && strings.Trim(u.Path, "/") == "" {
		at = strings.TrimSuffix(at, "/") + "/v1"
	}
	h := Hosted{servers.Server{Kind: servers.KindChat, URL: at, Model: name, Token: key}}
	if field, fault := h.server.Fault(); fault != "" {
		return h, badinput.Errorf("%s: %s: %s", address, map[string]string{"url": "address", "model": "name",
			"token": "--key"}[field], fault)
	}
	return h, nil
}

// IsHosted reports whether an argument has the form URL#NAME.
func IsHosted(arg string) bool {
	return strings.HasPrefix(arg, "http") && strings.Contains(arg, "://") && strings.Contains(arg, "#")
}

// The longest episode and response, in bytes, and the latest turns that a prompt of a world describes where no recipe
// says it.
const (
	hostedBytes     = 128 << 10
	hostedTurnBytes = 16 << 10
	hostedTurns     = 50
)

// Evaluation describes an evaluation of the model, under a base's recipe or with an environment's defaults. What trains
// is left out of a base: no stage of an evaluation reads it, and it need not fit.
func (h Hosted) Evaluation(base json.RawMessage) (Evaluation, error) {
	out := defaults(hostedBytes)
	out["evaluation"] = map[string]any{"greedy": false}
	if base != nil {
		of, err := recipeOf(base, hostedBytes)
		if err != nil {
			return Evaluation{}, err
		}
		for _, name := range slices.Concat(shaped, []string{"environment", "sandbox", "layout", "reward"}) {
			if section, there := of[name]; there {
				out[name] = section
			}
		}
		for _, trained := range []string{"tree", "mode", "summary"} {
			delete(section(out, "rollout"), trained)
		}
		out["advantage"], out["loss"] = map[string]any{"name": "grpo"}, map[string]any{"name": "ppo_clip"}
	}
	rollout := section(out, "rollout")
	rollout["max_tokens"], rollout["max_turn_tokens"] = hostedBytes, hostedTurnBytes
	rollout["max_tool_text_bytes"] = hostedTurnBytes
	out["policy"] = Folder{shape: standIn(1)}.Recipe()
	server := map[string]any{"kind": h.server.Kind, "url": h.server.URL, "model": h.server.Model}
	if h.server.Token != "" {
		server["token"] = h.server.Token
	}
	out["engine"] = map[string]any{"kind": engines.Usual(false).Name, "servers": []any{server}}
	return Evaluation{Of: h.server.Model, Recipe: out, Fresh: true, Hosted: true}, nil
}

// explain gives the recipe of a hosted model a prompt that explains calls and tells of earlier turns, and what a recipe
// with servers must say.
func explain(recipe map[string]any) {
	d, _ := environments.Named(environmentOf(recipe))
	rollout := section(recipe, "rollout")
	name, _ := rollout["protocol"].(string)
	named, _ := rollout["tools"].([]any)
	switch name = cmp.Or(name, d.Protocol); {
	case name == protocol.RStar2{}.Spec().Name:
		rollout["protocol"] = protocol.RStar2Prompt{}.Spec().Name
	case name == protocol.Chat{}.Spec().Name && (len(named) > 0 || d.Functions != nil):
		rollout["protocol"] = protocol.Hermes{}.Spec().Name
	}
	if _, there := rollout["history"]; d.Interactive && !there {
		rollout["history"] = hostedTurns
	}
	if d.Demonstrated {
		recipe["warm_start"] = noWarmStart
	}
	section(recipe, "loss")["old_log_probs"] = "recompute"
}

// standIn is the shape of the model that replaces a hosted one in the record, with a vocabulary of this size.
func standIn(vocabulary int) checkpoint.Shape {
	return checkpoint.Shape{Vocab: vocabulary, Hidden: 8, Layers: 1, Heads: 1, KVHeads: 1, HeadDim: 8, FFN: 8,
		Positions: 1 << 20, RopeTheta: 10000, NormEps: 1e-6, Pad: -1}
}

// Put stores the model that replaces the hosted one in the record, and returns the reference to it. Its tokens are
// bytes and the fixed strings of all protocols.
func (h Hosted) Put(ctx context.Context, objects store.Store, code string) (ref api.PolicyRef, err error) {
	var added []string
	for _, p := range protocol.All {
		added = append(added, p.Added()...)
	}
	slices.Sort(added)
	tokens, err := tokenizer.New(slices.Compact(added))
	if err != nil {
		return ref, err
	}
	dir, err := os.MkdirTemp("", "ropewalk-model-")
	if err != nil {
		return ref, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	dir = filepath.Join(dir, "model")
	if err := checkpoint.Init(dir, standIn(tokens.VocabSize()), 1, tokens.Files()); err != nil {
		return ref, err
	}
	f, err := OpenFolder(dir)
	if err != nil {
		return ref, err
	}
	return f.Put(ctx, objects, code)
}
