package dataset

import (
	"context"
	"os"
	"path"
	"slices"
)

// answersFolder is the folder next to a file of questions that holds a file of the same name with their answers, by id,
// as BFCL has it.
const answersFolder = "possible_answer"

// answersOf is the path of the answers of a file of questions.
func answersOf(file string) string { return path.Join(path.Dir(file), answersFolder, path.Base(file)) }

// withAnswers returns a local file with its answers, if there are some.
func (s source) withAnswers() []part {
	base, answers := path.Base(s.address), answersOf(s.address)
	if _, err := os.Stat(answers); !s.answered || err != nil {
		return []part{local(s.address, "")}
	}
	return []part{local(s.address, base), local(answers, answersOf(base))}
}

// pair takes the files of answers out of a source's files. Its second result has them by the file of their questions.
func (s source) pair(parts []part) ([]part, map[string]part) {
	answers := map[string]part{}
	if !s.answered {
		return parts, answers
	}
	return slices.DeleteFunc(parts, func(p part) bool {
		folder, name := path.Split(p.base)
		if path.Base(folder) != answersFolder {
			return false
		}
		answers[path.Join(path.Dir(path.Clean(folder)), name)] = p
		return true
	}), answers
}

// readAnswers reads a file of answers: rows with ids. It returns the digest of its bytes. left is what the source may
// still hold.
func (s source) readAnswers(ctx context.Context, p part, left *int64) (map[string]cells, string, error) {
	out := map[string]cells{}
	s.look = nil
	r := reader{source: s, part: p, left: left, plan: &plan{}, each: func(row Row) error {
		id, err := textOf(row.Cells["id"])
		if err != nil || id == "" || out[id] != nil {
			return row.Fault("id must be a text that no other answer has, got %.40q", id)
		}
		out[id] = row.Cells
		return nil
	}}
	digest, err := r.run(ctx)
	return out, digest, err
}

// complete adds the answers to a row with the same id.
func (r *reader) complete(row cells) {
	if id, err := textOf(row["id"]); err == nil {
		for name, value := range r.answers[id] {
			if row[name] == nil {
				row[name] = value
			}
		}
	}
}
