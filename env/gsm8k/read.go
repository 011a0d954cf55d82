package gsm8k

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/schema"
)

// maxLineBytes bounds one line of a file. Real lines have some kilobytes.
const maxLineBytes = 16 << 20

// Systems names the four systems of the released file, in the order of a group's trajectories.
var Systems = []string{"6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification"}

// Item is one question with its solutions.
type Item struct {
	Line         int // line number in the file, from 1
	Question     string
	GroundTruth  string // the reference solution
	Gold         string // the final answer of the reference solution
	Trajectories []Trajectory
}

// Trajectory is one system's solution.
type Trajectory struct {
	System      string
	Text        string // the solution
	Turns       []Turn
	FinalAnswer string
	HasAnswer   bool
	Correct     bool // the source's is_correct
}

// Calls returns all calls of the trajectory, in order.
func (t Trajectory) Calls() []Call {
	var all []Call
	for _, turn := range t.Turns {
		all = append(all, turn.Calls...)
	}
	return all
}

// record is one line of the file.
type record struct {
	Question    *string   `json:"question"`
	GroundTruth *string   `json:"ground_truth"`
	Small       *solution `json:"6b_finetuning"`
	SmallBest   *solution `json:"6b_verification"`
	Large       *solution `json:"175b_finetuning"`
	LargeBest   *solution `json:"175b_verification"`
}

type solution struct {
	Correct *bool   `json:"is_correct"`
	Text    *string `json:"solution"`
}

// Read reads the released file of model solutions, one JSON object per line. It skips blank lines. A line that does not
// match the format is an error that names the line, and no item is returned.
func Read(r io.Reader) ([]Item, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLineBytes)
	var items []Item
	n := 0
	for lines.Scan() {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		item, err := readItem(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("read solutions: line %d: %w", n, err)
		}
		item.Line = n
		items = append(items, item)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read solutions: line %d: %w", n+1, err)
	}
	if len(items) == 0 {
		return nil, errors.New("read solutions: the file holds none")
	}
	if len(items) > schema.MaxGroups {
		return nil, fmt.Errorf("read solutions: the file holds %d questions; at most %d are imported at once: split it",
			len(items), schema.MaxGroups)
	}
	return items, nil
}

func readItem(line []byte) (Item, error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	var rec record
	if err := dec.Decode(&rec); err != nil {
		return Item{}, badinput.JSON(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Item{}, errors.New("more than one value")
	}
	if rec.Question == nil || *rec.Question == "" {
		return Item{}, errors.New("question is missing")
	}
	if rec.GroundTruth == nil {
		return Item{}, errors.New("ground_truth is missing")
	}
	gold, ok := FinalAnswer(*rec.GroundTruth)
	if !ok {
		return Item{}, errors.New(`ground_truth has no final answer ("A: …")`)
	}
	item := Item{Question: *rec.Question, GroundTruth: *rec.GroundTruth, Gold: gold}
	for i, s := range []*solution{rec.Small, rec.SmallBest, rec.Large, rec.LargeBest} {
		t, err := s.trajectory(Systems[i])
		if err != nil {
			return Item{}, err
		}
		item.Trajectories = append(item.Trajectories, t)
	}
	return item, nil
}

func (s *solution) trajectory(system string) (Trajectory, error) {
	switch {
	case s == nil:
		return Trajectory{}, fmt.Errorf("%s is missing", system)
	case s.Text == nil:
		return Trajectory{}, fmt.Errorf("%s.solution is missing", system)
	case s.Correct == nil:
		return Trajectory{}, fmt.Errorf("%s.is_correct is missing", system)
	}
	t := Trajectory{System: system, Text: *s.Text, Turns: Split(*s.Text), Correct: *s.Correct}
	t.FinalAnswer, t.HasAnswer = FinalAnswer(*s.Text)
	return t, nil
}
