package recipes

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	judgeSet = "judge={url: 'http://127.0.0.1:8000/v1', model: judge-7b, key: '${env:JUDGE_KEY}'}"
	longSet  = "reward={name: prs_long, judge: server}"
)

// A recipe's judge survives its canonical form, and recipes without one keep theirs.
func TestJudgeOfARecipe(t *testing.T) {
	plain := resolved(t, "searchqa")
	require.NotContains(t, string(plain.JSON), "judge")
	with := resolved(t, "searchqa", longSet, judgeSet)
	again, err := ParseCommitted("f", with.JSON, nil)
	require.NoError(t, err)
	require.Equal(t, &Judge{URL: "http://127.0.0.1:8000/v1", Model: "judge-7b", Key: "${env:JUDGE_KEY}", MaxTokens: 16,
		Seconds: 60, Attempts: 5, Concurrency: 8}, again.Judge)
	require.True(t, with.Recipe.Needs().Judge)
	require.False(t, plain.Recipe.Needs().Judge)
	require.Empty(t, with.Recipe.Unset())
}

func TestRecipesThatNeedAJudge(t *testing.T) {
	for name, c := range map[string]struct {
		recipe string
		set    []string
		want   int // sections that are missing
	}{
		"exact match":            {"searchqa", []string{"reward={name: prs_long}"}, 0},
		"server":                 {"searchqa", []string{longSet}, 1},
		"general":                {"searchqa", []string{"reward={name: prs_general, judge: server}"}, 1},
		"research by F1":         {"presets/aepo", nil, 0},
		"research by a judge":    {"presets/aepo", []string{"reward.judged=true"}, 1},
		"evaluation":             {"searchqa", []string{"evaluation.judged=true"}, 1},
		"evaluation and reward":  {"searchqa", []string{longSet, "evaluation.judged=true"}, 2},
		"evaluation, with judge": {"searchqa", []string{"evaluation.judged=true", judgeSet}, 0},
		"prs-long":               {"presets/prs-long", nil, 1},
		"prs-long, with judge":   {"presets/prs-long", []string{judgeSet}, 0},
		"prs-general":            {"presets/prs-general", nil, 1},
	} {
		unset := resolved(t, c.recipe, c.set...).Recipe.Unset()
		require.Len(t, unset, c.want, name)
		for _, text := range unset {
			require.Regexp(t, "^judge: is required, for ", text, name)
		}
	}
}

// A judge that nothing asks is said before a run begins; recipes that have one are read nevertheless.
func TestAJudgeThatNothingAsks(t *testing.T) {
	for want, set := range map[int][]string{0: {longSet, judgeSet}, 1: {judgeSet}} {
		idle := resolved(t, "searchqa", set...).Recipe.Idle()
		require.Len(t, idle, want)
		for _, text := range idle {
			require.Contains(t, text, "judge: nothing asks it")
		}
	}
	require.Empty(t, resolved(t, "searchqa").Recipe.Idle())
	require.Empty(t, resolved(t, "searchqa", judgeSet, "evaluation.judged=true").Recipe.Idle())
}

func TestJudgesThatARecipeCannotHave(t *testing.T) {
	for set, message := range map[string]string{
		"judge={url: 'http://h/v1'}":                         "judge.model: is required",
		"judge={model: m}":                                   "judge.url: is required",
		"judge={url: h, model: m}":                           "url: must be an address that begins with",
		"judge={url: 'ftp://h', model: m}":                   "url: must be an address that begins with",
		"judge={url: 'http://me:pw@h', model: m}":            "url: must hold no user and password",
		"judge={url: 'http://h/v1?key=1', model: m}":         "url: must end with a path",
		"judge={url: 'http://h', model: m, key: sk-1234567}": "key: must be a reference to a secret",
		"judge={url: 'http://h', model: m, key: '${x:y}'}":   "key: a reference to a secret is",
		"judge={url: 'http://h', model: m, seconds: 0}":      "judge.seconds: must be > 0",
		"judge={url: 'http://h', model: m, attempts: 0}":     "judge.attempts: must be ≥ 1",
		"judge={url: 'http://h', model: m, temperature: 3}":  "judge.temperature: must be ≤ 2",
		"judge={url: 'http://h', model: m, secret: 1}":       "judge.secret: no such field",
		"reward.judge=oracle":                                "must be one of exact, server",
	} {
		_, err := Resolve("searchqa", "", []string{longSet, judgeSet, set}, nil, nil)
		require.ErrorContains(t, err, message, set)
		require.NotContains(t, err.Error(), "sk-1234567", set)
	}
	_, err := Resolve("sokoban", "", []string{"evaluation.judged=true", judgeSet}, nil, nil)
	require.ErrorContains(t, err, "has no place in a recipe of sokoban")
	_, err = Resolve("presets/aepo", "", []string{"rollout.protocol=rstar2"}, nil, nil)
	require.ErrorContains(t, err, "deep_research reads searches, programs and their results in tags")
}
