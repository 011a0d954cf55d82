package words

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCalls(t *testing.T) {
	const golds = `[{"area": {"base": [10], "unit": ["units", ""]}}, {"at": {"place": ["Paris, France"], ` +
		`"box": [{"w": [1, 2], "tag": ["x", ""]}], "ids": [[9007199254740993, 2]]}}]`
	const at = `{"name": "at", "arguments": {"place": "paris france", "box": {"w": 2}, "ids": [9007199254740993, 2]}}`
	area := func(arguments string) string { return `{"name": "area", "arguments": ` + arguments + `}` }
	for answer, want := range map[string][2]bool{
		"[" + area(`{"base": 10}`) + "," + at + "]":                    {true, true},
		"[" + at + "," + area(`{"base": 10.0, "unit": "Units"}`) + "]": {true, true},
		"[" + at + "," + area(`{"base": 10, "unit": "cm"}`) + "]":      {true, false},
		"[" + at + "," + area(`{"base": "10"}`) + "]":                  {true, false},
		"[" + at + "," + area(`{"unit": "units"}`) + "]":               {true, false},
		"[" + at + "," + area(`{"base": 10, "height": 1}`) + "]":       {true, false},
		"[" + at + "," + area(`"{base: 10}"`) + "]":                    {true, false},
		"[" + at + "," + at + "]":                                      {true, false},
		"[" + at + "]":                                                 {true, false},
		"[]":                                                           {true, false},
		"null":                                                         {false, false},
		"area(10)":                                                     {false, false},
		`[` + area(`{"base": 10}`) + `,{"name": "at", "arguments": {"box": {"w": 3}}}]`: {true, false},
		`[` + area(`{"base": 10}`) + `,{"name": "at", "arguments": {"place": "Paris, France", "box": {"w": 1},` +
			`"ids": [9007199254740992, 2]}}]`: {true, false},
		`[` + area(`{"base": 1e400}`) + "," + at + "]": {true, false},
	} {
		valid, right := Calls(answer, golds)
		require.Equal(t, want, [2]bool{valid, right}, answer)
	}
	_, right := Calls("[]", "[]")
	require.True(t, right, "no call is wanted, and none is made")
}
