package recipes

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/ropewalk/ropewalk/rl/method"
)

// taskRules are the rules about the environment, its data, and what an episode in it is.
var taskRules = []rule{
	{at: "environment.level_shares", only: Calc, doc: "add up to 1 (± 1e-6)",
		check: func(r *Recipe) string { return sharesFault(r.Environment.LevelShares) }},
	{at: "environment.settings", reads: "rollout.max_turns", only: "configured", check: opens,
		doc: "such that the environment can be opened with them"},
	{at: "environment.settings", reads: summariesRead, only: "configured", check: summariesFit, doc: summariesDoc},
	{at: "environment.parts", reads: summariesRead, only: Mix, check: summariesFit, doc: summariesDoc},
	{at: "environment.parts", reads: "rollout.max_turns", only: Mix, check: partsFit,
		doc: "at least two, with different labels, that are all played by actions or all ask questions, that a " +
			"reward scores, of which one at most has documents, and that can be opened with their settings"},
	{at: "environment.parts", reads: "evaluation.problems", only: Mix,
		doc:   "each with a share of at least one of evaluation.problems",
		check: func(r *Recipe) string { return r.Environment.unmeasured(r.Evaluation.Problems) }},
	{at: "rollout.protocol", reads: "environment.name", only: trained, check: protocolFits,
		doc: "acts where the environment is interactive, and nowhere else"},
	{at: "rollout.tools", reads: "environment.name warm_start.steps rollout.mcp", only: "calling", check: toolsFit,
		doc: "names at least one tool, each once, of those that the environment has; none with rollout.mcp if " +
			"warm_start.steps is 0"},
	{at: "rollout.mcp", reads: "rollout.protocol rollout.tools rollout.prompts rollout.samples_per_prompt",
		only: "calling", check: serversFit,
		doc: "servers of different names that each have command or url, with a protocol that lists any tools " +
			"(hermes); sessions for all episodes of a step where calls must not run twice"},
	{at: "rollout.system", reads: "rollout.protocol", only: trained, set: true,
		ok:    func(r *Recipe) bool { return slices.Contains([]string{"", "chat"}, r.protocolSpec().Name) },
		doc:   "only with protocol chat, whose prompts begin with it",
		fault: "has no place in the prompts of rollout.protocol {rollout.protocol}; chat has one"},
	{at: "rollout.tool_format", reads: "rollout.protocol", only: trained, set: true, check: toolFormatFits,
		doc: "only with protocol chat; a form of calls that docs/protocols.md lists"},
	{at: "layout", reads: "rollout.protocol environment.name", only: trained,
		ok:  func(r *Recipe) bool { return !r.Whole() || r.Layout == method.Turns },
		doc: "turns with a protocol whose prompts are whole",
		fault: "must be turns with environment {environment.name}, for each turn has a whole prompt of its own; got " +
			"{layout}"},
	{at: "reward.name", reads: "environment.name", check: rewardFits, doc: rewardsInWords()},
	{at: "reward.name", reads: "rollout.protocol environment.name", only: trained, check: answerFits,
		doc: "no reward that looks for a box with a protocol whose answers have none; unit_tests with protocol " +
			"program alone"},
	{at: "reward.name", reads: "reward.module reward.kwargs reward.path", only: trained, check: functionFits,
		doc: "python with a function (package:name), arguments as a JSON object, and an absolute path"},
	{at: "reward.symbolic", only: Calc, is: "false",
		why: "every gold answer is a written number, and an answer must be one too, so values decide"},
	{at: "judge", only: trained, set: true, check: func(r *Recipe) string { return ofField(r.Judge.Fault()) },
		doc: "an address that begins with http:// or https://, and a reference as key"},
	{at: "sandbox.wall_seconds", reads: "sandbox.cpu_seconds", doc: "at least 10 × cpu_seconds",
		check: func(r *Recipe) string { return r.Sandbox.wallFault() }},
	{at: "data", only: "listed", set: true, ok: func(r *Recipe) bool { return *r.Data != Data{} },
		doc: "names at least one filter",
		fault: "names no filter: set integer_answers, deduplicate, decontaminate, hard or difficulty, or leave data " +
			"out"},
	{at: "data.difficulty", only: "listed", set: true,
		check: func(r *Recipe) string { return r.Data.Difficulty.fault() },
		doc:   "at_least ≤ at_most ≤ samples; the model is RUN, RUN@STEP or an absolute path"},
	{at: "data.integer_answers", only: "listed", set: true, doc: "false where answers are programs",
		ok:    func(r *Recipe) bool { return r.Environment.Name != code },
		fault: "has no place in a recipe of {environment.name}: its answers are programs"},
	{at: "data.decontaminate.against", only: "listed", doc: "absolute paths, each once",
		check: func(r *Recipe) string { return r.Data.Decontaminate.fault() }},
	{at: "warm_start.demonstrations", reads: "environment.name rollout.protocol rollout.tools", only: "demonstrated",
		set: true, check: demonstrationsFit,
		doc: "names a file, with its sha256, or a run, or form; a run where the environment is interactive; form " +
			"where the protocol calls python"},
	{at: "warm_start.steps", reads: "environment.settings warm_start.demonstrations", only: "demonstrated", set: true,
		check: func(r *Recipe) string { return demonstrated(r, r.Environment.undemonstrated) },
		doc: "0 where nothing demonstrates the tasks, without demonstrations: python with kind gymnasium and without " +
			"expert, webshop with release"},
	{at: "warm_start.steps", reads: "environment.parts warm_start.demonstrations", only: Mix, set: true,
		check: func(r *Recipe) string { return demonstrated(r, r.Environment.partUndemonstrated) },
		doc:   "0 without warm_start.demonstrations if nothing demonstrates a part"},
	{at: "warm_start.levels", only: Calc, doc: "names at least one level, each once",
		check: func(r *Recipe) string { return distinct("level", r.WarmStart.Levels) }},
	{at: "warm_start.teacher", only: Calc, doc: "probabilities add up to at most 1",
		check: func(r *Recipe) string { return r.WarmStart.Teacher.fault() }},
	{at: "warm_start.optimizer.minibatches", only: "demonstrated", is: "1", why: ownBatch},
	{at: "warm_start.optimizer.minibatch_rows", only: "demonstrated", is: "0", why: ownBatch},
	{at: "warm_start.optimizer.minibatch_prompts", only: "demonstrated", is: "0", why: ownBatch},
	{at: "warm_start.optimizer.epochs", only: "demonstrated", is: "1", why: ownBatch},
	{at: "warm_start.optimizer.warmup_steps", only: "demonstrated", atMost: "warm_start.steps"},
}

