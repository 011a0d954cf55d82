package method

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// plain is the method that every pipeline builds; the tests change it.
func plain(change ...func(*Method)) Method {
	m := Method{
		Layout:    Trajectory,
		Advantage: Advantage{Name: "grpo", Std: true, SingleGroup: "raw", Stats: "turn_rows"},
		Loss:      Loss{Name: "ppo_clip", ClipLow: 0.2, ClipHigh: 0.28, Aggregation: "token-mean", OldLogProbs: "rollout"},
		Reward:    Reward{Name: "rstar2_outcome"},
	}
	for _, c := range change {
		c(&m)
	}
	return m
}

func estimator(name string) func(*Method) { return func(m *Method) { m.Advantage.Name = name } }
func turns(m *Method)                     { m.Layout = Turns }

func TestRules(t *testing.T) {
	kl := func(in string) func(*Method) {
		return func(m *Method) { m.Loss.KL = &KL{Coefficient: 0.01, In: in, Estimator: "k3"} }
	}
	cases := []struct {
		name   string
		change []func(*Method)
		at     string // "" = sound
		want   string // the other field, and a word of the reason
	}{
		{"the plain method", nil, "", ""},
		{"gigpo over trajectories", []func(*Method){estimator("gigpo")}, "advantage.name", "gigpo compares turns, so it needs layout: turns, got trajectory"},
		{"gigpo over turns", []func(*Method){estimator("gigpo"), turns}, "", ""},
		{"empg over trajectories", []func(*Method){estimator("empg")}, "advantage.name", "needs layout: turns"},
		{"gae without a critic", []func(*Method){estimator("gae")}, "advantage.name", "add loss.value"},
		{"gae with a critic", []func(*Method){estimator("gae"), func(m *Method) { m.Loss.Value = &Value{1, 0.5, 1e-5} }}, "", ""},
		{"a critic for nobody", []func(*Method){func(m *Method) { m.Loss.Value = &Value{} }}, "loss.value", "advantage.name grpo does not read; it belongs to gae"},
		{"statistics by trajectory without turns", []func(*Method){func(m *Method) { m.Advantage.Stats = "per_trajectory" }}, "advantage.stats", "layout trajectory"},
		{"statistics by trajectory over turns", []func(*Method){turns, func(m *Method) { m.Advantage.Stats = "per_trajectory" }}, "", ""},
		{"rloo by trajectory", []func(*Method){turns, estimator("rloo"), func(m *Method) { m.Advantage.Stats = "per_trajectory" }}, "advantage.stats", "rloo (advantage.name)"},
		{"gae as older releases have it", []func(*Method){estimator("gae"), func(m *Method) { m.Loss.Value, m.Advantage.Returns = &Value{}, "reset" }}, "advantage.returns", "gae (advantage.name)"},
		{"a turn's penalty without turns", []func(*Method){func(m *Method) { m.Advantage.InvalidPenalty = 0.1 }}, "advantage.invalid_penalty", "needs layout: turns"},
		{"entropy-aware gae", []func(*Method){estimator("gae"), func(m *Method) {
			m.Loss.Value, m.Advantage.EntropyAware = &Value{}, &EntropyAware{}
		}}, "advantage.entropy_aware", "gae gives each token its own (advantage.name)"},
		{"entropy-aware empg", []func(*Method){estimator("empg"), turns, func(m *Method) { m.Advantage.EntropyAware = &EntropyAware{} }},
			"advantage.entropy_aware", "empg does so already"},
		{"entropy-aware grpo", []func(*Method){func(m *Method) { m.Advantage.EntropyAware = &EntropyAware{} }}, "", ""},
		{"dual clip inside", []func(*Method){func(m *Method) { m.Loss.DualClip = 1 }}, "loss.dual_clip", "> 1, got 1"},
		{"gspo with token advantages", []func(*Method){estimator("reinforce_pp"), func(m *Method) { m.Loss.Name = "gspo" }}, "loss.name", "advantage.name reinforce_pp they differ by token; use gspo_token"},
		{"gspo with entropy-aware advantages", []func(*Method){func(m *Method) { m.Loss.Name, m.Advantage.EntropyAware = "gspo", &EntropyAware{} }}, "loss.name", "advantage.entropy_aware"},
		{"gspo_token with token advantages", []func(*Method){estimator("reinforce_pp"), func(m *Method) { m.Loss.Name = "gspo_token" }}, "", ""},
		{"gspo with a token's clip", []func(*Method){func(m *Method) { m.Loss.Name, m.Loss.ClipHigh = "gspo", 1 }}, "loss.clip_high", "loss.name gspo"},
		{"an empty band of covariance", []func(*Method){func(m *Method) { m.Loss.Name, m.Loss.CovLow, m.Loss.CovHigh = "clip_cov", 5, 5 }}, "loss.cov_low", "below loss.cov_high (5)"},
		{"a sequence mask beside a sequence clip", []func(*Method){func(m *Method) { m.Loss.Name, m.Loss.SequenceMask = "gspo", &SequenceMask{} }}, "loss.sequence_mask", "gspo's own clip (loss.name)"},
		{"tis without two log-probabilities", []func(*Method){func(m *Method) { m.Loss.TIS = &TIS{2} }}, "loss.tis", "loss.old_log_probs: rollout they are the same; use recompute"},
		{"tis with two", []func(*Method){func(m *Method) { m.Loss.TIS, m.Loss.OldLogProbs = &TIS{2}, "recompute" }}, "", ""},
		{"KL in a trajectory's reward", []func(*Method){kl("reward")}, "loss.kl.in", "advantage.name grpo reads one reward"},
		{"KL in tokens' rewards", []func(*Method){kl("reward"), estimator("reinforce_pp")}, "", ""},
		{"a reference for nobody", []func(*Method){func(m *Method) { m.Loss.Reference = &Reference{5} }}, "loss.reference", "add loss.kl"},
		{"a reference that follows", []func(*Method){kl("loss"), func(m *Method) { m.Loss.Reference = &Reference{5} }}, "", ""},
		{"dynamic beside VSPO", []func(*Method){func(m *Method) { m.Resample = Resample{Dynamic: &Dynamic{}, VSPO: &VSPO{}} }}, "resample.dynamic", "no place beside resample.vspo"},
		{"reject_equal beside VSPO", []func(*Method){func(m *Method) { m.Resample = Resample{RejectEqual: true, VSPO: &VSPO{}} }}, "resample.reject_equal", "no place beside resample.vspo"},
		{"reject_equal beside dynamic", []func(*Method){func(m *Method) { m.Resample = Resample{RejectEqual: true, Dynamic: &Dynamic{}} }}, "resample.reject_equal", "no place beside resample.dynamic"},
		{"low_variance beside VSPO", []func(*Method){func(m *Method) { m.Resample = Resample{LowVariance: &LowVariance{}, VSPO: &VSPO{}} }}, "resample.low_variance", "no place beside resample.vspo"},
		{"dynamic, low_variance and RoC", []func(*Method){func(m *Method) { m.Resample = Resample{Dynamic: &Dynamic{}, LowVariance: &LowVariance{}, RoC: &RoC{}} }}, "", ""},
		{"replay without group means", []func(*Method){estimator("reinforce_pp"), func(m *Method) { m.Replay = &Replay{} }}, "replay", "advantage.name reinforce_pp does not form"},
		{"an empty band in replay", []func(*Method){func(m *Method) { m.Replay = &Replay{CovRatio: 0.02, CovLow: 60, CovHigh: 2} }}, "replay.cov_low", "below replay.cov_high (2)"},
		{"γ without replay", []func(*Method){func(m *Method) { m.Schedule = &Schedule{GammaHorizon: 100} }}, "schedule.gamma_horizon", "add replay"},
		{"μ without a tool term", []func(*Method){func(m *Method) { m.Schedule = &Schedule{MuHorizon: 100} }}, "schedule.mu_horizon", "reward.name rstar2_outcome has none"},
		{"μ with a tool term", []func(*Method){func(m *Method) { m.Schedule, m.Reward.Name = &Schedule{MuHorizon: 100}, "spear" }}, "", ""},
		{"stages that fall", []func(*Method){func(m *Method) { m.Schedule = &Schedule{Stages: []Stage{{FromStep: 1}, {FromStep: 9}, {FromStep: 9}}} }}, "schedule.stages", "got 9 after 9"},
		{"stages that rise", []func(*Method){func(m *Method) { m.Schedule = &Schedule{Stages: []Stage{{FromStep: 1}, {FromStep: 9}}} }}, "", ""},
	}
	broken := map[string]bool{}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := plain(c.change...)
			err := m.Validate()
			if c.at == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.at+": ")
			require.ErrorContains(t, err, c.want)
			for _, r := range Rules() {
				if fault := r.Fault(m); fault != "" {
					broken[r.At+" "+r.Doc] = true
					if len(r.Reads) == 1 { // the other field is named
						require.Contains(t, fault, r.Reads[0][strings.LastIndex(r.Reads[0], ".")+1:])
					}
				}
			}
		})
	}
	for _, r := range Rules() {
		require.True(t, broken[r.At+" "+r.Doc], "no case breaks the rule at %s: %s", r.At, r.Doc)
	}
}

