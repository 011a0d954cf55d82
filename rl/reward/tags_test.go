package reward

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
)

func TestBlocks(t *testing.T) {
	tests := []struct {
		name, text string
		tags       []string
		want       []Block
	}{
		{"none", "text", []string{"a"}, nil},
		{"nothing", "", []string{"a"}, nil},
		{"no tags", "<a>x</a>", nil, nil},
		{"one", "1<a>x</a>2", []string{"a"}, []Block{{"a", "x", 1, 9}}},
		{"empty", "<a></a>", []string{"a"}, []Block{{"a", "", 0, 7}}},
		{"two names in order", "<b>y</b><a>x</a>", []string{"a", "b"}, []Block{{"b", "y", 0, 8}, {"a", "x", 8, 16}}},
		{"content keeps tags", "<a><b>y</b></a>", []string{"a", "b"}, []Block{{"a", "<b>y</b>", 0, 15}}},
		{"first closing counts", "<a>x<a>y</a>z</a>", []string{"a"}, []Block{{"a", "x<a>y", 0, 12}}},
		{"unclosed outside is skipped", "<b><a>x</a>", []string{"a", "b"}, []Block{{"a", "x", 3, 11}}},
		{"closing alone", "</a><a>x</a>", []string{"a"}, []Block{{"a", "x", 4, 12}}},
		{"case counts", "<A>x</A>", []string{"a"}, nil},
		{"names are whole", "<ab>x</ab>", []string{"a"}, nil},
		{"two of one name", "<a>1</a> <a>2</a>", []string{"a"}, []Block{{"a", "1", 0, 8}, {"a", "2", 9, 17}}},
	}
	for _, tt := range tests {
		if got := Blocks(tt.text, tt.tags...); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestWrapped(t *testing.T) {
	tags := []string{"reasoning", "tool_call", "answer"}
	tests := []struct {
		text string
		want bool
	}{
		{
			"<reasoning>x</reasoning>\n<tool_call>{}</tool_call>", true,
		}, {" <answer>x</answer> ", true}, {"<reasoning></reasoning>", true},
		{"", false}, {"text", false}, {
			"<reasoning>x</reasoning> and <answer>y</answer>", false,
		}, {"x<answer>y</answer>", false}, {"<answer>y</answer>x", false},
		{"<reasoning>x<answer>y</answer></reasoning>", false}, {
			"<answer>y</answer></answer>", false,
		}, {"<reasoning>x", false}, {"<reasoning>x</answer></reasoning>", false},
	}
	for _, tt := range tests {
		if got := Wrapped(tt.text, tags...); got != tt.want {
			t.Errorf("%q: %v", tt.text, got)
		}
	}
}

func FuzzBlocks(f *testing.F) {
	for _, seed := range []string{"<a>x</a>", "<a><b></a></b>", "<a><a></a></a>", "<b><b><a>", "</a><a>",
		"<tool_call>{\"name\":1}</tool_call>", "<\xff<a>\xff</a>"} {
		f.Add(seed)
	}
	one := regexp.MustCompile(`(?s)<a>(.*?)</a>`)
	f.Fuzz(func(t *testing.T, text string) {
		at := 0
		for _, b := range Blocks(text, "a", "b") {
			if b.Start < at || b.End > len(text) || text[b.Start:b.End] != "<"+b.Tag+">"+b.Content+"</"+b.Tag+">" {
				t.Fatalf("%q: block %+v", text, b)
			}
			if at = b.End; strings.Contains(b.Content, "</"+b.Tag+">") {
				t.Errorf("%q: block %+v goes on behind its closing tag", text, b)
			}
		}
		var want, got []string
		for _, b := range Blocks(text, "a") {
			got = append(got, b.Content)
		}
		for _, m := range one.FindAllStringSubmatch(text, -1) {
			want = append(want, m[1])
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: contents %q, want %q", text, got, want)
		}
		if Wrapped(text, "a") &&
			(strings.Count(text, "<a>") != len(want) || strings.Count(text, "</a>") != len(want) || len(want) == 0) {
			t.Errorf("%q is wrapped, in %d blocks", text, len(want))
		}
	})
}

func FuzzLastBoxed(f *testing.F) {
	for _, seed := range []string{`\boxed{42}`, `\boxed{1} \boxed{\frac{1}{2}}`, `\boxed{`, `\boxed{a{b}c} x}`,
		`<answer>\boxed{}</answer>`, "<answer><answer>\\boxed{\xff}</answer>"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if box, ok := LastBoxed(text); ok {
			if !strings.Contains(text, boxOpen+box+"}") || strings.Count(box, "{") != strings.Count(box, "}") ||
				strings.Contains(box, boxOpen) {
				t.Errorf("%q: box %q", text, box)
			}
		} else if box != "" {
			t.Errorf("%q: no box, and %q", text, box)
		}
		if block, ok := LastAnswer(text); ok && (!strings.Contains(
			text, answerOpen+block+answerClose,
		) || strings.Contains(block, answerOpen)) {
			t.Errorf("%q: answer %q", text, block)
		}
		if o := Grade(text, "1", Options{Fallback: true}); o.Answer != "" && !strings.Contains(text, o.Answer) {
			t.Errorf("%q: graded %q", text, o.Answer)
		}
	})
}

// Texts that repeat what scanners look for cost what their length does: 128 KiB of each are read in some hundredths of
// a second, where going back from each place would take minutes, and the test hours.
func TestHostileTextsAreReadOnce(t *testing.T) {
	for _, piece := range []string{
		"<think>", "</think>", "<action>", "</action>", "<answer>", "</answer>", "<search>", "<search></search>",
		"<python>", "<result>", "<search>q</search><result>",
		"<think></think><action></action>", "<think>a</think>\n", "<", " ", "\t\n", `\boxed{`, "Answer:", "answer ",
		"Answer: \n", "{", "}", "the ", "a", "\xff", "\u00a0", "我", "up ",
	} {
		text := strings.Repeat(piece, 1<<17/len(piece))
		StrictForm(text)
		ExtractAction(text)
		ReadResearch(text)
		Blocks(text, "think", "search", "answer")
		Wrapped(text, "think", "action")
		for _, out := range []Outcome{DAPOStrict(text, "1"), DAPOMinerva(text, "1")} {
			if out.Reward != -1 {
				t.Errorf("%q: %+v", piece, out.Verdict)
			}
		}
		if s, err := (SearchR1{}).Reward(text, []string{"paris"}); err != nil || s != 0 {
			t.Errorf("%q: Search-R1 gives %g, %v", piece, s, err)
		}
		if s, err := (DeepResearch{}).Score(Trajectory{Text: text, Gold: "paris"}, Outcome{}); err != nil || s != -1 {
			t.Errorf("%q: deep research gives %g, %v", piece, s, err)
		}
		if s := (BLEU{}).ScoreText(text, []string{"paris", text[:1000]}); s < 0 || s > 1 {
			t.Errorf("%q: BLEU %g", piece, s)
		}
	}
}
