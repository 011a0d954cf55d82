package main

import (
	"slices"
	"strings"
	"testing"
)

// TestPhrases holds an example of each row of the table, in the table's order, and good English that looks like one.
func TestPhrases(t *testing.T) {
	bad := []string{
		"what of a recipe an engine is opened for",
		"closes what is in the way",
		"it closes the engines, which gives neither",
		"it only grows",
		"never empty, but for what says otherwise",
		"Again it does nothing",
		"no stage builds it",
		"each so-many-th step's checkpoint",
		"the digest lies beside its file",
		"starts anew",
		"Nobody waits for it",
		"what stood before it",
		"whoever holds the lease",
		"lets the last lease go",
	}
	if len(bad) != len(rules) {
		t.Fatalf("%d examples for %d rules", len(bad), len(rules))
	}
	for i, text := range bad {
		got := refused("A first line.\nThen " + text)
		if !slices.ContainsFunc(got, func(f found) bool { return f.rule.write == rules[i].write && f.line == 1 }) {
			t.Errorf("%q: got %v, want %s on line 1", text, got, phrases[i].pattern)
		}
	}
	for _, text := range []string{
		"besides", "understands", "N stands for the count", "a stand-in", "what often happens", "lets it go on",
		"a renewal", "no one", "all but the last",
	} {
		if got := refused(text); len(got) != 0 {
			t.Errorf("%q: refused as %v", text, got)
		}
	}
}

func TestEveryPhraseSaysWhatToWrite(t *testing.T) {
	for _, p := range phrases {
		if p.write == "" || len(refused(strings.Split(p.write, ":")[0])) != 0 {
			t.Errorf("%s: its advice %q is empty or refused itself", p.pattern, p.write)
		}
	}
}
