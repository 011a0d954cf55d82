package recipes

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/rl/method"
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
var combinations = slices.Concat(surrounding, tinkerRules, mixRules, summaryRules(), ofMethod())

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
		at: "rollout.system", reads: []string{"rollout.protocol"}, only: trained,
		doc: "only with protocol chat, whose prompts begin with it",
		check: func(r *Recipe) string {
			p, err := r.Protocol()
			return unless(r.Rollout.System == "" || err != nil || p.Spec().Name == "chat",
				"has no place in the prompts of rollout.protocol %s; chat has one", protocolName(p))
		},
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
		at: "reward.name", reads: []string{"reward.module", "reward.kwargs", "reward.path"}, only: trained,
		doc:   "python with a function (package:name), arguments as a JSON object, and an absolute path",
		check: functionFits,
	},
	{
		at: "judge", only: trained, doc: "an address that begins with http:// or https://, and a reference as key",
		check: judgeFits,
	},
	{
		at: "evaluation.judged", reads: []string{"environment.name"}, only: trained,
		doc: "only where tasks are questions with an answer in words",
		check: func(r *Recipe) string {
			d := r.Environment.Declaration()
			return unless(!r.Evaluation.Judged || !d.Interactive && r.Environment.Name != code,
				"has no place in a recipe of %s, whose tasks have no answers in words", r.Environment.Name)
		},
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
			return unless(!r.Whole() || r.Layout == method.Turns, "must be %s with environment %s, for each turn "+
				"has a whole prompt of its own; got %s", method.Turns, r.Environment.Name, r.Layout)
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
		at: "engine.servers", only: trained,
		doc: "each once, with an address that begins with http:// or https://, a reference as token, and absolute " +
			"paths",
		check: serversServe,
	},
	{
		at: "engine.max_mismatch", reads: []string{"engine.servers", "rollout.top_p", "rollout.top_k", "rollout.min_p"},
		only: trained, doc: "0 without engine.servers, and with rollout.top_p, top_k or min_p",
		check: func(r *Recipe) string {
			switch {
			case r.Engine.MaxMismatch == 0:
				return ""
			case len(r.Engine.Servers) == 0:
				return "compares engine.servers with the trainer, and the recipe names none"
			}
			return unless(!r.Rollout.Truncation().Active(), "compares equal distributions alone, and with "+
				"rollout.top_p, top_k or min_p the servers' log-probabilities are those of the tokens that are left")
		},
	},
	{
		at: "loss.old_log_probs", reads: []string{"engine.servers"}, only: trained,
		doc:   "recompute with engine.servers",
		check: serversTrain,
	},
	{
		at: "pipeline.max_staleness", reads: []string{"loss.old_log_probs", "schedule.stages"}, only: trained,
		doc: "above 0 only with loss.old_log_probs: recompute, and without a stage of the schedule whose problems " +
			"are unsolved",
		check: pipelineTrains,
	},
	{
		at:    "pipeline.in_flight",
		reads: []string{"pipeline.max_staleness", "rollout.mode", "rollout.tree", "engine.servers"}, only: trained,
		doc: "true only with max_staleness above 0 and rollout.mode: interleaved, and without rollout.tree and " +
			"engine.servers",
		check: inFlightSamples,
	},
	{
		at: "pipeline.mixed_groups", reads: []string{"pipeline.in_flight"}, only: trained,
		doc:   "drop only with in_flight",
		check: mixedGroupsDrop,
	},
	{
		at: "data", only: "listed", doc: "names at least one filter",
		check: func(r *Recipe) string {
			d := r.Data
			return unless(d == nil || d.Deduplicate || d.IntegerAnswers || d.Decontaminate != nil || d.Hard != nil ||
				d.Difficulty != nil, "names no filter: set integer_answers, deduplicate, decontaminate, hard or "+
				"difficulty, or leave data out")
		},
	},
	{
		at: "data.difficulty", only: "listed",
		doc:   "at_least ≤ at_most ≤ samples; the model is RUN, RUN@STEP or an absolute path",
		check: difficultyFits,
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
		at: "warm_start.demonstrations", reads: []string{"environment.name", "rollout.protocol", "rollout.tools"},
		only: "demonstrated",
		doc: "names a file, with its sha256, or a run, or form; a run where the environment is interactive; form " +
			"where the protocol calls python",
		check: demonstrationsFit,
	},
	{
		at: "warm_start.steps", reads: []string{"environment.settings", "warm_start.demonstrations"},
		only: "demonstrated",
		doc:  "0 where nothing demonstrates the tasks: python with kind gymnasium, without demonstrations",
		check: func(r *Recipe) string {
			why := r.Environment.Declaration().Undemonstrated
			if why == nil || r.WarmStart.Steps == 0 || r.WarmStart.Demonstrations != nil || r.Policy.Checkpoint != "" {
				return ""
			}
			text := why(r.Environment.Settings)
			return unless(text == "", "must be 0, for nothing demonstrates these tasks: %s", text)
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
				return "" // the checkpoint brings its own limit: see modelFits
			}
			return atMost(r.Rollout.MaxTokens, "policy.max_positions", r.Policy.MaxPositions)
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
		doc:   "at most rollout.samples_per_prompt (openai: any, and smaller groups are dropped)",
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
	{
		at: "loss.tis", reads: []string{"rollout.top_p", "rollout.top_k", "rollout.min_p"}, only: trained,
		doc: "off with rollout.top_p, top_k or min_p",
		check: func(r *Recipe) string {
			return unless(r.Loss.TIS() == nil || !r.Rollout.Truncation().Active(), "weighs by equal distributions "+
				"alone, and with rollout.top_p, top_k or min_p the sampler's log-probabilities are of the tokens that "+
				"are left: each weight would be smaller by their share of the whole; use one of the two")
		},
	},
	truncates("rollout.top_p", func(r *Recipe) bool { return r.Rollout.TopP == 0 || r.Rollout.TopP == 1 }),
	truncates("rollout.top_k", func(r *Recipe) bool { return r.Rollout.TopK == 0 }),
	truncates("rollout.min_p", func(r *Recipe) bool { return r.Rollout.MinP == 0 }),
	{
		at: "rollout.tree", reads: []string{"rollout.mode"}, only: trained, doc: "there for mode tree",
		check: func(r *Recipe) string {
			return unless(r.Rollout.Mode != modeTree || r.Rollout.Tree != nil, "is required for rollout.mode tree")
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
		at: "rollout.tree", reads: []string{"rollout.samples_per_prompt"}, only: trained,
		doc: fmt.Sprintf("absent with more than %d samples_per_prompt", mostLeaves),
		check: func(r *Recipe) string {
			if r.Rollout.Tree == nil {
				return ""
			}
			return unless(r.Rollout.SamplesPerPrompt <= mostLeaves, "has at most %d leaves, and "+
				"rollout.samples_per_prompt is %d", mostLeaves, r.Rollout.SamplesPerPrompt)
		},
	},
	{
		at: "advantage.prefixes", reads: []string{"rollout.tree"}, only: trained, doc: "per_leaf without rollout.tree",
		check: func(r *Recipe) string {
			return unless(r.Rollout.Tree != nil || !r.Advantage.SharesPrefixes(),
				"needs rollout.tree: without it no trajectories share a prefix")
		},
	},
	{
		at: "rollout.tree.base", reads: []string{"rollout.tree.rule"}, only: trained, doc: "-1, or at least 0",
		check: func(r *Recipe) string {
			t := r.Rollout.Tree
			return unless(t == nil || t.Base == -1 || t.Base >= 0, "must be -1 or a number in [0, 1]")
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
		at: "rollout.summary",
		reads: []string{"layout", "rollout.protocol", "environment.name", "rollout.history", "rollout.history_tokens",
			"reward.overlong", "evaluation.debate"},
		only: trained,
		doc: "absent without layout turns, with reward.overlong or evaluation.debate, with a protocol that cannot " +
			"ask for one, and with rollout.history or rollout.history_tokens, except where contexts are whole prompts",
		check: summaryFits,
	},
	{
		at: "rollout.summary.max_tokens", reads: []string{"rollout.max_tokens"}, only: trained,
		doc: "at most rollout.max_tokens",
		check: func(r *Recipe) string {
			if r.Rollout.Summary == nil {
				return ""
			}
			return atMost(r.Rollout.Summary.MaxTokens, "rollout.max_tokens", r.Rollout.MaxTokens)
		},
	},
	{
		at: "rollout.summary.every", reads: []string{"rollout.max_turns"}, only: trained,
		doc: "below rollout.max_turns",
		check: func(r *Recipe) string {
			s := r.Rollout.Summary
			return unless(s == nil || s.Every < r.Rollout.MaxTurns,
				"no trajectory has a turn after so many: rollout.max_turns is %d", r.Rollout.MaxTurns)
		},
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
	{
		at: "evaluation.debate.agents", only: trained, doc: "odd, so that votes cannot tie",
		check: func(r *Recipe) string {
			d := r.Evaluation.Debate
			return unless(d == nil || d.Agents%2 == 1, "must be odd, so that votes cannot tie, got %d", agentsOf(d))
		},
	},
	{
		at: "evaluation.greedy", reads: []string{"evaluation.debate"}, only: trained,
		doc: "false with evaluation.debate",
		check: func(r *Recipe) string {
			return unless(r.Evaluation.Debate == nil || !r.Evaluation.Greedy,
				"must be false with evaluation.debate: agents that take the most likely response all propose the same")
		},
	},
	{
		at: "evaluation.samples", reads: []string{"evaluation.debate"}, only: trained,
		doc: "with evaluation.debate samples × agents × (rounds + 1) at most 1000",
		check: func(r *Recipe) string {
			d, n := r.Evaluation.Debate, r.Evaluation.Samples
			return unless(d == nil || n*d.Responses() <= schema.MaxSamples,
				"%d debates of %d agents in up to %d rounds are %d episodes of a problem, and at most %d can be "+
					"numbered",
				n, agentsOf(d), roundsOf(d), n*d.Responses(), schema.MaxSamples)
		},
	},
	{
		at: "evaluation.problems", reads: []string{"evaluation.debate"}, only: trained,
		doc: "with evaluation.debate at most 10000",
		check: func(r *Recipe) string {
			return unless(r.Evaluation.Debate == nil || r.Evaluation.Problems <= schema.MaxGroups,
				"must be ≤ %d with evaluation.debate, got %d", schema.MaxGroups, r.Evaluation.Problems)
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
	f := root()
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
