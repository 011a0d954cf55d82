package recipes

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/rl/method"
	"github.com/ropewalk/ropewalk/schema"
)

// A combination is a rule over several fields. It is checked only when none of the fields that
// it reads is at fault by itself.
type combination struct {
	at    string   // the field to blame
	reads []string // the other fields it reads
	only  string   // environment, or class of them; "" = all
	doc   string   // the rule in words, for the reference page
	check func(*Recipe) string
}

// combinations are the rules about what stands around the method, then the method's own.
var combinations = append(surrounding, ofMethod()...)

var surrounding = []combination{
	{
		at: "environment.level_shares", only: Calc, doc: "add up to 1 (± 1e-6)",
		check: func(r *Recipe) string { return sumsToOne(r.Environment.LevelShares) },
	},
	{
		at: "policy.kv_heads", reads: []string{"policy.heads"}, only: trained, doc: "divides heads",
		check: func(r *Recipe) string {
			return unless(r.Policy.Checkpoint != "" || r.Policy.Heads%r.Policy.KVHeads == 0,
				"must divide heads (%d), got %d", r.Policy.Heads, r.Policy.KVHeads)
		},
	},
	{
		at: "policy.head_dim", only: trained, doc: "even",
		check: func(r *Recipe) string {
			return unless(r.Policy.HeadDim%2 == 0, "must be even, got %d", r.Policy.HeadDim)
		},
	},
	{
		at: "engine.lora.targets", only: trained, doc: "names at least one projection, each once",
		check: func(r *Recipe) string {
			if r.Engine.LoRA == nil {
				return ""
			}
			return distinct("projection", r.Engine.LoRA.Targets)
		},
	},
	{
		at: "engine.lora.rank", reads: []string{"engine.lora.targets", "policy"}, only: trained, doc: "at most the smaller side of each target",
		check: loraFits,
	},
	{
		at: "engine.lora", reads: []string{"engine.hosts"}, only: trained, doc: "on one host alone",
		check: func(r *Recipe) string {
			return unless(r.Engine.LoRA == nil || r.Engine.Hosts <= 1, "trains on one host alone, and engine.hosts is %d", r.Engine.Hosts)
		},
	},
	{
		at: "warm_start.levels", only: Calc, doc: "names at least one level, each once",
		check: func(r *Recipe) string { return distinct("level", r.WarmStart.Levels) },
	},
	{
		at: "warm_start.teacher", only: Calc, doc: "probabilities add up to at most 1",
		check: func(r *Recipe) string {
			t := r.WarmStart.Teacher
			sum := t.BadCode + t.WrongOrder + t.MissingPrint + t.NoTool + t.WrongCopy
			return unless(sum <= 1+1e-9, "probabilities must add up to at most 1, got %s", short(sum))
		},
	},
	{
		at: "warm_start.optimizer.minibatches", only: Calc, doc: "1: each cloning step draws its own batch",
		check: func(r *Recipe) string {
			n := r.WarmStart.Optimizer.Minibatches
			return unless(n == 1, "must be 1, for each cloning step draws its own batch, got %d", n)
		},
	},
	{
		at: "warm_start.optimizer.minibatch_rows", only: Calc, doc: "0: each cloning step draws its own batch",
		check: func(r *Recipe) string {
			n := r.WarmStart.Optimizer.MinibatchRows
			return unless(n == 0, "must be 0, for each cloning step draws its own batch, got %d", n)
		},
	},
	{
		at: "warm_start.optimizer.epochs", only: Calc, doc: "1: each cloning step draws its own batch",
		check: func(r *Recipe) string {
			n := r.WarmStart.Optimizer.Epochs
			return unless(n == 1, "must be 1, for each cloning step draws its own batch, got %d", n)
		},
	},
	{
		at: "warm_start.optimizer.warmup_steps", reads: []string{"warm_start.steps"}, only: Calc, doc: "at most warm_start.steps",
		check: func(r *Recipe) string {
			return atMost(r.WarmStart.Optimizer.WarmupSteps, "warm_start.steps", r.WarmStart.Steps)
		},
	},
	{
		at: "rollout.max_turn_tokens", reads: []string{"rollout.max_tokens"}, only: trained, doc: "at most max_tokens",
		check: func(r *Recipe) string {
			return atMost(r.Rollout.MaxTurnTokens, "max_tokens", r.Rollout.MaxTokens)
		},
	},
	{
		at: "rollout.max_tokens", reads: []string{"policy.max_positions"}, only: trained, doc: "at most policy.max_positions",
		check: func(r *Recipe) string {
			if r.Policy.Checkpoint != "" {
				return "" // it brings its own limit
			}
			return atMost(r.Rollout.MaxTokens, "policy.max_positions", r.Policy.MaxPositions)
		},
	},
	{
		at: "rollout.shard_groups", reads: []string{"rollout.prompts"}, only: trained, doc: "at most prompts",
		check: func(r *Recipe) string {
			return atMost(r.Rollout.ShardGroups, "prompts", r.Rollout.Prompts)
		},
	},
	{
		at: "sandbox.wall_seconds", reads: []string{"sandbox.cpu_seconds"}, doc: "at least 10 × cpu_seconds",
		check: func(r *Recipe) string {
			s := r.Sandbox
			return unless(s.WallSeconds >= 10*s.CPUSeconds, "must be ≥ 10 × cpu_seconds (%s), got %s",
				short(10*s.CPUSeconds), short(s.WallSeconds))
		},
	},
	{
		at: "reward.name", reads: []string{"environment.name"}, doc: rewardsInWords(),
		check: rewardFits,
	},
	{
		at: "reward.symbolic", only: Calc, doc: "false: every gold answer is a written number, which values decide",
		check: func(r *Recipe) string {
			return unless(!r.Reward.Symbolic, "has no place in a recipe of %s: every gold answer is a written number, and an answer must be one too, so there is nothing to ask", Calc)
		},
	},
	{
		at: "resample.roc.keep", reads: []string{"rollout.oversample"}, doc: "at most rollout.oversample (for gsm8k-solutions: the group's 4; openai: any, and smaller groups are dropped)",
		check: keepFits,
	},
	{
		at: "resample.roc.min_positive", reads: []string{"resample.roc.min_negative", "resample.roc.keep"}, doc: "min_positive + min_negative is at most keep",
		check: func(r *Recipe) string {
			if r.Resample.RoC == nil {
				return ""
			}
			c := r.Resample.RoC
			return unless(c.MinPositive+c.MinNegative <= c.Keep, "min_positive + min_negative must be ≤ keep (%d), got %d",
				c.Keep, c.MinPositive+c.MinNegative)
		},
	},
	{
		at: "resample.dynamic.tries", reads: []string{"rollout.prompts"}, only: trained, doc: fmt.Sprintf("times rollout.prompts at most %d groups", schema.MaxGroups),
		check: func(r *Recipe) string {
			d := r.Resample.Dynamic
			return unless(d == nil || d.Tries*r.Rollout.Prompts <= schema.MaxGroups,
				"times rollout.prompts must be ≤ %d, the groups that a step can name", schema.MaxGroups)
		},
	},
	{
		at: "optimizer.minibatches", reads: []string{"rollout.prompts", "rollout.oversample", "resample.roc.keep"}, only: trained, doc: "at most the rows of a full batch: prompts × keep, or × oversample without RoC",
		check: func(r *Recipe) string {
			return atMost(r.Optimizer.Minibatches, "the rows of a full batch", r.Rollout.Prompts*kept(r))
		},
	},
	{
		at: "optimizer.minibatch_rows", reads: []string{"optimizer.minibatches"}, only: trained, doc: "0, or minibatches is 1",
		check: func(r *Recipe) string {
			return unless(r.Optimizer.MinibatchRows == 0 || r.Optimizer.Minibatches == 1,
				"must be 0 beside optimizer.minibatches %d: the batch is cut by the number of mini-batches or by their rows", r.Optimizer.Minibatches)
		},
	},
	{
		at: "rollout.tree", reads: []string{"rollout.mode"}, only: trained, doc: "there for mode tree",
		check: func(r *Recipe) string {
			return unless(r.Rollout.Mode != "tree" || r.Rollout.Tree != nil, "is required for rollout.mode tree")
		},
	},
	{
		at: "rollout.tree.roots", reads: []string{"rollout.oversample"}, only: trained, doc: "at most rollout.oversample",
		check: func(r *Recipe) string {
			if r.Rollout.Tree == nil {
				return ""
			}
			return atMost(r.Rollout.Tree.Roots, "oversample", r.Rollout.Oversample)
		},
	},
	{
		at: "rollout.history", reads: []string{"layout"}, only: trained, doc: "0 without layout turns",
		check: func(r *Recipe) string {
			return unless(r.Rollout.History == 0 || r.Layout == method.Turns, "cuts the prompts of turns' rows, and layout %s has none", r.Layout)
		},
	},
	{
		at: "rollout.history", reads: []string{"reward.overlong"}, only: trained, doc: "0 beside reward.overlong",
		check: func(r *Recipe) string {
			return unless(r.Rollout.History == 0 || r.Reward.Overlong == nil,
				"lets a trajectory be longer than rollout.max_tokens, which is then a turn's, and reward.overlong holds whole trajectories against it")
		},
	},
	{
		at: "schedule.stages", reads: []string{"steps"}, only: trained, doc: "begin at most at the last step",
		check: func(r *Recipe) string {
			if r.Schedule == nil || len(r.Schedule.Stages) == 0 {
				return ""
			}
			return atMost(r.Schedule.Stages[len(r.Schedule.Stages)-1].FromStep, "steps", r.Steps)
		},
	},
	{
		at: "schedule.stages", reads: []string{"rollout.max_tokens", "rollout.max_turn_tokens", "policy.max_positions"}, only: trained,
		doc: "max_tokens from rollout.max_turn_tokens to policy.max_positions", check: stagesFit,
	},
	{
		at: "resample", reads: []string{"rollout.oversample"}, only: trained, doc: "low_variance, dynamic and reject_equal only with rollout.oversample > 1",
		check: func(r *Recipe) string {
			s := r.Resample
			return unless(r.Rollout.Oversample > 1 || s.LowVariance == nil && s.Dynamic == nil && !s.RejectEqual,
				"compares the rewards of a group, and rollout.oversample 1 leaves nothing to compare")
		},
	},
	{
		at: "evaluation.problems", only: Calc, doc: "divisible by 3, for the three levels",
		check: func(r *Recipe) string {
			n := r.Evaluation.Problems
			return unless(n%3 == 0, "must be divisible by 3 (a third of each level), got %d", n)
		},
	},
}

