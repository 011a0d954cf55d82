package method

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/rl/choice"
	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/rl/resample"
	"github.com/ropewalk/ropewalk/rl/schedule"
)

// plain is the method that every pipeline builds; the tests change it.
func plain(change ...func(*Method)) Method {
	m := Method{
		Layout: Trajectory,
		Advantage: Advantage{
			Name: "grpo", Params: choice.Params{"std": true, "single_group": "raw", "stats": "turn_rows"},
		},
		Loss: Loss{
			Name: "ppo_clip", Params: choice.Params{"clip_low": 0.2, "clip_high": 0.28, "dual_clip": 0.0},
			Aggregation: "token-mean", OldLogProbs: "rollout",
		},
		Reward: Reward{Name: "rstar2_outcome"},
	}
	for _, c := range change {
		c(&m)
	}
	return m
}

// rule switches a resampling rule on, and term a term of the loss.
func rule(name string, settings any) func(*Method) {
	return func(m *Method) { set(&m.Resample.Params, name, settings) }
}

func term(name string, settings any) func(*Method) {
	return func(m *Method) { set(&m.Loss.Terms, name, settings) }
}

func scheduling(name string, value any) func(*Method) {
	return func(m *Method) { m.Schedule = &Schedule{choice.Params{name: value}} }
}

func critic(m *Method) {
	set(&m.Loss.Terms, "value", &loss.ValueSettings{Coefficient: 1, Clip: 0.5, LR: 1e-5})
}

func set(params *choice.Params, name string, value any) {
	if *params == nil {
		*params = choice.Params{}
	}
	(*params)[name] = value
}

func estimator(name string) func(*Method) { return func(m *Method) { m.Advantage.Name = name } }
func turns(m *Method)                     { m.Layout = Turns }