func TestSeveralFaultsAreAllReported(t *testing.T) {
	err := plain(estimator("gae"), func(m *Method) { m.Loss.DualClip = 0.5; m.Loss.TIS = &TIS{2} }).Validate()
	require.ErrorContains(t, err, "advantage.name: ")
	require.ErrorContains(t, err, "loss.dual_clip: ")
	require.ErrorContains(t, err, "loss.tis: ")
}

func TestPicks(t *testing.T) {
	require.Equal(t, []Pick{
		{"layout", "trajectory"}, {"advantage.name", "grpo"}, {"loss.name", "ppo_clip"}, {"loss.aggregation", "token-mean"},
		{"loss.old_log_probs", "rollout"}, {"reward.name", "rstar2_outcome"},
	}, plain().Picks())
	m := plain(turns, estimator("gigpo"), func(m *Method) {
		m.Advantage.Anchors = "exact"
		m.Loss.KL = &KL{In: "loss", Controller: "fixed"}
		m.Loss.Entropy = 0.01
		m.Resample.RejectEqual = true
		m.Filters.Repetition = &Repetition{}
		m.Replay = &Replay{Recalibrate: "p50"}
		m.Schedule = &Schedule{GammaHorizon: 3, Stages: []Stage{}}
	})
	picks := m.Picks()
	for _, want := range []Pick{
		{"layout", "turns"}, {"advantage.anchors", "exact"}, {"loss.kl.in", "loss"}, {"loss.kl.controller", "fixed"}, {"loss.entropy", On},
		{"resample.reject_equal", On}, {"filters.repetition", On}, {"replay.recalibrate", "p50"}, {"schedule.gamma_horizon", On},
	} {
		require.Contains(t, picks, want)
	}
	require.NotContains(t, picks, Pick{"schedule.stages", On})
	require.NotContains(t, picks, Pick{"schedule.mu_horizon", On})
}

