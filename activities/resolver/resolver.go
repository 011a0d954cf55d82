// Package resolver reads the recipes that runs follow, and makes what follows from a recipe and the record alone: its
// environment, its tokenizer, its tools, its agent loop and the tasks that the run keeps. What it has made it
// remembers, for a bounded number of recipes.
package resolver

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/dataset"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/planning"
	"github.com/ropewalk/ropewalk/internal/preflight"
	"github.com/ropewalk/ropewalk/internal/pretrained"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/tool/mcp"
	"github.com/ropewalk/ropewalk/tool/tools"
)

// Recipes reads the recipes that runs follow, and makes what depends on a recipe alone: its environment, its
// tokenizer, its tools and its agent loop.
type Recipes struct {
	Records record.Records
	// Declared returns the tools of a recipe.
	Declared func(*recipes.Recipe) ([]tools.Declaration, error)
	// configs caches resolved recipes by the digest of the manifest that committed them.
	configs Recent[string, *Config]
	// tokenizers are those of the recipes' policies, by environment and protocol.
	tokenizers Recent[string, *tokenizer.Tokenizer]
	// theirs are tokenizers of evaluated policies, by the digests of their files.
	theirs Recent[string, tokenizer.Codec]
	// models are the models that recipes start from, without their weights, by their keys in the store.
	models Recent[string, *pretrained.Model]
	// worlds are the recipes' environments, by their settings: an environment may have read files of tasks.
	worlds Recent[string, env.Environment]
	// prepared holds the tasks that runs keep, by the manifests that decided on them.
	prepared Recent[string, *Tasks]
	// Tokens is the tokenizer of calc's policies and of imports.
	Tokens *tokenizer.Tokenizer
	// Fetch opens the remote files that settings name; nil: this worker opens none.
	Fetch dataset.Fetch
	// Models is the folder of the models that recipes name without a path; "" if this worker has none.
	Models string
	// Bucket opens another bucket of the worker's S3 server; nil: this worker opens none.
	Bucket func(name string) (store.Store, error)
}

// New makes the recipes of a worker. tokens is the tokenizer of calc's policies and of imports.
func New(r record.Records, tokens *tokenizer.Tokenizer) Recipes {
	declared := func(recipe *recipes.Recipe) ([]tools.Declaration, error) { return recipe.Rollout.Declared() }
	return Recipes{Records: r, Declared: declared, Tokens: tokens,
		configs:    Recent[string, *Config]{Most: configsKept},
		tokenizers: Recent[string, *tokenizer.Tokenizer]{Most: tokenizersKept},
		theirs:     Recent[string, tokenizer.Codec]{Most: tokenizersKept},
		models:     Recent[string, *pretrained.Model]{Most: modelsKept},
		worlds:     Recent[string, env.Environment]{Most: worldsKept},
		prepared:   Recent[string, *Tasks]{Most: preparedKept}}
}

// configsKept bounds the recipes that a worker remembers: those of its runs and of their amendments.
const configsKept = 256

// Config is a run's resolved recipe and its digest.
type Config struct {
	Recipe recipes.Recipe
	Digest string
	Code   map[string]string // the notes about the user's Python when the run was prepared
}

// Config returns the recipe that a manifest of PrepareRun or AmendRecipe has committed.
func (r *Recipes) Config(ctx context.Context, ref schema.Ref) (*Config, error) {
	if c, ok := r.configs.find(ref.Digest); ok {
		return c, nil
	}
	m, err := r.Records.Record.Read(ctx, ref)
	if err != nil {
		return nil, err
	}
	shards := m.ShardsOf(schema.Documents)
	if len(shards) == 0 {
		return nil, fmt.Errorf("%w: %s commits no recipe", commit.ErrDamaged, ref.Key)
	}
	data, err := r.Records.Record.ReadShard(ctx, shards[0])
	if err != nil {
		return nil, err
	}
	recipe, err := recipes.ParseCommitted(shards[0].Key, data, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: committed recipe: %w", commit.ErrDamaged, err)
	}
	recipe.Engine = enginepool.Chosen(m, recipe.Engine)
	c := &Config{Recipe: *recipe, Digest: m.Config, Code: codeNotes(m)}
	r.configs.put(ref.Digest, c)
	return c, nil
}

// Recipe returns the recipe as it applies at the scope's step.
func (r *Recipes) Recipe(ctx context.Context, scope api.Scope) (*recipes.Recipe, error) {
	c, err := r.Config(ctx, scope.Config)
	if err != nil {
		return nil, err
	}
	return c.Recipe.At(scope.Step), nil
}

// worldsKept bounds the environments that a worker remembers, with their tasks.
const worldsKept = 4

// World returns the recipe's environment.
func (r *Recipes) World(recipe *recipes.Recipe) (env.Environment, error) {
	key, err := json.Marshal([]any{recipe.Environment, recipe.Rollout.MaxTurns})
	if err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	if w, ok := r.worlds.find(string(key)); ok {
		return w, nil
	}
	w, err := recipe.OpenWith(r.Fetch)
	if err == nil {
		r.worlds.put(string(key), w)
	}
	return w, err
}

// tokenizersKept bounds the tokenizers that a worker remembers.
const tokenizersKept = 8

// codec returns the tokenizer of a recipe's policy: that of the model that the run starts from, or of one that is made
// here.
func (r *Recipes) codec(recipe *recipes.Recipe) (tokenizer.Codec, error) {
	if recipe.Policy.Checkpoint == "" {
		return r.Tokenizer(recipe)
	}
	m, err := r.model(context.Background(), recipe) // no single stage's: every stage reads the same files
	if err != nil {
		return nil, err
	}
	return m.Tokens, nil
}

