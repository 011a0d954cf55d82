package recipes_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/recipes"
)

func TestPrivileged(t *testing.T) {
	for _, c := range []struct {
		recipe string
		set    []string
		want   []string
	}{
		{"quickstart", nil, nil},
		{"quickstart", []string{"rollout.protocol=hermes",
			`rollout.mcp=[{name: files, command: ["/bin/sh", "-c", "id"], repeat: pure}, ` +
				`{name: far, url: "http://127.0.0.1:1", headers: ["Authorization=Bearer ${env:KEY}"], repeat: pure}]`},
			[]string{"rollout.mcp files: /bin/sh -c id", "the secret ${env:KEY}"}},
		{"quickstart", []string{"reward.name=python", "reward.module=mine:score", "reward.path=/opt",
			"reward.kwargs='{}'"},
			[]string{"reward: Python mine:score /opt"}},
		{"presets/grpo-webshop", []string{"environment.settings.release=/data/WebShop"},
			[]string{"environment webshop: Python, WebShop's release /data/WebShop"}},
	} {
		r, err := recipes.Resolve(c.recipe, "", c.set, nil, nil)
		require.NoError(t, err, c.set)
		require.Equal(t, c.want, r.Recipe.Privileged(), c.set)
	}
}
