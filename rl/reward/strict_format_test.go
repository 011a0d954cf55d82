package reward

import (
	"regexp"
	"strings"
	"testing"
)

// strictExpression is the form as a regular expression, for texts without white space beyond ASCII.
var strictExpression = regexp.MustCompile(
	`^[\s\x0b\x1c-\x1f]*<(?:[tT][hH][iI][nN][kK])>(?s:(.*?))</(?:[tT][hH][iI][nN][kK])>[\s\x0b\x1c-\x1f]*` +
		`<(?:[aA][cC][tT][iI][oO][nN])>(?s:(.*?))</(?:[aA][cC][tT][iI][oO][nN])>[\s\x0b\x1c-\x1f]*$`,
)

func TestStrictForm(t *testing.T) {
	tests := []struct {
		text, action string
		ok           bool
	}{
		{"<think>a</think><action>go</action>", "go", true},
		{"\n<think>\na\n</think>\n\n<action> Go Up </action>\n", " Go Up ", true},
		{"<THINK></Think><aCtion></ACTION>", "", true},
		{"x<think>a</think><action>go</action>", "", false},
		{"<think>a</think>x<action>go</action>", "", false},
		{"<action>go</action><think>a</think>", "", false},
		{"</think><think><action>go</action>", "", false},
		{"<think>a</think></action>go<action>", "", false},
		{"<think>a<action>b</action></think>", "", false},
		{"<think>a</think><action>go</action></action>", "", false},
		{"<think>a</think><action>走</action>", "", false},
		{"<think>é ñ 한</think><action>go</action>", "go", true},
		{"<think>\xff</think><action>\xfe</action>", "\xfe", true},
		{"", "", false},
	}
	for _, tt := range tests {
		action, ok := StrictForm(tt.text)
		if action != tt.action || ok != tt.ok {
			t.Errorf("%q: %q, %v", tt.text, action, ok)
		}
	}
}

func TestExtractAction(t *testing.T) {
	tests := []struct {
		text string
		want Action
	}{
		{"<think>a</think><action> Open Fridge 1 </action>", Action{"open fridge 1", true}},
		{"<action>Go</action>", Action{"go", false}},
		{"<action>one</action><action>two</action>", Action{"one", false}},
		{"</action><ACTION>Two</action>", Action{"two", false}},
		{"I think that I should Open The Fridge Now, Please ", Action{"d open the fridge now, please", false}},
		{"日本語" + strings.Repeat("ü", 30), Action{strings.Repeat("ü", 30), false}},
		{"Ok", Action{"ok", false}},
		{"", Action{}},
		{"<action>open", Action{"<action>open", false}},
	}
	for _, tt := range tests {
		if got := ExtractAction(tt.text); got != tt.want {
			t.Errorf("%q: %+v, want %+v", tt.text, got, tt.want)
		}
	}
}

func FuzzStrictForm(f *testing.F) {
	for _, seed := range []string{
		"<think>a</think><action>b</action>", " <THINK></think>\n<Action>x</action>\v",
		"<think><think></think><action></action>",
		"<think>a</think><action>b</action>x", "<action></action><think></think>",
		"\xff<think></think><action></action>", "<thin\u212a></think><action></action>",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		action, ok := StrictForm(text)
		lower := lowerASCII(text)
		if ok {
			for _, tag := range []string{thinkOpen, thinkClose, actionOpen, actionClose} {
				if strings.Count(lower, tag) != 1 {
					t.Errorf("%q is strict with %d %s", text, strings.Count(lower, tag), tag)
				}
			}
			if first := Blocks(lower, "action"); len(first) == 0 || first[0].Content != lowerASCII(action) {
				t.Errorf("%q: strict action %q, blocks %+v", text, action, first)
			}
		}
		once := true
		for _, tag := range []string{thinkOpen, thinkClose, actionOpen, actionClose} {
			once = once && strings.Count(lower, tag) == 1
		}
		if ascii(text) && ok != (once && strictExpression.MatchString(text)) {
			t.Errorf("%q: strict %v, by its expression %v", text, ok, !ok)
		}
		a := ExtractAction(text)
		if a.Strict != ok || a.Text != normalizeAction(a.Text) {
			t.Errorf("%q: %+v", text, a)
		}
	})
}

func ascii(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= 0x80 })
}
