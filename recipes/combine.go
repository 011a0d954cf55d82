package recipes

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/rl/method"
	"github.com/ropewalk/ropewalk/rl/reward"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/schema"
)

// A combination is a rule over several fields. It is checked only when none of the fields that it reads has a fault of
// its own.
type combination struct {
	at    string   // the field to blame
	reads []string // the other fields it reads
	only  string   // environment, or class of them; "" = all
	doc   string   // the rule in words, for the reference page
	check func(*Recipe) string
}

// combinations holds the rules about the settings around the method, then the rules of the method.
var combinations = append(surrounding, ofMethod()...)

var surrounding = []combination{
	{
		at: "environment.level_shares", only: Calc, doc: "add up to 1 (± 1e-6)",
		check: func(r *Recipe) string { return sumsToOne(r.Environment.LevelShares) },
	},
	{
		at: "environment.settings", reads: []string{"rollout.max_turns"}, only: "configured",
		doc: "such that the environment can be opened with them",
		check: func(r *Recipe) string {
			if r.Environment.Declaration().Open == nil {
				return ""
			}
			_, err := r.Open()
			return unless(err == nil, "%v", err)
		},
	},
	{
		at: "rollout.protocol", reads: []string{"environment.name"}, only: trained,
		doc:   "acts where the environment is interactive, and nowhere else",
		check: protocolFits,
	},
	{
		at: "rollout.tools", reads: []string{"environment.name", "warm_start.steps", "rollout.mcp"},
		only: "calling",
		doc: "names at least one tool, each once, of those that the environment has; none with rollout.mcp if " +
			"warm_start.steps is 0",
		check: toolsFit,
	},
	{
		at: "rollout.mcp", reads: []string{"rollout.protocol", "rollout.tools", "rollout.prompts",
			"rollout.samples_per_prompt"}, only: "calling",
		doc: "servers of different names that each have command or url, with a protocol that lists any tools " +
			"(hermes); sessions for all episodes of a step where calls must not run twice",
		check: serversFit,
	},
	{
		at: "rollout.history", reads: []string{"rollout.protocol"}, only: trained,
		doc: "0 with a protocol whose turns go on after a call",
		check: func(r *Recipe) string {
			p, err := r.Protocol()
			return unless(r.Rollout.History == 0 || err != nil || len(p.Spec().Stops) == 0,
				"leaves earlier turns out, and a turn of rollout.protocol %s goes on after a call", protocolName(p))
		},
	},
	{
		at: "reward.name", reads: []string{"rollout.protocol", "environment.name"}, only: trained,
		doc: "no reward that looks for a box with a protocol whose answers have none; unit_tests with protocol " +
			"program alone",
		check: answerFits,
	},
	{
		at: "advantage.anchor", reads: []string{"environment.name", "advantage.anchors"}, only: trained,
		doc: "observation outside interactive environments, and with anchors similar",
		check: func(r *Recipe) string {
			return unless(r.Advantage.Params["anchor"] != "state" || r.Environment.Declaration().Interactive &&
				r.Advantage.Params["anchors"] == "exact",
				"state wants an interactive environment, whose states are recorded, and anchors: exact")
		},
	},
	{
		at: "layout", reads: []string{"rollout.protocol", "environment.name"}, only: trained,
		doc: "turns with a protocol whose prompts are whole",
		check: func(r *Recipe) string {
			return unless(!r.Whole() || r.Layout == method.Turns,
				"must be %s, for each turn has a whole prompt of its own, got %s", method.Turns, r.Layout)
		},
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
		at: "engine.lora.rank", reads: []string{"engine.lora.targets", "policy"}, only: trained,
		doc:   "at most the smaller side of each target",
		check: loraFits,
	},
	{
		at: "engine.lora", reads: []string{"engine.hosts"}, only: trained, doc: "on one host alone",
		check: func(r *Recipe) string {
			return unless(r.Engine.LoRA == nil || r.Engine.Hosts <= 1,
				"trains on one host alone, and engine.hosts is %d", r.Engine.Hosts)
		},
	},
	{
		at: "data", only: "listed", doc: "names at least one filter",
		check: func(r *Recipe) string {
			d := r.Data
			return unless(d == nil || d.Deduplicate || d.IntegerAnswers || d.Decontaminate != nil || d.Hard != nil,
				"names no filter: set integer_answers, deduplicate, decontaminate or hard, or leave data out")
		},
	},
	{
		at: "data.integer_answers", only: "listed", doc: "false where answers are programs",
		check: func(r *Recipe) string {
			return unless(r.Data == nil || !r.Data.IntegerAnswers || r.Environment.Name != code,
				"has no place in a recipe of %s: its answers are programs", r.Environment.Name)
		},
	},
	{
		at: "data.decontaminate.against", only: "listed", doc: "absolute paths, each once",
		check: func(r *Recipe) string {
			if r.Data == nil || r.Data.Decontaminate == nil {
				return ""
			}
			for i, path := range r.Data.Decontaminate.Against {
				if !filepath.IsAbs(path) || slices.Contains(r.Data.Decontaminate.Against[:i], path) {
					return fmt.Sprintf("must hold absolute paths, each once, got %s", path)
				}
			}
			return ""
		},
	},
	{
		at: "warm_start.demonstrations", reads: []string{"environment.name"}, only: "demonstrated",
		doc:   "names either a file, with its sha256, or a run; a run where the environment is interactive",
		check: demonstrationsFit,
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
		at: "warm_start.optimizer.minibatches", only: "demonstrated", doc: "1: each cloning step draws its own batch",
		check: func(r *Recipe) string {
			n := r.WarmStart.Optimizer.Minibatches
			return unless(n == 1, "must be 1, for each cloning step draws its own batch, got %d", n)
		},
	},
	{
		at: "warm_start.optimizer.minibatch_rows", only: "demonstrated",
		doc: "0: each cloning step draws its own batch",
		check: func(r *Recipe) string {
			n := r.WarmStart.Optimizer.MinibatchRows
			return unless(n == 0, "must be 0, for each cloning step draws its own batch, got %d", n)
		},
	},
	{
		at: "warm_start.optimizer.epochs", only: "demonstrated", doc: "1: each cloning step draws its own batch",
		check: func(r *Recipe) string {
			n := r.WarmStart.Optimizer.Epochs
			return unless(n == 1, "must be 1, for each cloning step draws its own batch, got %d", n)
		},
	},
	{
		at: "warm_start.optimizer.warmup_steps", reads: []string{"warm_start.steps"}, only: "demonstrated",
		doc: "at most warm_start.steps",
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
		at: "rollout.max_tokens", reads: []string{"policy.max_positions"}, only: trained,
		doc: "at most policy.max_positions",
		check: func(r *Recipe) string {
			if r.Policy.Checkpoint != "" {
				return "" // the checkpoint brings its own limit
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
			return unless(!r.Reward.Symbolic,
				"has no place in a recipe of %s: every gold answer is a written number, and an answer must be one "+
					"too, so there is nothing to ask", Calc)
		},
	},
	{
		at: "resample.roc.keep", reads: []string{"rollout.samples_per_prompt"},
		doc: "at most rollout.samples_per_prompt (for gsm8k-solutions: the group's 4; openai: any, and smaller " +
			"groups are dropped)",
		check: keepFits,
	},
	{
		at: "resample.roc.min_positive", reads: []string{"resample.roc.min_negative", "resample.roc.keep"},
		doc: "min_positive + min_negative is at most keep",
		check: func(r *Recipe) string {
			c := r.Resample.RoC()
			if c == nil {
				return ""
			}
			return unless(c.MinPositive+c.MinNegative <= c.Keep,
				"min_positive + min_negative must be ≤ keep (%d), got %d",
				c.Keep, c.MinPositive+c.MinNegative)
		},
	},
	{
		at: "resample.dynamic.tries", reads: []string{"rollout.prompts"}, only: trained,
		doc: fmt.Sprintf("times rollout.prompts at most %d groups", schema.MaxGroups),
		check: func(r *Recipe) string {
			d := r.Resample.Dynamic()
			return unless(d == nil || d.Tries*r.Rollout.Prompts <= schema.MaxGroups,
				"times rollout.prompts must be ≤ %d, the groups that a step can name", schema.MaxGroups)
		},
	},
	{
		at: "optimizer.minibatches", reads: []string{"rollout.prompts", "rollout.samples_per_prompt",
			"resample.roc.keep"}, only: trained,
		doc: "at most the rows of a full batch: prompts × keep, or × samples_per_prompt without RoC",
		check: func(r *Recipe) string {
			return atMost(r.Optimizer.Minibatches, "the rows of a full batch", r.Rollout.Prompts*kept(r))
		},
	},
	{
		at: "optimizer.minibatch_rows", reads: []string{"optimizer.minibatches"}, only: trained,
		doc: "0, or minibatches is 1",
		check: func(r *Recipe) string {
			return unless(r.Optimizer.MinibatchRows == 0 || r.Optimizer.Minibatches == 1,
				"must be 0 with optimizer.minibatches %d: the batch is cut by the number of mini-batches or by "+
					"their rows", r.Optimizer.Minibatches)
		},
	},
	truncates("rollout.top_p", func(r *Recipe) bool { return r.Rollout.TopP == 0 || r.Rollout.TopP == 1 }),
	truncates("rollout.top_k", func(r *Recipe) bool { return r.Rollout.TopK == 0 }),
	truncates("rollout.min_p", func(r *Recipe) bool { return r.Rollout.MinP == 0 }),
	{
		at: "rollout.tree", reads: []string{"rollout.mode"}, only: trained, doc: "there for mode tree",
		check: func(r *Recipe) string {
			return unless(r.Rollout.Mode != "tree" || r.Rollout.Tree != nil, "is required for rollout.mode tree")
		},
	},
	{
		at: "rollout.tree.roots", reads: []string{"rollout.samples_per_prompt"}, only: trained,
		doc: "at most rollout.samples_per_prompt",
		check: func(r *Recipe) string {
			if r.Rollout.Tree == nil {
				return ""
			}
			return atMost(r.Rollout.Tree.Roots, "samples_per_prompt", r.Rollout.SamplesPerPrompt)
		},
	},
	{
		at: "rollout.history", reads: []string{"layout"}, only: trained, doc: "0 without layout turns",
		check: func(r *Recipe) string {
			return unless(r.Rollout.History == 0 || r.Layout == method.Turns,
				"cuts the prompts of turns' rows, and layout %s has none", r.Layout)
		},
	},
	{
		at:    "rollout.history_tokens",
		reads: []string{"layout", "rollout.protocol", "environment.name", "reward.overlong"}, only: trained,
		doc: "0 without layout turns, with reward.overlong, and with a protocol whose contexts are whole prompts or " +
			"whose turns go on after a call",
		check: historyTokensFit,
	},
	{
		at: "rollout.history", reads: []string{"reward.overlong"}, only: trained, doc: "0 with reward.overlong",
		check: func(r *Recipe) string {
			return unless(r.Rollout.History == 0 && !r.Whole() || r.Reward.Overlong == nil,
				"lets a trajectory be longer than rollout.max_tokens, which is then a turn's, and reward.overlong "+
					"holds whole trajectories against it")
		},
	},
	{
		at: "schedule.stages", reads: []string{"steps"}, only: trained, doc: "begin at most at the last step",
		check: func(r *Recipe) string {
			stages := r.Schedule.Stages()
			if len(stages) == 0 {
				return ""
			}
			return atMost(stages[len(stages)-1].FromStep, "steps", r.Steps)
		},
	},
	{
		at: "schedule.stages", reads: []string{"rollout.max_tokens", "rollout.max_turn_tokens", "policy.max_positions"},
		only: trained,
		doc:  "max_tokens from rollout.max_turn_tokens to policy.max_positions", check: stagesFit,
	},
	{
		at: "resample", reads: []string{"rollout.samples_per_prompt"}, only: trained,
		doc: "low_variance, dynamic and reject_equal only with rollout.samples_per_prompt > 1",
		check: func(r *Recipe) string {
			s := r.Resample
			compares := s.LowVariance() != nil || s.Dynamic() != nil || s.RejectEqual()
			return unless(r.Rollout.SamplesPerPrompt > 1 || !compares,
				"compares the rewards of a group, and rollout.samples_per_prompt 1 leaves nothing to compare")
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

// combinations checks the rules whose fields have no fault.
func (d *decoder) combinations(r *Recipe) {
	if d.scope.environment == "" {
		return
	}
	faulty := slices.Clone(d.problems)
	for _, c := range combinations {
		if c.only != "" && !slices.Contains(members([]string{c.only}), d.scope.environment) || !d.scope.places(c.at) ||
			!sound(faulty, append([]string{c.at}, c.reads...)) {
			continue
		}
		if fault := c.check(r); fault != "" {
			d.fail(d.blame(c.at), c.at, "%s", fault)
		}
	}
}

// places reports whether the recipe has a place for a field and for the sections that contain the field.
func (s scope) places(path string) bool {
	f := root
	for name := range strings.SplitSeq(path, ".") {
		if f = f.child(name); f == nil {
			return true
		}
		if !f.belongs(s) {
			return false
		}
	}
	return true
}

// protocolFits checks the recipe's protocol against its environment.
func protocolFits(r *Recipe) string {
	p, err := r.Protocol()
	if err != nil {
		return err.Error()
	}
	switch acts := p.Spec().Acts; {
	case acts && !r.Environment.Declaration().Interactive:
		return fmt.Sprintf("%s is a protocol of actions, and %s takes none: its tasks are questions", p.Spec().Name,
			r.Environment.Name)
	case !acts && r.Environment.Declaration().Interactive:
		return fmt.Sprintf("%s has no actions, which %s is played by", p.Spec().Name, r.Environment.Name)
	}
	return ""
}

// answerFits checks that the reward can find the protocol's answers.
func answerFits(r *Recipe) string {
	p, err := r.Protocol()
	d, _ := reward.Declared(r.Reward.Name)
	if err != nil || p.Spec().Acts {
		return ""
	}
	answer := p.Spec().Answer
	if d.Tested {
		return unless(answer == protocol.AnswerProgram,
			"%s tests a program, and an answer of rollout.protocol %s is none", r.Reward.Name, protocolName(p))
	}
	return unless(answer != protocol.AnswerProgram && (answer != protocol.AnswerInTags || d.Compare == nil),
		"%s looks for a box, and an answer of rollout.protocol %s has none", r.Reward.Name, protocolName(p))
}

func protocolName(p protocol.Protocol) string {
	if p == nil {
		return ""
	}
	return p.Spec().Name
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

// within reports whether path is the section or a field inside the section.
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
	for _, k := range []string{"2", "3", "4"} { // in a fixed order, because the sum of floats depends on the order
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

// loraFits rejects an adapter whose rank is larger than a target projection allows.
func loraFits(r *Recipe) string {
	l, p := r.Engine.LoRA, r.Policy
	if l == nil || len(l.Targets) == 0 || p.Checkpoint != "" { // a checkpoint brings its own sizes
		return ""
	}
	side := func(target string) int { return min(p.Hidden, p.sides()[target]) }
	least := slices.MinFunc(l.Targets, func(a, b string) int { return cmp.Compare(side(a), side(b)) })
	return unless(l.Rank <= side(least), "must be ≤ the smaller side of %s (%d), got %d", least, side(least), l.Rank)
}

// sides returns the width of each projection of a layer, on the side that is not the hidden width.
func (p Policy) sides() map[string]int {
	return map[string]int{
		"q_proj": p.Heads * p.HeadDim, "k_proj": p.KVHeads * p.HeadDim, "v_proj": p.KVHeads * p.HeadDim,
		"o_proj":    p.Heads * p.HeadDim,
		"gate_proj": p.FFN, "up_proj": p.FFN, "down_proj": p.FFN,
	}
}

// stagesFit checks each stage's max_tokens against the bounds of the recipe's own max_tokens.
func stagesFit(r *Recipe) string {
	for _, s := range r.Schedule.Stages() {
		switch turn := r.Rollout.MaxTurnTokens; {
		case s.MaxTokens == 0:
		case s.MaxTokens < turn:
			return fmt.Sprintf("max_tokens from step %d on must be ≥ rollout.max_turn_tokens (%d), got %d", s.FromStep,
				turn, s.MaxTokens)
		case r.Policy.Checkpoint == "" && s.MaxTokens > r.Policy.MaxPositions: // a published model brings its own limit
			return fmt.Sprintf("max_tokens from step %d on must be ≤ policy.max_positions (%d), got %d", s.FromStep,
				r.Policy.MaxPositions, s.MaxTokens)
		}
	}
	return ""
}

func keepFits(r *Recipe) string {
	roc := r.Resample.RoC()
	switch {
	case roc == nil, r.Environment.Name == OpenAI: // the size of its groups is set by the file
		return ""
	case r.Environment.Name == GSM8KSolutions:
		return atMost(roc.Keep, "the solutions of a question", GSM8KGroup)
	}
	return atMost(roc.Keep, "samples_per_prompt", r.Rollout.SamplesPerPrompt)
}

// kept is the number of trajectories of a full group that reach the batch.
func kept(r *Recipe) int {
	if roc := r.Resample.RoC(); roc != nil {
		return roc.Keep
	}
	return r.Rollout.SamplesPerPrompt
}

// short renders a sum without the rounding noise of its last digits.
func short(x float64) string { return fmt.Sprintf("%.9g", x) }

// truncates is the rule of a limit of the rollout's sampling, which off reports to have no effect: the sampler's
// log-probabilities are those of the tokens that are left, and an update computes those of all tokens.
func truncates(field string, off func(*Recipe) bool) combination {
	return combination{
		at: field, reads: []string{"loss.old_log_probs"}, only: trained, doc: "only with loss.old_log_probs: recompute",
		check: func(r *Recipe) string {
			return unless(off(r) || r.Loss.OldLogProbs == loss.OldRecomputed,
				"the sampler's log-probabilities are then those of the tokens that are left, and updates compare with "+
					"those of all tokens; use loss.old_log_probs: recompute")
		},
	}
}

// historyTokensFit says why prompts cannot leave out turns that exceed rollout.history_tokens, or "".
func historyTokensFit(r *Recipe) string {
	p, err := r.Protocol()
	switch {
	case r.Rollout.HistoryTokens == 0 || err != nil:
		return ""
	case r.Layout != method.Turns:
		return fmt.Sprintf("cuts the prompts of turns' rows, and layout %s has none", r.Layout)
	case r.Whole():
		return fmt.Sprintf("cuts earlier turns, and each context of rollout.protocol %s is a whole prompt; "+
			"rollout.history bounds its turns", protocolName(p))
	case len(p.Spec().Stops) > 0:
		return fmt.Sprintf("leaves earlier turns out, and a turn of rollout.protocol %s goes on after a call",
			protocolName(p))
	}
	return unless(r.Reward.Overlong == nil, "lets a trajectory be longer than rollout.max_tokens, which is then a "+
		"turn's, and reward.overlong holds whole trajectories against it")
}
