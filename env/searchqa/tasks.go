package searchqa

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/seed"
)

// heldOutParts is the divisor of the held-out share: the questions about one fifth of the subjects are held out.
const heldOutParts = 5

// heldOut reports whether questions about the document with that title are kept from training. It follows from the
// title alone.
func heldOut(title string) bool {
	sum := sha256.Sum256([]byte("searchqa subject " + title))
	return binary.LittleEndian.Uint64(sum[:])%heldOutParts == 0
}

// questions lists the questions of a family in one split.
func (c *corpus) questions(f family, held bool) []question {
	var out []question
	for _, subject := range c.of[f.about] {
		if heldOut(c.entities[subject].title) != held {
			continue
		}
		if q, ok := c.question(f, subject); ok {
			out = append(out, q)
		}
	}
	return out
}

// Task draws a question. Training draws each family of the setting train equally often. The held-out split takes the
// families of the setting evaluate in turn, and asks every question of a family before it repeats one.
func (e *Environment) Task(_ context.Context, at env.Draw) (env.Task, error) {
	switch at.Split {
	case env.Train:
		rng := seed.Rand("searchqa task", at.Seed, uint64(at.Step), uint64(at.Index))
		of := e.train[rng.IntN(len(e.train))]
		return of[rng.IntN(len(of))].task()
	case env.HeldOut:
		of := e.evaluate[at.Index%len(e.evaluate)]
		return of[at.Index/len(e.evaluate)%len(of)].task()
	}
	return env.Task{}, fmt.Errorf("draw a question: there is no split %q", at.Split)
}

// split makes the questions of both splits. A family that has none in a split is an error, because its share of the
// tasks would be missing.
func (e *Environment) split() error {
	pools := []struct {
		setting string
		names   []string
		held    bool
		to      *[][]question
	}{{"train", e.settings.Train, false, &e.train}, {"evaluate", e.settings.Evaluate, true, &e.evaluate}}
	for _, p := range pools {
		for _, name := range p.names {
			f, _ := familyNamed(name)
			of := e.corpus.questions(f, p.held)
			if len(of) == 0 {
				return fmt.Errorf("check search_qa settings: %s: a corpus of %d documents has no question of family "+
					"%s; more documents may help", p.setting, e.settings.Documents, name)
			}
			if p.held {
				rng := seed.Rand("searchqa held out " + name)
				rng.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
			}
			*p.to = append(*p.to, of)
		}
	}
	return nil
}

// task returns the question as a task.
func (q question) task() (env.Task, error) {
	spec, err := json.Marshal(q)
	f, _ := familyNamed(q.Family)
	return env.Task{ID: q.id(), Level: f.level, Type: q.Family, Text: q.Text, Answer: env.JoinGolds(q.Golds),
		Spec: string(spec)}, err
}

// id is a digest of the whole question, so that questions of different corpora have different ids.
func (q question) id() string {
	h := sha256.New()
	for _, part := range slices.Concat([]string{q.Text}, q.Golds, q.Points) {
		fmt.Fprintf(h, "%d %s", len(part), part)
	}
	return "searchqa-" + hex.EncodeToString(h.Sum(nil))[:20]
}

// readTask reads the question of a task and checks that it is whole.
func readTask(task env.Task) (q question, err error) {
	if err = json.Unmarshal([]byte(task.Spec), &q); err != nil {
		return q, err
	}
	if _, known := familyNamed(q.Family); !known || len(q.Golds) == 0 || len(q.Documents) != len(q.Reads) ||
		q.id() != task.ID {
		return q, errors.New("its specification is that of another")
	}
	return q, nil
}
