package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/batch"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/dataset"
	"github.com/ropewalk/ropewalk/internal/enginepool"
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

// resolver reads the recipes that runs follow, and makes what depends on a recipe alone: its environment, its
// tokenizer, its tools and its agent loop.
type resolver struct {
	records records
	// declared returns the tools of a recipe.
	declared func(*recipes.Recipe) ([]tools.Declaration, error)
	// configs caches resolved recipes by the digest of the manifest that committed them.
	configs recent[string, *config]
	// tokenizers are those of the recipes' policies, by environment and protocol.
	tokenizers recent[string, *tokenizer.Tokenizer]
	// theirs are tokenizers of evaluated policies, by the digests of their files.
	theirs recent[string, tokenizer.Codec]
	// models are the models that recipes start from, without their weights, by their keys in the store.
	models recent[string, *pretrained.Model]
	// worlds are the recipes' environments, by their settings: an environment may have read files of tasks.
	worlds recent[string, env.Environment]
	// prepared holds the tasks that runs keep, by the manifests that decided on them.
	prepared recent[string, *prepared]
	// Tokens is the tokenizer of calc's policies and of imports.
	Tokens *tokenizer.Tokenizer
	// fetch opens the remote files that settings name; nil: this worker opens none.
	fetch dataset.Fetch
	// Models is the folder of the models that recipes name without a path; "" if this worker has none.
	Models string
	// Bucket opens another bucket of the worker's S3 server; nil: this worker opens none.
	Bucket func(name string) (store.Store, error)
}

func newResolver(r records, tokens *tokenizer.Tokenizer) resolver {
	declared := func(recipe *recipes.Recipe) ([]tools.Declaration, error) { return recipe.Rollout.Declared() }
	return resolver{records: r, declared: declared, Tokens: tokens,
		configs:    recent[string, *config]{most: configsKept},
		tokenizers: recent[string, *tokenizer.Tokenizer]{most: tokenizersKept},
		theirs:     recent[string, tokenizer.Codec]{most: tokenizersKept},
		models:     recent[string, *pretrained.Model]{most: modelsKept},
		worlds:     recent[string, env.Environment]{most: worldsKept},
		prepared:   recent[string, *prepared]{most: preparedKept}}
}

// configsKept bounds the recipes that a worker remembers: those of its runs and of their amendments.
const configsKept = 256

// config is a run's resolved recipe and its digest.
type config struct {
	recipe recipes.Recipe
	digest string
	code   map[string]string // the notes about the user's Python when the run was prepared
}

// config returns the recipe that a manifest of PrepareRun or AmendRecipe has committed.
func (r *resolver) config(ctx context.Context, ref schema.Ref) (*config, error) {
	if c, ok := r.configs.find(ref.Digest); ok {
		return c, nil
	}
	m, err := r.records.Record.Read(ctx, ref)
	if err != nil {
		return nil, err
	}
	shards := m.ShardsOf(schema.Documents)
	if len(shards) == 0 {
		return nil, fmt.Errorf("%w: %s commits no recipe", commit.ErrDamaged, ref.Key)
	}
	data, err := r.records.Record.ReadShard(ctx, shards[0])
	if err != nil {
		return nil, err
	}
	recipe, err := recipes.ParseCommitted(shards[0].Key, data, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: committed recipe: %w", commit.ErrDamaged, err)
	}
	recipe.Engine = enginepool.Chosen(m, recipe.Engine)
	c := &config{recipe: *recipe, digest: m.Config, code: codeNotes(m)}
	r.configs.put(ref.Digest, c)
	return c, nil
}

// recipe returns the recipe as it applies at the scope's step.
func (r *resolver) recipe(ctx context.Context, scope api.Scope) (*recipes.Recipe, error) {
	c, err := r.config(ctx, scope.Config)
	if err != nil {
		return nil, err
	}
	return c.recipe.At(scope.Step), nil
}

// worldsKept bounds the environments that a worker remembers, with their tasks.
const worldsKept = 4

// world returns the recipe's environment.
func (r *resolver) world(recipe *recipes.Recipe) (env.Environment, error) {
	key, err := json.Marshal([]any{recipe.Environment, recipe.Rollout.MaxTurns})
	if err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	if w, ok := r.worlds.find(string(key)); ok {
		return w, nil
	}
	w, err := recipe.OpenWith(r.fetch)
	if err == nil {
		r.worlds.put(string(key), w)
	}
	return w, err
}

// tokenizersKept bounds the tokenizers that a worker remembers.
const tokenizersKept = 8

// codec returns the tokenizer of a recipe's policy: that of the model that the run starts from, or of one that is made
// here.
func (r *resolver) codec(recipe *recipes.Recipe) (tokenizer.Codec, error) {
	if recipe.Policy.Checkpoint == "" {
		return r.tokenizer(recipe)
	}
	m, err := r.model(context.Background(), recipe) // no single stage's: every stage reads the same files
	if err != nil {
		return nil, err
	}
	return m.Tokens, nil
}