// Tokenizer returns the tokenizer of a policy that is made here.
func (r *Recipes) Tokenizer(recipe *recipes.Recipe) (*tokenizer.Tokenizer, error) {
	p, err := recipe.Protocol()
	if err != nil {
		return nil, err
	}
	of, err := json.Marshal(recipe.Environment) // its fixed strings may depend on its settings and parts
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	key := strings.Join(append([]string{string(of), p.Spec().Name, mcp.Identity(recipe.Rollout.MCP)},
		recipe.Rollout.ToolNames()...), " ")
	if sum := recipe.Rollout.Summary; sum != nil {
		key += fmt.Sprintf(" summary after %d in %d", sum.Every, sum.MaxTokens)
	}
	if recipe.Tokenizer != nil {
		text, err := json.Marshal([]any{key, recipe.Tokenizer, recipe.Environment, recipe.Rollout.MaxTurns,
			recipe.Rollout.History})
		if err != nil {
			return nil, fmt.Errorf("tokenizer: %w", err)
		}
		key = string(text)
	}
	if t, ok := r.tokenizers.find(key); ok {
		return t, nil
	}
	t, err := planning.TokenizerOf(recipe)
	if err == nil && recipe.Tokenizer != nil {
		t, err = r.train(recipe, t)
	}
	if err == nil {
		r.tokenizers.put(key, t)
	}
	return t, err
}

// train makes the tokenizer of a recipe that has it trained. plain is the one that it would have otherwise. The texts
// come from a loop with the seed 0 and without budgets, so that runs with other seeds have the same tokenizer.
func (r *Recipes) train(recipe *recipes.Recipe, plain *tokenizer.Tokenizer) (*tokenizer.Tokenizer, error) {
	world, err := r.World(recipe)
	if err != nil {
		return nil, err
	}
	free := *recipe
	free.Seed, free.Rollout.MaxTokens, free.Rollout.MaxTurnTokens = 0, math.MaxInt32, math.MaxInt32
	loop, err := r.LoopWith(&free, Sampling{Temperature: 1}, plain)
	if err != nil {
		return nil, err
	}
	// Every stage of every worker makes the same tokenizer, so it belongs to no single stage's context.
	texts, err := loop.Texts(context.Background(), world, recipe.Tokenizer.Texts)
	if err != nil {
		return nil, err
	}
	t, err := tokenizer.Train(plain.Added(), texts, recipe.Tokenizer.Vocabulary)
	if err != nil {
		return nil, badinput.Errorf("tokenizer.vocabulary: %v", err)
	}
	return t, nil
}

// Sampling is how the tokens of an agent loop are drawn.
type Sampling struct {
	Temperature float64
	Truncation  policy.Truncation
	Evaluation  bool
	Tree        *rollout.Tree // nil = samples are independent
}

// RolloutSampling is how a recipe's rollouts are sampled.
func RolloutSampling(r *recipes.Recipe) Sampling {
	return Sampling{Temperature: r.Rollout.Temperature, Truncation: r.Rollout.Truncation()}
}

// protocol returns the recipe's prompt format. The format chat has the template of the model that the run starts from.
func (r *Recipes) protocol(recipe *recipes.Recipe) (protocol.Protocol, error) {
	p, err := recipe.Protocol()
	chat, is := p.(protocol.Chat)
	if err != nil || !is {
		return p, err
	}
	if recipe.Policy.Checkpoint == "" {
		chat.System, chat.Format = recipe.Rollout.System, recipe.Rollout.ToolFormat
		return chat, nil
	}
	m, err := r.model(context.Background(), recipe)
	if err != nil {
		return nil, err
	}
	declared, err := r.Declared(recipe)
	if err != nil {
		return nil, err
	}
	return preflight.Chat(recipe, m, declared)
}

// Loop is the recipe's agent loop.
func (r *Recipes) Loop(recipe *recipes.Recipe, draws Sampling) (*rollout.Loop, error) {
	tokens, err := r.codec(recipe)
	if err != nil {
		return nil, err
	}
	return r.LoopWith(recipe, draws, tokens)
}

// LoopWith is Loop for a policy that has another tokenizer than the recipe's.
func (r *Recipes) LoopWith(recipe *recipes.Recipe, draws Sampling, tokens tokenizer.Codec) (*rollout.Loop, error) {
	p, err := r.protocol(recipe)
	if err != nil {
		return nil, err
	}
	s := rollout.Settings{
		MaxTurns: recipe.Rollout.MaxTurns, MaxTurnTokens: recipe.Rollout.MaxTurnTokens,
		MaxTokens: recipe.Rollout.MaxTokens, History: recipe.History(),
		MaxToolTextBytes: recipe.Rollout.MaxToolTextBytes, Budgets: recipe.Rollout.Budgets(),
		Temperature: draws.Temperature, Truncation: draws.Truncation, Tree: draws.Tree,
		Evaluation: draws.Evaluation, Protocol: p,
	}
	if sum := recipe.Rollout.Summary; sum != nil {
		s.SummaryTokens = sum.MaxTokens
	}
	declared, err := r.Declared(recipe)
	if err != nil {
		return nil, err
	}
	s.Tools, s.Functions = tools.Specs(declared), recipe.Environment.Declaration().Functions
	if recipe.Environment.Declaration().Interactive {
		s.PastTurns = recipe.Rollout.History
		if s.Environment, err = r.World(recipe); err != nil {
			return nil, err
		}
	}
	return rollout.NewLoop(s, tokens, recipe.Seed)
}
