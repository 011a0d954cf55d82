package advantage

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// GiGPO, group-in-group policy optimisation (Feng et al. 2025; ARLArena eqs S14–S19). With e_k
// the environment's reward of turn k of a trajectory,
//
//	G_k    = Σ_{m≥k} γ^(m−k) e_m             step return
//	R_k    = Σ_m e_m                         score of every row of the trajectory
//	A_ep   = normalised R over the group's rows
//	A_step = normalised G over the anchor group's rows
//	A      = A_ep + ω A_step
//
// An invalid turn loses InvalidPenalty in its own R and its own G, after the returns were summed, so
// the turns before it do not pay. Normalised means (x − μ), divided by the deviation or not (Group).
// A turn in which the policy did not act (Aside) has A_step 0, and γ does not discount over it.
// A group of one keeps its raw score in A_ep, as SingleGroup says, and gives 0 in A_step, since it is its
// own mean. Departures: returns run over all rows of a trajectory in the order of turns, and none may be
// missing. Released code also duplicates random rows to fill its batches, which shifts every statistic.

var gigpo = Declaration{
	Choice: choice.Choice{
		Name: "gigpo", Doc: "the episode's advantage in its group, plus ω times the step's among turns in the same " +
			"anchor state",
		Source: "GiGPO (Feng et al. 2025); ARLArena S17–S19",
		Settings: gigpoSettings{
			Std: true, SingleGroup: SingleRaw, Stats: StatsTurnRows, Gamma: 0.95, Omega: 1,
			Anchors: AnchorsExact, Anchor: AnchorObservation, Similarity: DefaultSimilarity, Autojunk: true,
		},
	},
	Turns: true, GroupMeans: true,
}

// gigpoSettings are the parameters of GiGPO in a recipe.
type gigpoSettings struct {
	Std            bool        `json:"std"`
	SingleGroup    SingleGroup `json:"single_group"`
	Stats          Stats       `json:"stats"`
	InvalidPenalty float64     `json:"invalid_penalty"`
	Gamma          float64     `json:"gamma"`
	Omega          float64     `json:"omega" min:"0" max:"1000" doc:"weight of the step advantage, added to the episode's"`
	Anchors        string      `json:"anchors" doc:"which turns of a group share an anchor state"`
	Anchor         string      `json:"anchor" enum:"observation|state" quiet:"true" doc:"what identifies an anchor state: what the environment showed before the turn, or the state that it was in (ARLArena S16; interactive environments alone)"`
	Similarity     float64     `json:"similarity" above:"0" max:"1" doc:"least Ratcliff–Obershelp ratio to an anchor's first observation"`
	Autojunk       bool        `json:"autojunk" doc:"frequent characters of long observations seed no match, as in Python's difflib"`
}

// The readings of an anchor state: equal observations, or similar ones.
const (
	AnchorsExact   = "exact"
	AnchorsSimilar = "similar"
)

// What identifies an anchor state.
const (
	AnchorObservation = "observation"
	AnchorState       = "state"
)

// Estimate is GiGPO over the rows of turns. The reward of a turn is what the environment paid for it where the
// trajectory's reward is their sum; elsewhere it is 0, and the last turn has the trajectory's.
func (g gigpoSettings) Estimate(b Batch) (Estimates, error) {
	estimator := GiGPO{
		Gamma: g.Gamma, Omega: g.Omega, Mode: ModeMeanNorm, InvalidPenalty: g.InvalidPenalty,
		SingleGroup: g.SingleGroup, Stats: g.Stats,
	}
	if g.Std {
		estimator.Mode = ModeMeanStdNorm
	}
	if g.Anchors == AnchorsSimilar && g.Similarity < 1 { // 1 asks for equal texts
		ratio := RatcliffObershelp{NoAutojunk: !g.Autojunk}
		estimator.Anchors = Anchors{Similarity: g.Similarity, RatcliffObershelp: ratio}
	}
	turns := make([]GiGPORow, len(b.Rows))
	for i, s := range b.Rows {
		turns[i] = GiGPORow{Row: s.Row, Observation: s.Anchor, Invalid: s.Invalid, Aside: s.Summary}
		switch {
		case s.Summary:
		case g.Anchors == AnchorsSimilar:
			turns[i].Observation = s.Observation
		case g.Anchor == AnchorState:
			turns[i].Observation = s.State
		}
		switch {
		case s.Paid != nil:
			turns[i].Reward = *s.Paid
		case s.LastTurn:
			turns[i].Reward = s.Reward
		}
	}
	out, err := estimator.Estimate(turns)
	return Estimates{Rows: out.Advantage}, err
}

// Mode says how GiGPO normalises.
type Mode string

