package view_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/view"
)

// TestConditions accepts conditions about the columns of one row, and refuses those that decide how much they cost.
func TestConditions(t *testing.T) {
	for _, where := range []string{
		"turns > 2 and group_variance > 0", "tool_calls = 0 -- and so on (select", "'ok' in statuses and fate='kept'",
		"not (reward between 0 and (1))", "LENGTH (text) > 100 or problem ilike '%select repeat(%'",
		`"from" = 1`, "answer = 'it''s (from)'", "case when(reward > 0) then (level) else 2 end = 2",
		"cast(level as decimal(3, 1)) > 1.5", "level::int % 2 = 1", "text /* from (x) */ is not null",
		"'ok' = any(statuses)",
		"list_contains(statuses, 'ok')", "regexp_matches(text, '(a|b)+')", "sch\u00f6n = 1",
	} {
		_, err := view.ParseFilter(url.Values{"where": {where}})
		require.NoError(t, err, where)
	}
	for where, want := range map[string]string{
		"(select count(*) from range(9999999999)) > 0": "cannot hold select",
		"exists(from range(9))":                        "cannot call exists",
		"text in (FROM x)":                             "cannot hold from",
		"repeat('x', 4000000000) = ''":                 "cannot call repeat",
		"REPEAT ('x', 4000000000) = ''":                "cannot call repeat",
		"repeat/* */('x', 4000000000) = ''":            "cannot call repeat",
		"repeat--\n('x', 4000000000) = ''":             "cannot call repeat",
		`"repeat"('x', 4000000000) = ''`:               "cannot call repeat",
		"main.repeat('x', 9) = ''":                     "cannot call repeat",
		"text.repeat(4000000000) = ''":                 "cannot call repeat",
		"len(range(9999999999)) > 0":                   "cannot call range",
		"len([x for x in text]) > 0":                   "cannot hold for",
		"true) union all (values (1)":                  "cannot hold union",
		"text || text = ''":                            "cannot hold ||",
		"lpad(text, 999999999, 'x') = ''":              "cannot call lpad",
		"$$a$$ = text":                                 "cannot hold $",
		"text = e'\\' or repeat(''x'', 9) = '":         "cannot read",
		"repeat\u200b('x', 9) = ''":                    "cannot read",
		"/* /* */ repeat('x', 9) = '' --*/":            "cannot read",
		"text = 'open":                                 "cannot read",
		"sum(reward) over () > 0":                      "cannot call sum",
		strings.Repeat("1 = 1 and ", 999) + "true":     "more than 4096",
	} {
		_, err := view.ParseFilter(url.Values{"where": {where}})
		require.ErrorContains(t, err, want, where)
	}
}
