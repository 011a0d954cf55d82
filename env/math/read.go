package math

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/internal/dataset"
)

// format is the form of the rows.
func (f fields) format() dataset.Format {
	question, answer := f.names()
	return dataset.Format{Required: []string{question, answer}, Optional: []string{"id", "level"}, ID: "id",
		Key: []string{question}}
}

// names are the fields of a row that hold the question and the gold.
func (f fields) names() (question, answer string) {
	return cmp.Or(f.QuestionField, "question"), cmp.Or(f.AnswerField, "answer")
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
	level  int
}

// read makes a row a question.
func (f fields) read(r dataset.Row) (question, error) {
	text, answer := f.names()
	q := question{ID: r.Values["id"], Text: r.Values[text], Answer: gold(r.Values[answer]), level: 1}
	if q.Answer == "" {
		return q, r.Fault(dataset.Missing, "%s: nothing is after %s", answer, hashes)
	}
	if text, ok := r.Values["level"]; ok {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxLevel {
			return q, r.Fault(dataset.BadField, "level must be a whole number from 1 to %d, got %.20q", maxLevel, text)
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
