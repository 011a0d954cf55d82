package recipes

import (
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/rollout/branch"
)

// Values of rollout.mode and rollout.tree.rule.
const (
	modeTree = "tree"
	treeAEPO = "aepo"
	treeARPO = "arpo"
)

// mostLeaves is the greatest number of a tree's leaves. The samples of a group have fewer numbers than could be given
// to more leaves and to the branches that are given up.
const mostLeaves = 256

// Tree describes where trajectories branch (AEPO, ARPO).
type Tree struct {
	Rule          string  `json:"rule" required:"true" doc:"when a trajectory branches"`
	Roots         int     `json:"roots" required:"true" min:"1" max:"1024" doc:"trajectories sampled from the prompt; the rest of samples_per_prompt are branches. With monitor, this many only if it says nothing else"`
	EntropyWeight float64 `json:"entropy_weight" default:"0.2" min:"0" max:"1000" doc:"weight of the change of entropy after a tool's response"`
	Threshold     float64 `json:"threshold" default:"0.5" min:"0" max:"1" doc:"probability beyond which a trajectory branches"`
	Slope         float64 `json:"slope" default:"0.2" min:"0" max:"1" doc:"fall of the probability with each branching in a row"`
	Monitor       bool    `json:"monitor" default:"true" doc:"one trajectory first, whose entropies divide the budget between roots and branches"`
	Sensitivity   float64 `json:"sensitivity" default:"0.2" min:"0" max:"1000" doc:"β of that division, k·σ(β·(H_root − H_tool))"`
	// Fields that were added when trees could be run.
	CountMonitor  bool    `json:"count_monitor" default:"false" quiet:"true" doc:"the trajectory of monitor is the first root; otherwise it is no sample of the prompt, and only its cost remains"`
	MonitorRoot   bool    `json:"monitor_root" default:"false" quiet:"true" doc:"H_tool is the mean over all responses of that trajectory, the first included; otherwise over those after a tool's response"`
	Rounding      string  `json:"rounding" default:"half_up" enum:"half_up|floor_plus_1" quiet:"true" doc:"how the number of roots becomes whole: floor_plus_1 is AEPO's release"`
	AtThreshold   bool    `json:"at_threshold" default:"false" quiet:"true" doc:"a trajectory branches at the threshold, too (AEPO's release)"`
	Base          float64 `json:"base" default:"-1" min:"-1" max:"1" quiet:"true" doc:"what the probability starts from; -1 draws it for every decision"`
	Streak        string  `json:"streak" default:"branches" enum:"branches|passes" quiet:"true" doc:"what slope counts: branches in a row, or (Algorithm 1 as it is printed) rises of the entropy that opened none"`
	Copies        int     `json:"copies" default:"1" min:"1" max:"1000" quiet:"true" doc:"branches that one decision opens (Z)"`
	Entropy       string  `json:"entropy" default:"released" enum:"released|mean_renorm|mean_tail" quiet:"true" doc:"estimator of a response's entropy, from the likeliest tokens at its first positions: their −p ln p, summed over tokens and positions; or the mean over positions, of the distribution among these tokens, or with one outcome for all others"`
	Scale         string  `json:"scale" default:"ln_v" enum:"ln_v|v|nats" quiet:"true" doc:"entropies are divided by the logarithm of the vocabulary's size (as released), by that size (AEPO §3.1.2 on the change), or by nothing (AEPO eq 5 on the budget)"`
	EntropyTokens int     `json:"entropy_tokens" default:"20" min:"1" max:"4096" quiet:"true" doc:"first tokens of a response that its entropy looks at"`
	EntropyTop    int     `json:"entropy_top" default:"10" min:"1" max:"20" quiet:"true" doc:"likeliest tokens at each of them"`
}

// Branching returns the tree of the rollout; nil if each sample starts at the prompt.
func (r Rollout) Branching() *rollout.Tree {
	t := r.Tree
	if t == nil {
		return nil
	}
	out := &rollout.Tree{
		Leaves: r.SamplesPerPrompt, Roots: t.Roots, Rule: t.decider(),
		Entropy: branch.TopK{Mode: branch.EntropyMode(t.Entropy), Scale: branch.EntropyScale(t.Scale),
			Positions: t.EntropyTokens, Width: t.EntropyTop},
		Monitor: t.monitors(), CountMonitor: t.CountMonitor, WithRoot: t.MonitorRoot,
	}
	if out.Monitor {
		out.Split = branch.Budget{Total: r.SamplesPerPrompt, Sensitivity: t.Sensitivity,
			Rounding: branch.Rounding(t.Rounding), KeepBranch: r.SamplesPerPrompt > 1}
	}
	return out
}

func (t *Tree) decider() branch.Decider {
	if t.Rule == treeARPO {
		return branch.ARPO{EntropyWeight: t.EntropyWeight, Threshold: t.Threshold, Copies: t.Copies}
	}
	out := branch.Rule{EntropyWeight: t.EntropyWeight, Slope: t.Slope, Threshold: t.Threshold,
		AtThreshold: t.AtThreshold, Copies: t.Copies, Streak: branch.StreakRule(t.Streak)}
	if t.Base >= 0 {
		out.FixedBase = &t.Base
	}
	return out
}

// monitors reports whether a trajectory is monitored first. Only the rule of AEPO has the setting.
func (t *Tree) monitors() bool { return t.Rule == treeAEPO && t.Monitor }

// Phases is how often the turns of a trajectory can follow each other in a group: those of the monitor, of the roots
// with their branches, and of the roots that take the place of branches that were not opened.
func (t *Tree) Phases() int {
	if t.monitors() {
		return 3
	}
	return 2
}