// combinations checks the rules whose fields are sound.
func (d *decoder) combinations(r *Recipe) {
	if d.scope.environment == "" {
		return
	}
	faulty := slices.Clone(d.problems)
	for _, c := range combinations {
		if c.only != "" && !slices.Contains(members([]string{c.only}), d.scope.environment) || !sound(faulty, append([]string{c.at}, c.reads...)) {
			continue
		}
		if fault := c.check(r); fault != "" {
			d.fail(d.blame(c.at), c.at, "%s", fault)
		}
	}
}

// sound reports whether no problem lies at, above or below any of the paths.
func sound(ps Problems, paths []string) bool {
	for _, p := range ps {
		for _, path := range paths {
			if p.Path == "" || within(p.Path, path) || within(path, p.Path) {
				return false
			}
		}
	}
	return true
}

// within reports whether path is section or lies inside it.
func within(path, section string) bool {
	rest, ok := strings.CutPrefix(path, section)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func unless(ok bool, format string, args ...any) string {
	if ok {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

func atMost(got int, name string, bound int) string {
	return unless(got <= bound, "must be ≤ %s (%d), got %d", name, bound, got)
}

func sumsToOne(shares map[string]float64) string {
	var sum float64
	for _, k := range []string{"2", "3", "4"} { // in order: a sum of floats depends on it
		sum += shares[k]
	}
	return unless(math.Abs(sum-1) <= 1e-6, "must add up to 1, got %s", short(sum))
}

func distinct[T comparable](what string, names []T) string {
	if len(names) == 0 {
		return "must name at least one " + what
	}
	for i, n := range names {
		if slices.Contains(names[:i], n) {
			return fmt.Sprintf("must name each %s once, got %v twice", what, n)
		}
	}
	return ""
}

// loraFits refuses an adapter of a rank that its target cannot have.
func loraFits(r *Recipe) string {
	l, p := r.Engine.LoRA, r.Policy
	if l == nil || len(l.Targets) == 0 || p.Checkpoint != "" { // which brings its own sizes
		return ""
	}
	side := func(target string) int { return min(p.Hidden, p.sides()[target]) }
	least := slices.MinFunc(l.Targets, func(a, b string) int { return cmp.Compare(side(a), side(b)) })
	return unless(l.Rank <= side(least), "must be ≤ the smaller side of %s (%d), got %d", least, side(least), l.Rank)
}

// sides are the widths of a layer's projections, on the side that is not hidden's.
func (p Policy) sides() map[string]int {
	return map[string]int{
		"q_proj": p.Heads * p.HeadDim, "k_proj": p.KVHeads * p.HeadDim, "v_proj": p.KVHeads * p.HeadDim, "o_proj": p.Heads * p.HeadDim,
		"gate_proj": p.FFN, "up_proj": p.FFN, "down_proj": p.FFN,
	}
}

// stagesFit holds each stage's max_tokens against what bounds the recipe's own.
func stagesFit(r *Recipe) string {
	if r.Schedule == nil {
		return ""
	}
	for _, s := range r.Schedule.Stages {
		switch turn := r.Rollout.MaxTurnTokens; {
		case s.MaxTokens == 0:
		case s.MaxTokens < turn:
			return fmt.Sprintf("max_tokens from step %d on must be ≥ rollout.max_turn_tokens (%d), got %d", s.FromStep, turn, s.MaxTokens)
		case r.Policy.Checkpoint == "" && s.MaxTokens > r.Policy.MaxPositions: // a published model brings its own limit
			return fmt.Sprintf("max_tokens from step %d on must be ≤ policy.max_positions (%d), got %d", s.FromStep, r.Policy.MaxPositions, s.MaxTokens)
		}
	}
	return ""
}

func keepFits(r *Recipe) string {
	switch {
	case r.Resample.RoC == nil, r.Environment.Name == OpenAI: // its groups are as large as the file says
		return ""
	case r.Environment.Name == GSM8KSolutions:
		return atMost(r.Resample.RoC.Keep, "the solutions of a question", GSM8KGroup)
	}
	return atMost(r.Resample.RoC.Keep, "oversample", r.Rollout.Oversample)
}

// kept is the number of trajectories of a full group that reach the batch.
func kept(r *Recipe) int {
	if r.Resample.RoC != nil {
		return r.Resample.RoC.Keep
	}
	return r.Rollout.Oversample
}

// short renders a sum without the last digits' noise.
func short(x float64) string { return fmt.Sprintf("%.9g", x) }
