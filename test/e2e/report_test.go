package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
)

// The report of a real run has every figure and its trajectories' own tokens. If it cannot be written, no part of it is
// left behind.
func TestReport(t *testing.T) {
	h, _ := needs(t, sharedStack)
	file := filepath.Join(h.cwd, "report.html")
	r := h.run(t, "report", "base", "-o", file).ok(t)
	require.Empty(t, r.out)
	require.Contains(t, r.err, "wrote "+file)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Less(t, len(data), 5<<20)
	text := string(data)
	if keep := os.Getenv("ROPEWALK_REPORT_OUT"); keep != "" { // for looking at it
		require.NoError(t, os.WriteFile(filepath.Clean(keep), data, 0o644))
	}
	for _, why := range []string{"No step of", "No selection", "Nothing was evaluated", "No policy was",
		"No times of"} {
		require.False(t, strings.Contains(text, why), "figures have data: %s", why)
	}
	require.False(t, strings.Contains(text, "cannot be used"), "every diagnosis takes the record's numbers")
	require.GreaterOrEqual(t, strings.Count(text, "<svg "), 30)
	for _, id := range []string{"advantages", "gradients", "clipping", "validity", "tool-load", "value-scores",
		"hesitation", "anchors"} {
		require.True(t, strings.Contains(text, `id="figure-`+id+`"`), "the page lacks figure %s", id)
	}
	for _, part := range []string{"<h3>Step 1</h3>", "log-probability −", "entropy ", "advantage × weight",
		"A &gt; 0", ": ok</span>", "held-out success"} {
		require.True(t, strings.Contains(text, part), "the page lacks %q", part)
	}
	require.False(t, strings.Contains(text, "NaN"))

	require.Contains(t, h.run(t, "report", "base", "-o", file, "--gen", "all").ok(t).err, "wrote")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"unknown run": {[]string{"report", "missing", "-o", file + "2"}, "no such run in the record: missing"},
		"unknown generation": {[]string{"report", "base", "-o", file + "2", "--gen", "7"},
			"no such generation in the record: generation 7 of run base"},
		"unwritable target": {[]string{"report", "base", "-o", filepath.Join(h.cwd, "no", "r.html")},
			"a file cannot be made in"},
	} {
		t.Run(name, func(t *testing.T) {
			r := h.run(t, c.args...)
			require.Equal(t, 2, r.code, r.err)
			require.Contains(t, r.err, c.want)
			require.NoFileExists(t, file+"2")
			left, err := filepath.Glob(filepath.Join(h.cwd, ".ropewalk-*"))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// Everything that a real run committed can be inspected by its key, or as the file that it is.
func TestInspect(t *testing.T) {
	h, _ := needs(t, sharedStack)
	one := func(prefix, suffix string) string {
		for _, key := range h.record().keys(schema.RunPrefix("base") + prefix) {
			if strings.HasSuffix(key, suffix) {
				return key
			}
		}
		t.Fatalf("the run has no %s…%s", prefix, suffix)
		return ""
	}
	for _, c := range []struct{ key, want string }{
		{one("table=turns/step=1/", ".parquet"), "logprobs.list.element"},
		{one("table=batch/step=1/", ".arrow"), "old_logprobs"},
		{one("manifests/step=1/reward/", "shard=0/gen=0.json"), `"stage": "reward"`},
		{schema.HeadKey("base", "1"), "resample"},
		{one("checkpoints/", "model.safetensors"), "model.embed_tokens.weight"},
		{schema.CatalogueKey("base"), `"recipe": "tiny"`},
	} {
		t.Run(c.key, func(t *testing.T) {
			require.Contains(t, h.run(t, "inspect", c.key).ok(t).out, c.want)
			var got struct{ Digest string }
			require.NoError(t, json.Unmarshal([]byte(h.run(t, "inspect", h.record().path(c.key), "--json").ok(t).out),
				&got))
			data, err := os.ReadFile(h.record().path(c.key))
			require.NoError(t, err)
			require.Equal(t, schema.Digest(data), got.Digest)
		})
	}
	r := h.run(t, "inspect", "runs/run=base/nothing")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.err, "runs/run=base/nothing: is neither a local file nor a key of")
}