// tokenizer returns the tokenizer of a policy that is made here.
func (r *resolver) tokenizer(recipe *recipes.Recipe) (*tokenizer.Tokenizer, error) {
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
	t, err := TokenizerOf(recipe)
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
func (r *resolver) train(recipe *recipes.Recipe, plain *tokenizer.Tokenizer) (*tokenizer.Tokenizer, error) {
	world, err := r.world(recipe)
	if err != nil {
		return nil, err
	}
	free := *recipe
	free.Seed, free.Rollout.MaxTokens, free.Rollout.MaxTurnTokens = 0, math.MaxInt32, math.MaxInt32
	loop, err := r.loopWith(&free, sampling{temperature: 1}, plain)
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
		return nil, refuse(api.FailBadInput, "tokenizer.vocabulary: %v", err)
	}
	return t, nil
}

// TokenizerOf makes the tokenizer of a recipe's policy, without merges if the recipe has it trained.
func TokenizerOf(recipe *recipes.Recipe) (*tokenizer.Tokenizer, error) {
	p, err := recipe.Protocol()
	if err != nil {
		return nil, err
	}
	of := recipe.Environment.Declaration()
	if recipe.Tokenizer != nil {
		of.Strings = nil // what occurs often is merged
	}
	if s, ok := p.(protocol.Summarizer); ok && recipe.Rollout.Summary != nil {
		p = rollout.Summarizing{Summarizer: s}
	}
	if of.Interactive {
		return rollout.TokenizerOf(p, of)
	}
	called, err := recipe.Rollout.Declared()
	if err != nil {
		return nil, err
	}
	return rollout.TokenizerOf(p, of, tools.Specs(called)...)
}

// sampling is how the tokens of an agent loop are drawn.
type sampling struct {
	temperature float64
	truncation  policy.Truncation
	evaluation  bool
	tree        *rollout.Tree // nil = samples are independent
}

// rolloutSampling is how a recipe's rollouts are sampled.
func rolloutSampling(r *recipes.Recipe) sampling {
	return sampling{temperature: r.Rollout.Temperature, truncation: r.Rollout.Truncation()}
}

// protocol returns the recipe's prompt format. The format chat has the template of the model that the run starts from.
func (r *resolver) protocol(recipe *recipes.Recipe) (protocol.Protocol, error) {
	p, err := recipe.Protocol()
	chat, is := p.(protocol.Chat)
	if err != nil || !is {
		return p, err
	}
	chat.System = recipe.Rollout.System
	if recipe.Policy.Checkpoint == "" {
		return chat, nil
	}
	m, err := r.model(context.Background(), recipe)
	if err != nil {
		return nil, err
	}
	if chat, err = chat.With(protocol.ChatModel{Template: m.Template, ToolTemplate: m.ToolTemplate, Special: m.Special,
		Added: m.Tokens.Added(), Ends: m.Ends}); err != nil {
		return nil, err
	}
	declared, err := r.declared(recipe)
	if err != nil || len(declared) == 0 {
		return chat, err
	}
	prompted := rollout.Settings{Tools: tools.Specs(declared)}.Prompted()
	if err := chat.CheckCalls(prompted); err != nil || recipe.Rollout.MaxTurns < 2 {
		return chat, err
	}
	return chat, chat.CheckTools(prompted)
}

// loop is the recipe's agent loop.
func (r *resolver) loop(recipe *recipes.Recipe, draws sampling) (*rollout.Loop, error) {
	tokens, err := r.codec(recipe)
	if err != nil {
		return nil, err
	}
	return r.loopWith(recipe, draws, tokens)
}

func (r *resolver) loopWith(recipe *recipes.Recipe, draws sampling, tokens tokenizer.Codec) (*rollout.Loop,
	error) {
	p, err := r.protocol(recipe)
	if err != nil {
		return nil, err
	}
	s := rollout.Settings{
		MaxTurns: recipe.Rollout.MaxTurns, MaxTurnTokens: recipe.Rollout.MaxTurnTokens,
		MaxTokens: recipe.Rollout.MaxTokens, History: batch.History(recipe),
		MaxToolTextBytes: recipe.Rollout.MaxToolTextBytes, Budgets: recipe.Rollout.Budgets(),
		Temperature: draws.temperature, Truncation: draws.truncation, Tree: draws.tree,
		Evaluation: draws.evaluation, Protocol: p,
	}
	if sum := recipe.Rollout.Summary; sum != nil {
		s.SummaryTokens = sum.MaxTokens
	}
	declared, err := r.declared(recipe)
	if err != nil {
		return nil, err
	}
	s.Tools = tools.Specs(declared)
	if recipe.Environment.Declaration().Interactive {
		s.PastTurns = recipe.Rollout.History
		if s.Environment, err = r.world(recipe); err != nil {
			return nil, err
		}
	}
	return rollout.NewLoop(s, tokens, recipe.Seed)
}