const (
	ownBatch      = "each cloning step draws its own batch"
	summariesRead = "rollout.tools policy.max_positions"
	summariesDoc  = "summary_tokens only with browse among rollout.tools, and at most half of policy.max_positions"
)

// opens checks the settings by opening the environment with them.
func opens(r *Recipe) string {
	if r.Environment.Declaration().Open == nil {
		return ""
	}
	_, err := r.Open()
	return unless(err == nil, "%v", err)
}

func (s Sandbox) wallFault() string {
	return unless(s.WallSeconds >= 10*s.CPUSeconds, "must be ≥ 10 × cpu_seconds (%s), got %s", short(10*s.CPUSeconds),
		short(s.WallSeconds))
}

// fault checks the names of evaluation sets.
func (d Decontaminate) fault() string {
	for i, path := range d.Against {
		if !filepath.IsAbs(path) || slices.Contains(d.Against[:i], path) {
			return "must hold absolute paths, each once, got " + path
		}
	}
	return ""
}

// demonstrated checks that something demonstrates the tasks that are cloned; fault says why the environment does not.
func demonstrated(r *Recipe, fault func() string) string {
	if r.WarmStart.Demonstrations != nil || r.Policy.Checkpoint != "" {
		return ""
	}
	return fault()
}

func (e Environment) undemonstrated() string {
	why := e.Declaration().Undemonstrated
	if why == nil {
		return ""
	}
	text := why(e.Settings)
	return unless(text == "", "must be 0, for nothing demonstrates these tasks: %s", text)
}

func (t Teacher) fault() string {
	sum := t.BadCode + t.WrongOrder + t.MissingPrint + t.NoTool + t.WrongCopy
	return unless(sum <= 1+1e-9, "probabilities must add up to at most 1, got %s", short(sum))
}

// sharesFault adds in a fixed order, because the sum of floats depends on the order.
func sharesFault(shares map[string]float64) string {
	sum := shares["2"] + shares["3"] + shares["4"]
	return unless(sum >= 1-1e-6 && sum <= 1+1e-6, "must add up to 1, got %s", short(sum))
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