func TestNeeds(t *testing.T) {
	require.Equal(t, Needs{}, plain().Needs())
	require.False(t, plain().Needs().Forward())
	for name, c := range map[string]struct {
		change  func(*Method)
		want    Needs
		forward bool
	}{
		"critic":      {func(m *Method) { m.Advantage.Name, m.Loss.Value = "gae", &Value{} }, Needs{Values: true}, true},
		"turn rows":   {turns, Needs{TurnRows: true}, false},
		"empg":        {func(m *Method) { m.Advantage.Name, m.Layout = "empg", Turns }, Needs{Entropies: true, TurnRows: true}, true},
		"AEPO":        {func(m *Method) { m.Advantage.EntropyAware = &EntropyAware{} }, Needs{Entropies: true}, true},
		"clip_cov":    {func(m *Method) { m.Loss.Name = "clip_cov" }, Needs{Minibatch: true}, false},
		"recomputed":  {func(m *Method) { m.Loss.OldLogProbs = "recompute" }, Needs{OldLogProbs: true}, true},
		"tis":         {func(m *Method) { m.Loss.OldLogProbs, m.Loss.TIS = "recompute", &TIS{} }, Needs{OldLogProbs: true, RolloutLogProbs: true}, true},
		"KL":          {func(m *Method) { m.Loss.KL = &KL{In: "loss"} }, Needs{Reference: true}, true},
		"entropy":     {func(m *Method) { m.Loss.Entropy = 0.01 }, Needs{CurrentEntropies: true}, false},
		"replay":      {func(m *Method) { m.Replay = &Replay{Recalibrate: "p50"} }, Needs{Replay: true}, false},
		"nothing new": {func(m *Method) { m.Resample.RoC = &RoC{} }, Needs{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := plain(c.change).Needs()
			require.Equal(t, c.want, n)
			require.Equal(t, c.forward, n.Forward())
			require.Equal(t, c.want.Values, n.Critic())
		})
	}
}

