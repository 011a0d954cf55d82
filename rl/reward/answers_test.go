package reward

import (
	_ "embed"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

//go:embed testdata/answers.tsv
var trickyAnswers string

// A policy is optimised against the grader: it finds every answer that is wrong and graded right.
func TestTrickyAnswers(t *testing.T) {
	graded := map[bool]int{}
	newline := strings.NewReplacer("⏎", "\n")
	for line := range strings.Lines(trickyAnswers) {
		if strings.HasPrefix(line, "# ") && !strings.Contains(line, "\t") {
			continue
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		require.Len(t, fields, 5, line)
		gold, answer, reason := fields[0], newline.Replace(fields[1]), fields[4]
		for options, want := range map[Options]string{{}: fields[2], {Literal: true}: fields[3]} {
			got := Compare(answer, gold, options)
			if string(got) != want {
				t.Errorf(
					"gold %q, answer %q, literal %v: %s, want %s: %s", gold, answer, options.Literal, got, want, reason,
				)
			}
			graded[got.Correct()]++
		}
	}
	require.Greater(t, graded[true], 200)
	require.Greater(t, graded[false], 200)
}

// What a policy that writes characters at random found: the remains of a program next to an operand.
func TestTheRemainsOfAProgramAreNoAnswer(t *testing.T) {
	for _, answer := range []string{";x-=30", "x-=30", "-=30", "x=60;x-=30", "x==30"} {
		for _, literal := range []bool{false, true} {
			o := Grade(`<answer>\boxed{`+answer+`}</answer>`, "30", Options{Literal: literal})
			require.Equal(t, Outcome{Verdict: Wrong, Answer: answer}, o)
			_, asked := Ask(answer, "30", Options{Literal: literal})
			require.Equal(t, !literal, asked, "%s: what is no number may still be an expression", answer)
		}
	}
	require.Equal(t, Exact, Grade(`<answer>\boxed{x = 30}</answer>`, "30", Options{Literal: true}).Verdict)
}

func TestMinervaTakesNoOperatorForAnEquation(t *testing.T) {
	for _, answer := range []string{"x-=30", "x == 30", "3 0", "3{,}0", "x=29, x=30"} {
		got := DAPOMinerva("Answer: "+answer, "30")
		require.Equal(t, Wrong, got.Verdict, answer)
	}
	got := DAPOMinerva("Answer: 25", "x^2+y^2=25")
	require.Equal(t, Wrong, got.Verdict, "a curve is no number")
}
