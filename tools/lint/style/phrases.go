package main

import (
	"regexp"
	"strings"
)

// phrase is a turn of phrase that readers stumble over.
type phrase struct {
	// pattern matches it, whatever its case.
	pattern string
	// except matches uses that are good English, or that name a thing; "" excepts none.
	except string
	// write says what to write in its place.
	write string
}

// phrases is the table of what is refused. To add one, add a row here and an example to TestPhrases.
var phrases = []phrase{
	{`\bwhat of\b`, "", "name the things: the recipe fields that …, the rows that …"},
	{`\bwhat is in the way\b`, "", "name it: closes the idle engines that hold the devices"},
	{`\bwhich gives neither\b`, "", "say what is returned: returns neither value in that case"},
	{`\bit only grows\b`, "", "counters never decrease"},
	{`\bbut for (what|where|those)\b`, "", "except where, except for"},
	{`\bagain it (does|is|has|gives)\b`, "", "a second call does, a second time"},
	{`\bno stage builds\b`, "", `X "name" is not implemented`},
	{`\bso-many-th\b`, "", "every Nth"},
	{`\bbeside\b`, "", "next to, compared with, in addition to"},
	{`\banew\b`, "", "again, from scratch"},
	{`\bnobody\b`, "", "no one"},
	{`\b(stands?|stood)\b`, `\b(stands?|stood) (for|in for|out)\b|\bstand-(in|alone)\b`, "is, lies, holds"},
	{`\bwhoever\b`, "", "who is meant: the caller, the worker that …"},
	{`\blets? (\w+ ){0,3}go\b`, `\blets? (\w+ )?go (on|through)\b`, "releases"},
}

// rules are the phrases, compiled.
var rules = compile(phrases)

type rule struct {
	match, except *regexp.Regexp
	write         string
}

func compile(table []phrase) []rule {
	out := make([]rule, len(table))
	for i, p := range table {
		out[i] = rule{match: regexp.MustCompile(`(?i)` + p.pattern), write: p.write}
		if p.except != "" {
			out[i].except = regexp.MustCompile(`(?i)` + p.except)
		}
	}
	return out
}

// found is a refused phrase in a text.
type found struct {
	// line counts from 0, in the text.
	line int
	text string
	rule rule
}

// refused returns the phrases of a text that are refused, in the order of the table.
func refused(text string) []found {
	var out []found
	for _, r := range rules {
		excepted := spans(r.except, text)
		for _, at := range r.match.FindAllStringIndex(text, -1) {
			if !within(at, excepted) {
				out = append(out, found{strings.Count(text[:at[0]], "\n"), text[at[0]:at[1]], r})
			}
		}
	}
	return out
}

func spans(pattern *regexp.Regexp, text string) [][]int {
	if pattern == nil {
		return nil
	}
	return pattern.FindAllStringIndex(text, -1)
}

// within tells whether a span lies inside one of others.
func within(span []int, others [][]int) bool {
	for _, o := range others {
		if o[0] <= span[0] && span[1] <= o[1] {
			return true
		}
	}
	return false
}
