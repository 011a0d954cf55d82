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

// formatOf is the form of the rows of the environment with a name. Only rows of qa may have several golds.
func formatOf(name string) dataset.Format {
	f := dataset.Format{Required: []string{text, answer}, Optional: []string{"id", level}, ID: "id",
		Key: []string{text}, Shapes: oneGold}
	if name == calling {
		return dataset.Format{Required: []string{text, functions}, Optional: []string{"id", answer}, ID: "id",
			Key: []string{text, functions}, Shapes: bringing, Answered: true}
	}
	if name == qa {
		f.Many, f.Shapes = []string{answer}, slices.Concat(manyGolds, oneGold)
	}
	return f
}

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

// reader returns what makes a row a question of the environment with a name.
func reader(name string) func(dataset.Row) (question, error) {
	if name == calling {
		return readCalls
	}
	return func(r dataset.Row) (question, error) {
		q, err := read(r)
		if err != nil || name != qa {
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
}

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
