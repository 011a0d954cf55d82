package openai

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/schema"
)

// The largest numbers of tasks and trials that the ids of a step can count.
const (
	maxTasks  = schema.MaxGroups
	maxTrials = schema.MaxSamples
)

// Task is one group of trials.
type Task struct {
	ID     string
	Title  string
	Trials []Item
}

// group sorts items into tasks and their trials.
func group(items []Item) ([]Task, error) {
	var tasks []Task
	at := map[string]int{}
	for _, item := range items {
		id := item.task()
		i, ok := at[id]
		if !ok {
			i, at[id] = len(tasks), len(tasks)
			tasks = append(tasks, Task{ID: id, Title: item.Title})
		}
		if err := tasks[i].add(item); err != nil {
			return nil, fmt.Errorf("line %d: item %d: %w", item.Line, item.Index, err)
		}
	}
	if len(tasks) > maxTasks {
		return nil, fmt.Errorf("the file holds %d tasks; at most %d are imported at once: split it", len(tasks),
			maxTasks)
	}
	for i := range tasks {
		slices.SortStableFunc(tasks[i].Trials, func(a, b Item) int { return cmp.Compare(a.number(), b.number()) })
	}
	return tasks, nil
}

// number returns the trial's number. Items without a number keep the file's order and precede items with a number.
func (i Item) number() int {
	if i.Trial == nil {
		return -1
	}
	return *i.Trial
}

func (t *Task) add(item Item) error {
	if len(t.Trials) == maxTrials {
		return fault("task_id", "task %s has more than %d trials", t.ID, maxTrials)
	}
	for _, other := range t.Trials {
		if item.Trial != nil && other.Trial != nil && *item.Trial == *other.Trial {
			return fault("trial", "task %s has trial %d already: item %d, line %d", t.ID, *item.Trial, other.Index,
				other.Line)
		}
	}
	t.Trials = append(t.Trials, item)
	return nil
}

// Shared returns the leading messages, before any answer, that all trials have in common.
func (t Task) Shared() []Message {
	shared := leading(t.Trials[0].Messages)
	for _, trial := range t.Trials[1:] {
		other := leading(trial.Messages)
		n := 0
		for n < min(len(shared), len(other)) && string(shared[n].raw) == string(other[n].raw) {
			n++
		}
		shared = shared[:n]
	}
	return shared
}

// leading returns the messages before the first assistant message.
func leading(messages []Message) []Message {
	return messages[:slices.IndexFunc(messages, func(m Message) bool { return m.Role == Assistant })]
}

// question returns what the task asks, in words: its title, or else the last shared user message.
func (t Task) question() string {
	if t.Title != "" {
		return t.Title
	}
	shared := t.Shared()
	for _, m := range slices.Backward(shared) {
		if m.Role == User {
			return m.Text
		}
	}
	return render(shared)
}
