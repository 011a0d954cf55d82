// Package curation decides which training tasks of an environment a run draws.
//
// Glossary. A *filter* is one rule of a recipe's data section. A task is *kept* or *dropped*; a dropped task has a
// *reason*, the name of the first filter that it does not pass, and a *detail* for a person. *Normalised* text is in
// lower case and holds letters and digits alone, divided into words. An *n-gram* is n consecutive words.
//
//	tasks ─ Filters.Apply → a Verdict for each task ─ World → the kept tasks, in a seeded order
package curation

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/prompts"
)

// The reasons for which a task is dropped.
const (
	duplicate    = "duplicate"    // an earlier kept task has the same normalised text
	contaminated = "contaminated" // it shares an n-gram with an evaluation set
	notInteger   = "not_integer"  // its gold answer is no whole number
	solved       = "solved"       // another run's samples of it have too high a pass rate
	tooHard      = "too_hard"     // a given model answers it too seldom
	tooEasy      = "too_easy"     // a given model answers it too often
)

// Verdict says what became of a task.
type Verdict struct {
	Reason string // "" = kept
	Detail string
	// Samples and Correct count the samples in the other run's record; Samples is 0 if it has none.
	Samples, Correct int
}

// Filters are the rules, in the order in which they are applied.
type Filters struct {
	IntegerAnswers bool
	Deduplicate    bool
	// Evaluation holds the n-grams that no task may share; nil = any task may have any text.
	Evaluation *gramSet
	// Outcomes count the samples of another run; a task is dropped if at least MinSamples samples of it have a pass
	// rate of Below or more. Tasks that the run did not sample often enough are kept. nil = no such rule.
	Outcomes   prompts.Outcomes
	MinSamples int
	Below      float64
}

// Apply returns one verdict for each task. The verdicts depend on the order of the tasks only where duplicates are
// dropped: the first of equal tasks is kept.
func (f Filters) Apply(tasks []env.Task) []Verdict {
	out, seen := make([]Verdict, len(tasks)), map[string]string{}
	for i, t := range tasks {
		out[i] = f.judge(t, seen)
	}
	return out
}

// judge applies the filters to one task; seen maps the normalised texts of kept tasks to their ids.
func (f Filters) judge(t env.Task, seen map[string]string) (v Verdict) {
	if f.IntegerAnswers && !integer(t.Answer) {
		return Verdict{Reason: notInteger, Detail: clipped(t.Answer, mostDetail)}
	}
	words := wordsOf(t.Text)
	text := strings.Join(words, " ")
	if earlier, known := seen[text]; known && f.Deduplicate {
		return Verdict{Reason: duplicate, Detail: "of task " + earlier}
	}
	if gram, of, found := f.Evaluation.Shared(words); found {
		return Verdict{Reason: contaminated, Detail: fmt.Sprintf("%q is in %s", clipped(gram, mostDetail), of)}
	}
	if o, sampled := f.Outcomes[t.ID]; sampled {
		v.Samples, v.Correct = o.Samples, o.Correct
		if o.Samples >= f.MinSamples && float64(o.Correct) >= f.Below*float64(o.Samples) {
			v.Reason, v.Detail = solved, fmt.Sprintf("%d of %d samples", o.Correct, o.Samples)
			return v
		}
	}
	seen[text] = t.ID
	return v
}

// wordsOf returns the words of the normalised text.
func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text),
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// wholeNumber matches digits after an optional sign, or groups of three digits divided by commas.
var wholeNumber = regexp.MustCompile(`^[+\-−]?([0-9]+|[0-9]{1,3}(,[0-9]{3})+)$`)

func integer(answer string) bool { return wholeNumber.MatchString(strings.TrimSpace(answer)) }

// mostDetail bounds the characters of a task that a detail quotes.
const mostDetail = 120

// clipped is the beginning of a text, in one line.
func clipped(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}

// Difficulty keeps tasks by how many of a given model's answers are right.
//
// Source: rStar2-Agent section 4.2 has a model answer each problem 16 times and keeps those that at least 2 answers
// match. Departure: there is also an upper bound, for tasks from which nothing is left to learn.
type Difficulty struct {
	AtLeast int
	AtMost  int // 0 = any number
}

// Judge returns the verdict on a task of whose answers some are right.
func (d Difficulty) Judge(answers, matched int) Verdict {
	detail := fmt.Sprintf("%d of %d answers", matched, answers)
	switch {
	case matched < d.AtLeast:
		return Verdict{Reason: tooHard, Detail: detail}
	case d.AtMost > 0 && matched > d.AtMost:
		return Verdict{Reason: tooEasy, Detail: detail}
	}
	return Verdict{}
}
