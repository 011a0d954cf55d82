package shop

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The table was computed by thefuzz 0.22.1 with rapidfuzz 3.14.6.
func TestRatiosOfThefuzz(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "ratios.json"))
	require.NoError(t, err)
	var table [][]any
	require.NoError(t, json.Unmarshal(text, &table))
	require.Greater(t, len(table), 80)
	for _, row := range table {
		require.InDelta(t, row[2], tokenSetRatio(row[0].(string), row[1].(string)), 0, "%q and %q", row[0], row[1])
		require.InDelta(t, row[2], tokenSetRatio(row[1].(string), row[0].(string)), 0, "%q and %q", row[1], row[0])
	}
}

// texts returns pairs of texts: words of the shop, changed words, and characters of other scripts.
func texts(n int) (out [][2]string) {
	rng := rand.New(rand.NewPCG(3, 5))
	all := append([]string{"pack of 2", "light blue", "5x7 ft", "a_b", "Ωmega", "日本 茶", "naïve café", "x²", "ß", "İ"},
		colors...)
	for _, f := range families {
		all = append(all, f.attributes...)
	}
	text := func() string {
		parts := some(rng, all, 1+rng.IntN(3))
		s := []rune(strings.Join(parts, pick(rng, []string{" ", "-", ", ", "  "})))
		for range rng.IntN(4) {
			s[rng.IntN(len(s))] = []rune("aeT -_9éΩ")[rng.IntN(9)]
		}
		return string(s)
	}
	for range n {
		a, b := text(), text()
		if rng.IntN(2) == 0 { // texts that share words
			b = a[:strings.LastIndex(" "+a, " ")] + " " + b
		}
		out = append(out, [2]string{a, b})
	}
	return out
}

// thefuzz, by which WebShop matches, gives the same ratios. `make test-worlds` installs it.
func TestThefuzzAgrees(t *testing.T) {
	python := os.Getenv("ROPEWALK_THEFUZZ_PYTHON")
	if python == "" {
		if os.Getenv("ROPEWALK_REQUIRE_THEFUZZ") != "" {
			t.Fatal("ROPEWALK_REQUIRE_THEFUZZ is set, but ROPEWALK_THEFUZZ_PYTHON names no Python")
		}
		t.Skip("ROPEWALK_THEFUZZ_PYTHON names no Python with thefuzz; make test-worlds makes one")
	}
	pairs := texts(5000)
	input, err := json.Marshal(pairs)
	require.NoError(t, err)
	run := exec.CommandContext(t.Context(), python, filepath.Join("testdata", "thefuzz_ratios.py"))
	run.Stdin, run.Stderr = bytes.NewReader(input), os.Stderr
	text, err := run.Output()
	require.NoError(t, err)
	var want []int
	require.NoError(t, json.Unmarshal(text, &want))
	require.Len(t, want, len(pairs))
	partial := 0
	for i, p := range pairs {
		require.Equal(t, want[i], tokenSetRatio(p[0], p[1]), "%q and %q", p[0], p[1])
		if want[i] > 0 && want[i] < 100 {
			partial++
		}
	}
	require.Greater(t, partial, len(pairs)/4)
	t.Logf("%d pairs agree, %d of them between 0 and 100", len(pairs), partial)
}

// No two attributes of the shop, and no two values of an option, mean the same, except the sizes that contain another.
func TestTheWordsOfTheShopDiffer(t *testing.T) {
	differ := func(all []string) {
		for i, a := range all {
			for _, b := range all[:i] {
				require.LessOrEqual(t, tokenSetRatio(a, b), fuzzyMatch, "%q and %q", a, b)
			}
		}
	}
	for _, f := range families {
		differ(f.attributes)
		for _, o := range f.options {
			if o.name != "size" { // "x-large" has the word "large": so in WebShop
				differ(o.values)
			}
		}
	}
}
