package recipes

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/rl/method"
	"github.com/ropewalk/ropewalk/rl/reward"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

// protocolFits checks the recipe's protocol against its environment.
func protocolFits(r *Recipe) string {
	if r.Environment.unfit() {
		return ""
	}
	p, err := r.Protocol()
	if err != nil {
		return strings.TrimPrefix(err.Error(), "rollout.protocol: ")
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
	if r.Reward.Name == deepResearch && slices.Contains(r.Environment.Declaration().Rewards, deepResearch) {
		return unless(p.Spec().Name == protocol.AEPO.Spec().Name,
			"%s reads searches, programs and their results in tags, which rollout.protocol %s does not write; %s does",
			deepResearch, protocolName(p), protocol.AEPO.Spec().Name)
	}
	if d.Tested {
		return unless(answer == protocol.AnswerProgram,
			"%s tests a program, and an answer of rollout.protocol %s is none", r.Reward.Name, protocolName(p))
	}
	if d.FromText && answer != protocol.AnswerText {
		return fmt.Sprintf("%s reads the answer of rollout.protocol chat, not that of %s", r.Reward.Name,
			protocolName(p))
	}
	boxless := answer == protocol.AnswerInTags || answer == protocol.AnswerText
	return unless(answer != protocol.AnswerProgram && (!boxless || d.Compare == nil || d.FromText),
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
	if roc == nil || r.Environment.Name == OpenAI { // the size of its groups is set by the file
		return ""
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

// summaryFits says why the policy cannot write summaries, or "".
func summaryFits(r *Recipe) string {
	p, err := r.Protocol()
	if r.Rollout.Summary == nil || err != nil {
		return ""
	}
	_, asks := p.(protocol.Summarizer)
	switch {
	case r.Layout != method.Turns:
		return fmt.Sprintf("cuts the prompts of turns' rows, and layout %s has none", r.Layout)
	case !asks:
		return fmt.Sprintf("needs a protocol that asks for summaries, and %s does not; these do: %s", protocolName(p),
			strings.Join(protocol.Summarizers(), ", "))
	case !r.Whole() && (r.Rollout.History > 0 || r.Rollout.HistoryTokens > 0):
		return "a prompt holds the latest summary and all turns after it, and rollout.history and " +
			"rollout.history_tokens leave turns out; use one of the three"
	case r.Evaluation.Debate != nil:
		return "agents debate the policy's responses (evaluation.debate), and a summary has no right answer to agree on"
	}
	return unless(r.Reward.Overlong == nil, "lets a trajectory be longer than rollout.max_tokens, which is then a "+
		"turn's, and reward.overlong holds whole trajectories against it")
}

// agentsOf is how many agents debate; 1 without a debate.
func agentsOf(d *Debate) int {
	if d == nil {
		return 1
	}
	return d.Agents
}

// roundsOf is how many rounds a debate has at most.
func roundsOf(d *Debate) int {
	if d == nil {
		return 1
	}
	return d.Rounds + 1
}
