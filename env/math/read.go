package math

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/dataset"
	"github.com/ropewalk/ropewalk/rl/words"
)

// The fields of a row.
const (
	text   = "question"
	answer = "answer"
	level  = "level"
)

// kind is the form of an environment's rows, how they become questions, and how answers are compared with golds.
type kind struct {
	format dataset.Format
	read   func(dataset.Row) (question, error)
	mark   func(answer, gold string) (valid, right bool)
}

// The kinds of rows: with one gold, with golds that are compared by their words, and with functions to call.
var (
	withGold = kind{dataset.Format{Required: []string{text, answer}, Optional: []string{"id", level}, ID: "id",
		Key: []string{text}, Shapes: oneGold}, read, env.SameText}
	withGolds = kind{dataset.Format{Required: []string{text, answer}, Optional: []string{"id", level}, ID: "id",
		Key: []string{text}, Shapes: slices.Concat(manyGolds, oneGold), Many: []string{answer}}, readGolds, sameWords}
	withFunctions = kind{dataset.Format{Required: []string{text, functions}, Optional: []string{"id", answer}, ID: "id",
		Key: []string{text, functions}, Shapes: bringing, Answered: true}, readCalls, words.Calls}
)

// hashes begin the line of a solution's final answer, in GSM8K's files.
const hashes = "####"

// maxLevel bounds a row's level.
const maxLevel = 1000

// question is one row.
type question struct {
	ID     string `json:"id,omitempty"` // the row's own
	Text   string `json:"question"`
	Answer string `json:"answer"` // gold
	// Functions are those that calls may name, where calls are the answer.
	Functions json.RawMessage `json:"functions,omitempty"`
	level     int
	set       string // evaluation set
}

// readGolds makes a row a question that may have several golds.
func readGolds(r dataset.Row) (question, error) {
	q, err := read(r)
	if err != nil {
		return q, err
	}
	golds := r.Lists[answer]
	if len(golds) < 2 {
		golds = []string{q.Answer}
	}
	q.Answer = env.JoinGolds(golds)
	switch {
	case len(env.SplitGolds(q.Answer)) != len(golds):
		err = r.Fault("answer: a gold holds the characters that separate golds")
	case !slices.ContainsFunc(golds, func(gold string) bool { return words.Normalize(gold) != "" }):
		err = r.Fault("answer has no word to compare answers with, got %.40q", q.Answer)
	}
	return q, err
}

// read makes a row a question with one gold.
func read(r dataset.Row) (question, error) {
	q := question{ID: r.Values["id"], Text: r.Values[text], Answer: gold(r.Values[answer]), level: 1, set: r.Set}
	if q.Answer == "" {
		return q, r.Fault("%s: nothing is after %s", answer, hashes)
	}
	if text, ok := r.Values[level]; ok {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxLevel {
			return q, r.Fault("level must be a whole number from 1 to %d, got %.20q", maxLevel, text)
		}
		q.level = n
	}
	return q, nil
}

// gold is the gold in a row's answer: the answer itself, or what follows the last "####" at the beginning of a line.
func gold(answer string) string {
	if at := strings.LastIndex("\n"+answer, "\n"+hashes); at >= 0 {
		answer = answer[at+len(hashes):]
	}
	return strings.TrimSpace(answer)
}