// The modes.
const (
	ModeMeanStdNorm Mode = "mean_std_norm"
	ModeMeanNorm    Mode = "mean_norm"
)

// GiGPO is the two-level estimator over turn rows.
type GiGPO struct {
	Gamma          float64     `min:"0" max:"1"`                // discount per turn, in [0, 1]
	Omega          float64     `min:"0"`                        // ω ≥ 0
	Mode           Mode        `enum:"mean_norm|mean_std_norm"` // ModeMeanStdNorm when empty
	Epsilon        float64     // DefaultEpsilon when 0
	InvalidPenalty float64     `min:"0"` // ≥ 0
	SingleGroup    SingleGroup // of A_ep; SingleRaw when empty
	Stats          Stats       // of A_ep; StatsTurnRows when empty
	Anchors        Anchors     // exact equality when zero
}

// Validate reports the first bad field.
func (g GiGPO) Validate() error {
	return errors.Join(choice.Check("", g), g.episode().Validate(), g.Anchors.Validate())
}

// episode is the estimator of A_ep.
func (g GiGPO) episode() TurnRows {
	norm := Group{Std: g.Mode != ModeMeanNorm, Epsilon: g.Epsilon, SingleGroup: g.SingleGroup}
	return TurnRows{Norm: norm, Stats: g.Stats}
}

// GiGPORow is one turn.
type GiGPORow struct {
	Row
	Reward      float64 // e_k, of the environment
	Observation string  // the anchor state: what the environment showed, without history or template
	Invalid     bool    // the turn's action was not valid
	Aside       bool    // the turn did not act: it is in no anchor group, and its A_step is 0
}

// GiGPOResult holds one value per row.
type GiGPOResult struct {
	StepReturn   []float64 // G before penalties
	StepScore    []float64 // G less the penalty
	EpisodeScore []float64 // R less the penalty
	Anchor       []int     // number of the anchor group, by first appearance in canonical order
	Episode      []float64 // A_ep
	Step         []float64 // A_step
	Advantage    []float64 // A
}

// Estimate returns the advantages of a batch of turns.
func (g GiGPO) Estimate(turns []GiGPORow) (GiGPOResult, error) {
	if err := g.Validate(); err != nil {
		return GiGPOResult{}, err
	}
	for i := range turns {
		if !finite(turns[i].Reward) {
			return GiGPOResult{}, fmt.Errorf(
				"estimate advantages: reward of row %d (%v) is %g", i, turns[i].Row, turns[i].Reward,
			)
		}
	}
	o, err := canonical(len(turns), func(i int) Row { return turns[i].Row })
	if err != nil {
		return GiGPOResult{}, fmt.Errorf("estimate advantages: %w", err)
	}
	n := len(turns)
	out := GiGPOResult{StepReturn: make([]float64, n), StepScore: make([]float64, n), EpisodeScore: make([]float64, n)}
	for k := range len(o.trajectories) - 1 {
		g.score(out, turns, o.trajectory(k))
	}
	out.Episode = g.episode().estimate(out.EpisodeScore, o)
	var anchors int
	out.Anchor, anchors = g.Anchors.assign(o, func(i int) string { return turns[i].Observation })
	out.Step = g.steps(out.StepScore, turns, out.Anchor, anchors)
	out.Advantage = make([]float64, n)
	for i := range out.Advantage {
		out.Advantage[i] = out.Episode[i] + g.Omega*out.Step[i]
	}
	return out, nil
}

// score writes the returns and scores of one trajectory.
func (g GiGPO) score(out GiGPOResult, turns []GiGPORow, rows []int) {
	total := 0.0
	for _, i := range rows {
		total += turns[i].Reward
	}
	running := 0.0
	for k := len(rows) - 1; k >= 0; k-- {
		i := rows[k]
		if turns[i].Aside { // takes no time in the environment
			running += turns[i].Reward
		} else {
			running = turns[i].Reward + g.Gamma*running
		}
		penalty := 0.0
		if turns[i].Invalid {
			penalty = g.InvalidPenalty
		}
		out.StepReturn[i], out.StepScore[i], out.EpisodeScore[i] = running, running-penalty, total-penalty
	}
}

// steps returns A_step.
func (g GiGPO) steps(scores []float64, turns []GiGPORow, anchor []int, anchors int) []float64 {
	norm := g.episode().Norm
	norm.SingleGroup = SingleZero
	out, scratch := make([]float64, len(scores)), []float64(nil)
	members, offset := bucket(anchor, anchors)
	for k := range anchors {
		rows := slices.DeleteFunc(members[offset[k]:offset[k+1]], func(i int) bool { return turns[i].Aside })
		scratch = gather(scratch, scores, rows)
		norm.fill(out, scores, rows, scratch)
	}
	return out
}
