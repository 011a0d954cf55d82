package env

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Questions runs the episodes of an environment whose tasks are questions: the question is shown, and one answer ends
// the episode. The environment embeds it.
type Questions struct {
	// Gold checks that a task is one of the environment's, and returns what Mark compares answers with.
	Gold func(Task) (string, error)
	// Mark reports whether an answer has the form of one, and whether it is right. A run's reward compares answers
	// by its own rules.
	Mark func(answer, gold string) (valid, right bool)
}

// asked is an episode's state in JSON.
type asked struct {
	Task  string `json:"task"` // id
	Gold  string `json:"gold"`
	Ended bool   `json:"ended,omitempty"`
}

// Instruction is empty, because the question says everything.
func (Questions) Instruction(Task) (string, error) { return "", nil }

// Reset asks the question.
func (q Questions) Reset(ctx context.Context, task Task) (State, Observation, error) {
	if err := ctx.Err(); err != nil {
		return nil, Observation{}, err
	}
	gold, err := q.Gold(task)
	if err != nil {
		return nil, Observation{}, fmt.Errorf("read question %.40s: %w", task.ID, err)
	}
	state, err := json.Marshal(asked{Task: task.ID, Gold: gold})
	return state, Seen(task.Text), err
}

// Step takes the answer and ends the episode.
func (q Questions) Step(ctx context.Context, at State, action string) (State, Transition, error) {
	if err := ctx.Err(); err != nil {
		return nil, Transition{}, err
	}
	a, err := readAsked(at)
	if err != nil {
		return nil, Transition{}, err
	}
	if a.Ended {
		return nil, Transition{}, fmt.Errorf("answer a question: %w", ErrEnded)
	}
	t := Transition{Done: true, Observation: Seen("wrong")}
	if t.Valid, t.Success = q.Mark(action, a.Gold); t.Success {
		t.Reward, t.Observation = 1, Seen("right")
	}
	a.Ended = true
	state, err := json.Marshal(a)
	return state, t, err
}

// Situation identifies the state. An episode has one turn.
func (Questions) Situation(at State) (string, error) {
	a, err := readAsked(at)
	return fmt.Sprintf("%s %t", a.Task, a.Ended), err
}

func readAsked(at State) (a asked, err error) {
	if err = Decode(at, &a); err == nil && a.Task == "" {
		err = errors.New("it names no task")
	}
	if err != nil {
		return a, fmt.Errorf("read the state of a question: %w", err)
	}
	return a, nil
}

// SameText marks answers that are texts.
func SameText(answer, gold string) (valid, right bool) {
	answer = strings.TrimSpace(answer)
	return answer != "", answer != "" && answer == gold
}

// SameNumber marks answers that are whole numbers.
func SameNumber(answer, gold string) (valid, right bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(answer), 10, 64)
	return err == nil, err == nil && strconv.FormatInt(n, 10) == gold
}

// TasksOf makes the tasks of questions.
func TasksOf[Q interface{ Task() (Task, error) }](questions []Q) ([]Task, error) {
	out := make([]Task, len(questions))
	for i, q := range questions {
		var err error
		if out[i], err = q.Task(); err != nil {
			return nil, err
		}
	}
	return out, nil
}
