package recipes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/rollout/toolcall"
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
	case r.Environment.bringsFunctions() && !slices.Contains([]string{"chat", "hermes"}, p.Spec().Name):
		return fmt.Sprintf("must be chat or hermes, because the tasks of %s bring functions; got %s",
			r.Environment.Name, p.Spec().Name)
	}
	return ""
}

// bringsFunctions reports whether tasks bring functions, calls of which are the answer.
func (e Environment) bringsFunctions() bool { return e.Declaration().Functions != nil }

// toolFormatFits checks the form of calls.
func toolFormatFits(r *Recipe) string {
	if _, err := toolcall.Named(r.Rollout.ToolFormat); err != nil {
		return err.Error()
	}
	name := r.protocolSpec().Name
	return unless(name == "" || name == "chat", "is for rollout.protocol chat, and %s has one form of calls", name)
}

// answerFits checks that the reward can find the protocol's answers.
func answerFits(r *Recipe) string {
	p, err := r.Protocol()
	d := r.Reward.Declaration()
	if err != nil || p.Spec().Acts || r.Environment.bringsFunctions() {
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

// protocolSpec describes the recipe's prompt format; it is empty where there is a fault of rollout.protocol.
func (r *Recipe) protocolSpec() protocol.Spec {
	p, err := r.Protocol()
	if err != nil {
		return protocol.Spec{}
	}
	return p.Spec()
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

// ofField returns a fault with the field that it is about, or "".
func ofField(field, text string) string { return unless(text == "", "%s: %s", field, text) }

// fault rejects an adapter whose rank is larger than a target projection allows.
func (l *LoRA) fault(p Policy) string {
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
		switch at := r.At(s.FromStep).Rollout; {
		case at.MaxTokens < at.MaxTurnTokens:
			return fmt.Sprintf("max_tokens from step %d on must be ≥ max_turn_tokens (%d), got %d", s.FromStep,
				at.MaxTurnTokens, at.MaxTokens)
		case s.MaxTokens == 0:
		case r.Policy.Checkpoint == "" && s.MaxTokens > r.Policy.MaxPositions: // a published model brings its own limit
			return fmt.Sprintf("max_tokens from step %d on must be ≤ policy.max_positions (%d), got %d", s.FromStep,
				r.Policy.MaxPositions, s.MaxTokens)
		}
	}
	return ""
}

// kept is how many trajectories of a group reach the batch, of a number of samples.
func kept(rule Resample, samples int) int {
	if roc := rule.RoC(); roc != nil {
		return roc.Keep
	}
	return samples
}

// MinibatchRows is the greatest number of rows of one optimiser step; 0 if optimizer.minibatches divides the batch.
func (r *Recipe) MinibatchRows() int {
	return cmp.Or(r.Optimizer.MinibatchPrompts*kept(r.Resample, r.Rollout.SamplesPerPrompt), r.Optimizer.MinibatchRows)
}

// short renders a sum without the rounding noise of its last digits.
func short(x float64) string { return fmt.Sprintf("%.9g", x) }

// summaryFits says why the policy cannot be asked for summaries, or "".
func summaryFits(r *Recipe) string {
	p, err := r.Protocol()
	if err != nil || !inTurns(r) {
		return ""
	}
	if !p.Spec().Summaries {
		return fmt.Sprintf("needs a protocol that asks for summaries, and %s does not; these do: %s", protocolName(p),
			strings.Join(protocol.Summarizers(), ", "))
	}
	return unless(r.Whole() || r.Rollout.History == 0 && r.Rollout.HistoryTokens == 0, "a prompt holds the latest "+
		"summary and all turns after it, and rollout.history and rollout.history_tokens leave turns out; use one of "+
		"the three")
}

// minimumsFault checks how many trajectories RoC keeps at least.
func minimumsFault(s Resample) string {
	c := s.RoC()
	return unless(c.MinPositive+c.MinNegative <= c.Keep, "min_positive + min_negative must be ≤ keep (%d), got %d",
		c.Keep, c.MinPositive+c.MinNegative)
}

// minibatchesFit checks that no mini-batch of a full batch is empty.
func minibatchesFit(r *Recipe) string {
	rows, n := r.Rollout.Prompts*kept(r.Resample, r.Rollout.SamplesPerPrompt), r.Optimizer.Minibatches
	return unless(n <= rows, "must be ≤ the rows of a full batch (%d), got %d", rows, n)
}

// compares reports whether a rule of resampling compares the rewards of a group.
func compares(s Resample) bool {
	return s.LowVariance() != nil || s.Dynamic() != nil || s.RejectEqual()
}

// stagesBegin checks that a run of these steps reaches the last stage of its schedule.
func stagesBegin(s *Schedule, steps int) string {
	stages := s.Stages()
	last := stages[len(stages)-1].FromStep
	return unless(last <= steps, "must be ≤ steps (%d), got %d", steps, last)
}
