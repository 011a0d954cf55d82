package loss

import (
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// Every declaration makes the loss that it names, with sound defaults and a sound example.
func TestDeclarations(t *testing.T) {
	for _, d := range Declarations() {
		if err := d.check(); err != nil {
			t.Error(err)
		}
		for _, r := range d.Rules {
			if fault := r.Fault(choice.Values(d.Settings)); fault != "" {
				t.Errorf("%s: its defaults break its rule at %s: %s", d.Name, r.Param, fault)
			}
		}
	}
}

func TestNewTakesParameters(t *testing.T) {
	s, err := New("ppo_clip", choice.Params{"clip_high": 0.3, "dual_clip": 3.0})
	if want := (PPOClip{Low: 0.2, High: 0.3, Dual: 3}); err != nil || s != want {
		t.Errorf("got %#v and %v, want %#v", s, err, want)
	}
	s, err = New("clip_cov", choice.Params{"cov_scope": "group"})
	cov, _ := s.(ClipCov)
	if err != nil || cov.Rule.Scope != ScopeGroup || !cov.Rule.PerRow {
		t.Errorf("got %#v and %v, want a budget for each row", s, err)
	}
	for want, of := range map[string]struct {
		name   string
		params choice.Params
	}{
		`loss "no_such" is not implemented; there are ppo_clip, `: {"no_such", nil},
		"loss sapo: no parameter clip_low": {
			"sapo", choice.Params{"clip_low": 0.2},
		},
		"loss ppo_clip: parameter clip_low must be float64, got low": {
			"ppo_clip", choice.Params{"clip_low": "low"},
		},
		"loss clip_cov: parameter cov_scope must be loss.CovarianceScope, got": {
			"clip_cov", choice.Params{"cov_scope": 1.0},
		},
	} {
		if _, err := New(of.name, of.params); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
}

func TestDescribe(t *testing.T) {
	for want, of := range map[string]struct {
		name   string
		params choice.Params
	}{
		"ppo_clip −0.2/+0.28":        {"ppo_clip", nil},
		"ppo_clip −0.2/+0.28 dual 3": {"ppo_clip", choice.Params{"dual_clip": 3.0}},
		"gspo −0.003/+0.004":         {"gspo", nil},
		"sapo τ 1/1.05":              {"sapo", nil},
		"kl_cov 0.002 of the tokens": {"kl_cov", nil},
		"gpg":                        {"gpg", nil},
	} {
		d, _ := Declared(of.name)
		if got, err := d.Describe(of.params); err != nil || got != want {
			t.Errorf("got %q and %v, want %q", got, err, want)
		}
	}
}
