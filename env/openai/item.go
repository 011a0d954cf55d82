package openai

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

// Sources of trajectories, by layout.
const (
	SourcePlain    = "openai"
	SourceTauBench = "openai/tau-bench"
)

// Item is one conversation.
type Item struct {
	Index    int // index in the file, from 0
	Line     int // line where the item starts, from 1
	Source   string
	TaskID   string // the source's name of the task; "" if there is none
	Title    string // the task in words; "" if the source has none
	Trial    *int   // nil if the source does not number trials
	Reward   float64
	Messages []Message
	// List is the unchanged messages. Rest is every other field of the item. Both are compact JSON.
	List, Rest json.RawMessage
}

// Success is tau-bench's rule: a reward of 1, apart from rounding.
func (i Item) Success() bool { return math.Abs(i.Reward-1) <= 1e-6 }

func readItem(text []byte) (item Item, err error) {
	defer catch(&err)
	o := readObject("", text)
	item.Source = SourcePlain
	field := "messages"
	if !o.has("messages") && o.has("traj") {
		field, item.Source = "traj", SourceTauBench
	}
	item.List = compact(o.need(field))
	item.Messages = readMessages(field, item.List)
	item.Reward, item.TaskID, item.Trial, item.Title = o.reward(), o.taskID(), o.trial(), o.title()
	delete(o.fields, field)
	item.Rest, err = json.Marshal(o.fields)
	return item, err
}

// reward reads the reward. A missing one is an error, because 0 would be a verdict.
func (o object) reward() (x float64) {
	if !o.has("reward") {
		panic(fault("reward", "is missing; each conversation needs the number that its source gave it"))
	}
	if err := json.Unmarshal(o.fields["reward"], &x); err != nil {
		panic(fault("reward", "must be a number, got %s", shown(o.fields["reward"])))
	}
	return x
}

// taskID reads a name or a whole number.
func (o object) taskID() string {
	if !o.has("task_id") {
		return ""
	}
	value := o.fields["task_id"]
	if value[0] == '"' {
		return o.name("task_id")
	}
	if json.Unmarshal(value, new(int64)) == nil {
		return string(value)
	}
	panic(fault("task_id", "must be text or a whole number, got %s", shown(value)))
}

func (o object) trial() *int {
	if !o.has("trial") {
		return nil
	}
	var n int
	if err := json.Unmarshal(o.fields["trial"], &n); err != nil || n < 0 {
		panic(fault("trial", "must be a whole number ≥ 0, got %s", shown(o.fields["trial"])))
	}
	return &n
}

// title is tau-bench's instruction to the simulated user: info.task.instruction.
func (o object) title() string {
	var info struct {
		Task struct {
			Instruction string `json:"instruction"`
		} `json:"task"`
	}
	if json.Unmarshal(o.fields["info"], &info) != nil {
		return ""
	}
	return info.Task.Instruction
}

// task returns the key of the item's task: the source's name, or else the digest of the messages before the first
// answer.
func (i Item) task() string {
	if i.TaskID != "" {
		return i.TaskID
	}
	var all strings.Builder
	for _, m := range leading(i.Messages) {
		fmt.Fprintf(&all, "%d\n%s\n", len(m.raw), m.raw)
	}
	return digest(all.String())
}