func TestRules(t *testing.T) {
	kl := func(in string) func(*Method) {
		return func(m *Method) { term("kl", &loss.KLSettings{Coefficient: 0.01, In: in, Estimator: "k3"})(m) }
	}
	cases := []struct {
		name   string
		change []func(*Method)
		at     string // "" = sound
		want   string // the other field, and a word of the reason
	}{
		{"the plain method", nil, "", ""},
		{
			"gigpo over trajectories", []func(*Method){estimator("gigpo")}, "advantage.name",
			"gigpo compares turns, so it needs layout: turns, got trajectory",
		},
		{"gigpo over turns", []func(*Method){estimator("gigpo"), turns}, "", ""},
		{"empg over trajectories", []func(*Method){estimator("empg")}, "advantage.name", "needs layout: turns"},
		{"gae without a critic", []func(*Method){estimator("gae")}, "advantage.name", "add loss.value"},
		{
			"gae with a critic",
			[]func(*Method){estimator("gae"), critic}, "", "",
		},
		{
			"a critic that no estimator reads", []func(*Method){critic}, "loss.value",
			"advantage.name grpo does not read; it belongs to gae",
		},
		{
			"statistics by trajectory without turns",
			[]func(*Method){func(m *Method) { m.Advantage.Params["stats"] = "per_trajectory" }}, "advantage.stats",
			"layout trajectory",
		},
		{
			"statistics by trajectory over turns",
			[]func(*Method){turns, func(m *Method) { m.Advantage.Params["stats"] = "per_trajectory" }}, "", "",
		},
		{
			"rloo by trajectory",
			[]func(*Method){
				turns,
				estimator("rloo"),
				func(m *Method) { m.Advantage.Params["stats"] = "per_trajectory" },
			},
			"advantage.stats", "rloo (advantage.name)",
		},
		{
			"gae as older releases have it",
			[]func(*Method){
				estimator("gae"),
				func(m *Method) { m.Advantage.Params = choice.Params{"returns": "reset"} }, critic,
			},
			"advantage.returns", "gae (advantage.name)",
		},
		{
			"a turn's penalty without turns",
			[]func(*Method){func(m *Method) { m.Advantage.Params["invalid_penalty"] = 0.1 }},
			"advantage.invalid_penalty", "needs layout: turns",
		},
		{"entropy-aware gae", []func(*Method){estimator("gae"), func(m *Method) {
			critic(m)
			m.Advantage.EntropyAware = &EntropyAware{}
		}}, "advantage.entropy_aware", "gae gives each token its own (advantage.name)"},
		{
			"entropy-aware empg",
			[]func(*Method){estimator("empg"), turns, func(m *Method) { m.Advantage.EntropyAware = &EntropyAware{} }},
			"advantage.entropy_aware",
			"empg does so already",
		},
		{"entropy-aware grpo", []func(*Method){func(m *Method) { m.Advantage.EntropyAware = &EntropyAware{} }}, "", ""},
		{
			"dual clip inside", []func(*Method){func(m *Method) { m.Loss.Params["dual_clip"] = 1.0 }}, "loss.dual_clip",
			"> 1, got 1",
		},
		{
			"gspo with token advantages",
			[]func(*Method){estimator("reinforce_pp"), func(m *Method) { m.Loss.Name, m.Loss.Params = "gspo", nil }},
			"loss.name", "advantage.name reinforce_pp they differ by token; use gspo_token",
		},
		{
			"gspo with entropy-aware advantages",
			[]func(*Method){
				func(m *Method) { m.Loss.Name, m.Loss.Params, m.Advantage.EntropyAware = "gspo", nil, &EntropyAware{} },
			},
			"loss.name", "advantage.entropy_aware",
		},
		{
			"gspo_token with token advantages",
			[]func(*Method){
				estimator("reinforce_pp"),
				func(m *Method) { m.Loss.Name, m.Loss.Params = "gspo_token", nil },
			},
			"", "",
		},
		{
			"gspo with a token's clip",
			[]func(*Method){func(m *Method) { m.Loss.Name, m.Loss.Params = "gspo", choice.Params{"clip_high": 1.0} }},
			"loss.clip_high", "loss.name gspo",
		},
		{"an empty band of covariance", []func(*Method){func(m *Method) {
			m.Loss.Name, m.Loss.Params = "clip_cov", choice.Params{"cov_low": 5.0, "cov_high": 5.0}
		}}, "loss.cov_low", "below loss.cov_high (5)"},
		{
			"a sequence mask with a sequence clip",
			[]func(*Method){func(m *Method) {
				m.Loss.Name, m.Loss.Params = "gspo", nil
				term("sequence_mask", &loss.SequenceMaskSettings{})(m)
			}},
			"loss.sequence_mask", "gspo's own clip (loss.name)",
		},
		{
			"tis without two log-probabilities", []func(*Method){term("tis", &loss.TIS{Cap: 2})}, "loss.tis",
			"loss.old_log_probs: rollout they are the same; use recompute",
		},
		{
			"tis with two", []func(*Method){func(m *Method) {
				m.Loss.OldLogProbs = "recompute"
				term("tis", &loss.TIS{Cap: 2})(m)
			}},
			"", "",
		},
		{
			"KL in a trajectory's reward", []func(*Method){kl("reward")}, "loss.kl.in",
			"advantage.name grpo reads one reward",
		},
		{"KL in tokens' rewards", []func(*Method){kl("reward"), estimator("reinforce_pp")}, "", ""},
		{
			"a reference that nothing reads",
			[]func(*Method){term("reference", &loss.ReferenceSettings{RefreshEvery: 5})},
			"loss.reference", "add loss.kl",
		},
		{
			"a reference that follows",
			[]func(*Method){kl("loss"), term("reference", &loss.ReferenceSettings{RefreshEvery: 5})}, "", "",
		},
		{
			"dynamic with VSPO",
			[]func(*Method){rule("dynamic", &resample.DynamicSampling{}), rule("vspo", &resample.VSPO{})},
			"resample.dynamic", "cannot be combined with resample.vspo",
		},
		{
			"reject_equal with VSPO",
			[]func(*Method){rule("reject_equal", true), rule("vspo", &resample.VSPO{})},
			"resample.reject_equal", "cannot be combined with resample.vspo",
		},
		{
			"reject_equal with dynamic",
			[]func(*Method){rule("reject_equal", true), rule("dynamic", &resample.DynamicSampling{})},
			"resample.reject_equal", "cannot be combined with resample.dynamic",
		},
		{
			"low_variance with VSPO",
			[]func(*Method){rule("low_variance", &resample.LowVariance{}), rule("vspo", &resample.VSPO{})},
			"resample.low_variance", "cannot be combined with resample.vspo",
		},
		{
			"dynamic, low_variance and RoC",
			[]func(*Method){
				rule("dynamic", &resample.DynamicSampling{}), rule("low_variance", &resample.LowVariance{}),
				rule("roc", &resample.RoC{}),
			},
			"", "",
		},
		{
			"replay without group means",
			[]func(*Method){estimator("reinforce_pp"), func(m *Method) { m.Replay = &Replay{} }}, "replay",
			"advantage.name reinforce_pp does not form",
		},
		{
			"an empty band in replay",
			[]func(*Method){func(m *Method) { m.Replay = &Replay{CovRatio: 0.02, CovLow: 60, CovHigh: 2} }},
			"replay.cov_low", "below replay.cov_high (2)",
		},
		{
			"γ without replay", []func(*Method){scheduling("gamma_horizon", 100)},
			"schedule.gamma_horizon", "add replay",
		},
		{
			"μ without a tool term", []func(*Method){scheduling("mu_horizon", 100)},
			"schedule.mu_horizon", "reward.name rstar2_outcome has none",
		},
		{
			"μ with a tool term",
			[]func(*Method){scheduling("mu_horizon", 100), func(m *Method) { m.Reward.Name = "spear" }}, "", "",
		},
		{
			"stages that fall",
			[]func(*Method){scheduling("stages", []schedule.Stage{{FromStep: 1}, {FromStep: 9}, {FromStep: 9}})},
			"schedule.stages", "got 9 after 9",
		},
		{
			"stages that rise",
			[]func(*Method){scheduling("stages", []schedule.Stage{{FromStep: 1}, {FromStep: 9}})},
			"", "",
		},
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
	err := plain(
		estimator("gae"), func(m *Method) { m.Loss.Params["dual_clip"] = 0.5; term("tis", &loss.TIS{Cap: 2})(m) },
	).Validate()
	require.ErrorContains(t, err, "advantage.name: ")
	require.ErrorContains(t, err, "loss.dual_clip: ")
	require.ErrorContains(t, err, "loss.tis: ")
}

func TestPicks(t *testing.T) {
	require.Equal(t, []Pick{
		{"layout", "trajectory"}, {"advantage.name", "grpo"}, {"loss.name", "ppo_clip"}, {
			"loss.aggregation", "token-mean",
		},
		{"loss.old_log_probs", "rollout"}, {"reward.name", "rstar2_outcome"},
	}, plain().Picks())
	m := plain(turns, estimator("gigpo"), func(m *Method) {
		m.Advantage.Params["anchors"] = "exact"
		term("kl", &loss.KLSettings{In: "loss", Controller: "fixed"})(m)
		term("entropy", 0.01)(m)
		rule("reject_equal", true)(m)
		m.Filters.Params = choice.Params{"overlong": false, "repetition": &resample.Repetition{}}
		m.Replay = &Replay{Recalibrate: "p50"}
		m.Schedule = &Schedule{choice.Params{"gamma_horizon": 3, "stages": []schedule.Stage{}}}
	})
	picks := m.Picks()
	for _, want := range []Pick{
		{"layout", "turns"}, {"advantage.anchors", "exact"}, {"loss.kl.in", "loss"}, {
			"loss.kl.controller", "fixed",
		}, {"loss.entropy", On},
		{"resample.reject_equal", On}, {"filters.repetition", On}, {"replay.recalibrate", "p50"},
		{"schedule.gamma_horizon", On},
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
		"critic": {
			func(m *Method) { m.Advantage.Name = "gae"; critic(m) }, Needs{Values: true}, true,
		},
		"turn rows": {turns, Needs{TurnRows: true}, false},
		"empg": {
			func(m *Method) { m.Advantage.Name, m.Layout = "empg", Turns }, Needs{Entropies: true, TurnRows: true},
			true,
		},
		"AEPO": {func(m *Method) { m.Advantage.EntropyAware = &EntropyAware{} }, Needs{Entropies: true}, true},
		"clip_cov": {
			func(m *Method) { m.Loss.Name, m.Loss.Params = "clip_cov", nil }, Needs{Minibatch: true}, false,
		},
		"recomputed": {func(m *Method) { m.Loss.OldLogProbs = "recompute" }, Needs{OldLogProbs: true}, true},
		"tis": {
			func(m *Method) { m.Loss.OldLogProbs = "recompute"; term("tis", &loss.TIS{})(m) },
			Needs{OldLogProbs: true, RolloutLogProbs: true}, true,
		},
		"KL":          {func(m *Method) { term("kl", &loss.KLSettings{In: "loss"})(m) }, Needs{Reference: true}, true},
		"entropy":     {term("entropy", 0.01), Needs{CurrentEntropies: true}, false},
		"replay":      {func(m *Method) { m.Replay = &Replay{Recalibrate: "p50"} }, Needs{Replay: true}, false},
		"nothing new": {rule("roc", &resample.RoC{}), Needs{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := plain(c.change).Needs()
			require.Equal(t, c.want, n)
			require.Equal(t, c.forward, n.Forward())
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
				require.Equal(
					t, j, slices.IndexFunc(c.Params, func(q Param) bool { return q.Name == p.Name }),
					"%s %s reads %s twice", s.Name, c.Name, p.Name,
				)
			}
		}
	}
	for _, p := range Pipeline() {
		_, ok := p.choice()
		require.True(t, ok, "%v is in the pipeline and not in the table", p)
	}
}

func TestDesign(t *testing.T) {
	require.Equal(t, map[Dimension]string{
		LossAggregation: "token-mean", ImportanceClip: "ppo_clip −0.2/+0.28", DynamicFiltering: "none",
		AdvantageDesign: "grpo",
	}, plain().Design())
	m := plain(turns, estimator("gigpo"), func(m *Method) {
		m.Advantage.Params["std"] = false
		m.Advantage.EntropyAware, m.Replay = &EntropyAware{}, &Replay{}
		m.Loss = Loss{
			Name: "gspo", Params: choice.Params{"clip_low": 3e-3, "clip_high": 4e-3},
			Aggregation: "seq-mean-token-mean",
			Terms:       choice.Params{"sequence_mask": &loss.SequenceMaskSettings{Delta: 3e-3}},
		}
		m.Resample = Resample{choice.Params{
			"dynamic": &resample.DynamicSampling{Tries: 3}, "low_variance": &resample.LowVariance{Keep: 0.75},
			"roc": &resample.RoC{Keep: 8}, "reject_equal": true,
		}}
	})
	require.Equal(t, map[Dimension]string{
		LossAggregation: "seq-mean-token-mean", ImportanceClip: "gspo −0.003/+0.004 + sequence mask 0.003",
		DynamicFiltering: "dynamic, 3 tries → equal rewards rejected → most varied 0.75 → RoC 8",
		AdvantageDesign:  "gigpo without std × entropy + replay",
	}, m.Design())
	for name, want := range map[string]string{"sapo": "sapo τ 1/1.05", "kl_cov": "kl_cov 0.002 of the tokens"} {
		m := plain(func(m *Method) { m.Loss = Loss{Name: name} })
		require.Equal(t, want, m.Design()[ImportanceClip])
	}
	m.Resample = Resample{choice.Params{"vspo": &resample.VSPO{}}}
	m.Loss = Loss{Name: "ppo_clip", Params: choice.Params{"clip_low": 0.2, "clip_high": 0.28, "dual_clip": 3.0}}
	require.Equal(t, "VSPO", m.Design()[DynamicFiltering])
	require.Equal(t, "ppo_clip −0.2/+0.28 dual 3", m.Design()[ImportanceClip])
	require.Equal(t, "none", Method{}.Design()[ImportanceClip])
}
