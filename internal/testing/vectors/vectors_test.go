package vectors

import "testing"

func TestKind(t *testing.T) {
	tests := []struct{ id, inputs, want string }{
		{"loss/clip_higher_dual3", `{"kind":"ppo"}`, "loss/ppo"},
		{"loss_batch/ppo", `{"kind":"ppo"}`, "loss_batch/ppo"},
		{"adv/vspo/mixed", `{"T":0.1}`, "adv/vspo"},
		{"agg/microbatch", `{"loss":[]}`, "agg"},
		{"reward/last_boxed", `["a"]`, "reward/last_boxed"},
	}
	for _, tt := range tests {
		if got := (Case{ID: tt.id, Inputs: []byte(tt.inputs)}).Kind(); got != tt.want {
			t.Errorf("kind of %s = %s, want %s", tt.id, got, tt.want)
		}
	}
}

func TestLoadFindsTheFile(t *testing.T) {
	cases := Load(t)
	seen := map[string]bool{}
	for _, c := range cases {
		if c.ID == "" || len(c.Inputs) == 0 || len(c.Outputs) == 0 {
			t.Errorf("case %q is incomplete", c.ID)
		}
		if seen[c.ID] {
			t.Errorf("case %s occurs twice", c.ID)
		}
		seen[c.ID] = true
	}
	if len(cases) < 82 {
		t.Errorf("got %d cases, want at least 82", len(cases))
	}
}

func TestNear(t *testing.T) {
	if !Near(1+5e-7, 1) || !Near(1e6+0.5, 1e6) || Near(1+5e-6, 1) || Near(0, 1) {
		t.Error("tolerance is not 1e-6 absolute or relative")
	}
}
