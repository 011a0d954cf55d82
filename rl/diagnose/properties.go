package diagnose

// What a world offers to the methods at the start of training: each paper's method acts on a property of the sampled
// trajectories, and a world without the property cannot show the method's effect. The properties are those of the
// first step, which the policy before training samples. Departures: the papers name the properties and give no
// common table; the thresholds are Ropewalk's reading of them.
//
//	VSPO, PRS          share of groups without variance in their rewards         ≥ 60%
//	RoC                share of failed calls inside positive trajectories        ≥ 10%
//	SPEAR              initial success                                           < 15%
//	GiGPO              share of turns in anchor groups that compare              ≥ half
//	dynamic filtering  share of turns without a valid action                     ≥ 20%
//	AEPO               calls per trajectory                                      ≥ 3
//
// An anchor group compares if it has more than one turn and its turns have different returns. AEPO's second figure is
// the share of consecutive high-entropy turns: of the turns after a trajectory's first, those whose entropy and whose
// predecessor's are both above the mean of the first turns. AEPO names no threshold for it.

import (
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/rl/internal/exact"
)

// Sampled is one trajectory as it was sampled and scored.
type Sampled struct {
	Group   string // the prompt's
	Reward  float64
	Success bool
	Calls   int // calls or actions
	Failed  int // those of Calls that failed: tool errors, or actions that the environment does not know
	Turns   []SampledTurn
}

// SampledTurn is one turn of a trajectory.
type SampledTurn struct {
	Anchor  string  // the state that it starts from
	Return  float64 // the discounted sum of the rewards from this turn
	Valid   bool    // its action or call is valid
	Entropy float64 // the mean of its response's tokens, nats
}

// Properties gathers the trajectories of one step.
type Properties struct {
	zero                            ZeroAdvantage
	rewards                         map[string][]float64
	anchors                         map[anchor]*returns
	first                           exact.Sum
	trajectories, firsts, successes int
	calls, positive, failed         int
	turns, invalid                  int
	entropies                       [][]float64
}

// returns holds the turns of one anchor group.
type returns struct {
	turns       int
	least, most float64
}

// PropertyReport holds the properties; a share is 0 if its denominator is 0.
type PropertyReport struct {
	Trajectories, Groups, Turns int
	Calls, PositiveCalls        int     // in all trajectories, and in those with a reward > 0
	ZeroVariance                float64 // share of groups
	FailedInPositive            float64 // share of PositiveCalls
	Success                     float64 // share of trajectories
	Compared                    float64 // share of turns in anchor groups that compare
	Invalid                     float64 // share of turns
	CallsPerTrajectory          float64
	ConsecutiveHigh             float64 // share of the turns after a trajectory's first
	// AnchorsKnown and EntropiesKnown are false if the record has no anchors or no entropies.
	AnchorsKnown, EntropiesKnown bool
}

// Add adds trajectories. If one is refused, none is added. A turn without an entropy has NaN.
func (p *Properties) Add(trajectories ...Sampled) error {
	for i, t := range trajectories {
		if err := t.check(); err != nil {
			return fmt.Errorf("trajectory %d of group %s: %w", i, t.Group, err)
		}
	}
	if p.rewards == nil {
		p.rewards, p.anchors = map[string][]float64{}, map[anchor]*returns{}
	}
	for _, t := range trajectories {
		p.add(t)
	}
	return nil
}

func (t Sampled) check() error {
	if !usable(t.Reward) || t.Calls < 0 || t.Failed < 0 || t.Failed > t.Calls {
		return fmt.Errorf("%w: reward %g, %d calls, %d of them failed", ErrBadInput, t.Reward, t.Calls, t.Failed)
	}
	for i, turn := range t.Turns {
		if !usable(turn.Return) || math.IsInf(turn.Entropy, 0) || turn.Entropy > exact.Limit {
			return fmt.Errorf("%w: turn %d has the return %g and the entropy %g", ErrBadInput, i, turn.Return,
				turn.Entropy)
		}
	}
	return nil
}

func (p *Properties) add(t Sampled) {
	p.trajectories++
	p.calls += t.Calls
	p.rewards[t.Group] = append(p.rewards[t.Group], t.Reward)
	if t.Success {
		p.successes++
	}
	if t.Reward > 0 {
		p.positive += t.Calls
		p.failed += t.Failed
	}
	var entropies []float64
	for i, turn := range t.Turns {
		p.turns++
		if !turn.Valid {
			p.invalid++
		}
		if turn.Anchor != "" {
			p.compare(anchor{t.Group, turn.Anchor}, turn.Return)
		}
		if math.IsNaN(turn.Entropy) {
			continue
		}
		if i == 0 {
			p.first.Add(turn.Entropy)
			p.firsts++
		}
		entropies = append(entropies, turn.Entropy)
	}
	if len(entropies) > 0 {
		p.entropies = append(p.entropies, entropies)
	}
}

func (p *Properties) compare(at anchor, value float64) {
	r := p.anchors[at]
	if r == nil {
		r = &returns{least: value, most: value}
		p.anchors[at] = r
	}
	r.turns++
	r.least, r.most = min(r.least, value), max(r.most, value)
}

// Report returns the properties.
func (p *Properties) Report() (PropertyReport, error) {
	for _, rewards := range p.rewards { // counts do not depend on the order
		if err := p.zero.Add(rewards); err != nil {
			return PropertyReport{}, err
		}
	}
	zero := p.zero.Report()
	p.zero = ZeroAdvantage{}
	compared := 0
	for _, r := range p.anchors {
		if r.turns > 1 && r.most > r.least {
			compared += r.turns
		}
	}
	return PropertyReport{
		Trajectories: p.trajectories, Groups: zero.Groups, Turns: p.turns, Calls: p.calls, PositiveCalls: p.positive,
		ZeroVariance: zero.Fraction, FailedInPositive: share(p.failed, p.positive),
		Success: share(p.successes, p.trajectories), Compared: share(compared, p.turns),
		Invalid: share(p.invalid, p.turns), CallsPerTrajectory: meanOf(float64(p.calls), p.trajectories),
		ConsecutiveHigh: p.consecutive(), AnchorsKnown: len(p.anchors) > 0, EntropiesKnown: len(p.entropies) > 0,
	}, nil
}

// consecutive is the share of later turns that follow a high turn and are high themselves.
func (p *Properties) consecutive() float64 {
	threshold := meanOf(p.first.Value(), p.firsts)
	pairs, high := 0, 0
	for _, turns := range p.entropies {
		for i := 1; i < len(turns); i++ {
			pairs++
			if turns[i] > threshold && turns[i-1] > threshold {
				high++
			}
		}
	}
	return share(high, pairs)
}