// The table is whole: names are unique, each choice says what it is and where it is from, and the
// pipeline builds only what is in it.
func TestSlotTable(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Slots() {
		require.False(t, seen[s.Name], s.Name)
		seen[s.Name] = true
		require.NotEmpty(t, s.Doc, s.Name)
		require.NotEmpty(t, s.Choices, s.Name)
		for i, c := range s.Choices {
			require.NotEmpty(t, c.Doc, "%s %s", s.Name, c.Name)
			require.NotEmpty(t, c.Source, "%s %s", s.Name, c.Name)
			require.Equal(t, i, slices.Index(s.Names(), c.Name), "%s %s", s.Name, c.Name)
			for j, p := range c.Params {
				require.Equal(t, j, slices.IndexFunc(c.Params, func(q Param) bool { return q.Name == p.Name }), "%s %s reads %s twice", s.Name, c.Name, p.Name)
			}
		}
	}
	for _, p := range Pipeline() {
		_, ok := p.choice()
		require.True(t, ok, "%v is in the pipeline and not in the table", p)
		require.Empty(t, p.Missing(), p)
	}
}

func TestPlanned(t *testing.T) {
	require.Empty(t, plain().Planned())
	m := plain(func(m *Method) {
		m.Reward.Name, m.Reward.Judge = "prs_long", "server"
		m.Loss.SequenceMask = &SequenceMask{Delta: 0.003}
	})
	require.Contains(t, m.Planned(), "reward.judge: server: no client for a judge's server yet")
	require.Equal(t, "loss.kl.in: nowhere: the pipeline does not build it yet", Pick{"loss.kl.in", "nowhere"}.Missing())
}

func TestDesign(t *testing.T) {
	require.Equal(t, map[Dimension]string{
		LossAggregation: "token-mean", ImportanceClip: "ppo_clip −0.2/+0.28", DynamicFiltering: "none", AdvantageDesign: "grpo",
	}, plain().Design())
	m := plain(turns, estimator("gigpo"), func(m *Method) {
		m.Advantage.Std = false
		m.Advantage.EntropyAware, m.Replay = &EntropyAware{}, &Replay{}
		m.Loss = Loss{Name: "gspo", ClipLow: 3e-3, ClipHigh: 4e-3, Aggregation: "seq-mean-token-mean", SequenceMask: &SequenceMask{Delta: 3e-3}}
		m.Resample = Resample{Dynamic: &Dynamic{Tries: 3}, LowVariance: &LowVariance{Keep: 0.75}, RoC: &RoC{Keep: 8}, RejectEqual: true}
	})
	require.Equal(t, map[Dimension]string{
		LossAggregation: "seq-mean-token-mean", ImportanceClip: "gspo −0.003/+0.004 + sequence mask 0.003",
		DynamicFiltering: "dynamic, 3 tries → equal rewards rejected → most varied 0.75 → RoC 8",
		AdvantageDesign:  "gigpo without std × entropy + replay",
	}, m.Design())
	for name, want := range map[string]string{"sapo": "sapo τ 1/1.05", "kl_cov": "kl_cov 0.002 of the tokens"} {
		m := plain(func(m *Method) { m.Loss = Loss{Name: name, TauPositive: 1, TauNegative: 1.05, CovRatio: 0.002} })
		require.Equal(t, want, m.Design()[ImportanceClip])
	}
	m.Resample = Resample{VSPO: &VSPO{}}
	m.Loss = Loss{Name: "ppo_clip", ClipLow: 0.2, ClipHigh: 0.28, DualClip: 3}
	require.Equal(t, "VSPO", m.Design()[DynamicFiltering])
	require.Equal(t, "ppo_clip −0.2/+0.28 dual 3", m.Design()[ImportanceClip])
	require.Equal(t, "none", Method{}.Design()[ImportanceClip])
}
