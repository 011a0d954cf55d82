package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
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

func readItem(text []byte) (Item, error) {
	o, err := readObject(text)
	if err != nil {
		return Item{}, err
	}
	item := Item{Source: SourcePlain}
	field := "messages"
	if !o.has("messages") && o.has("traj") {
		field, item.Source = "traj", SourceTauBench
	}
	if !o.has(field) {
		return Item{}, fault(field, "is missing")
	}
	item.List = compact(o[field])
	if item.Messages, err = readMessages(item.List); err != nil {
		return Item{}, within(field, err)
	}
	if item.Reward, err = o.number("reward"); err != nil {
		return Item{}, err
	}
	if item.TaskID, err = o.taskID(); err != nil {
		return Item{}, err
	}
	if item.Trial, err = o.trial(); err != nil {
		return Item{}, err
	}
	item.Title = o.title()
	delete(o, field)
	item.Rest, err = json.Marshal(o)
	return item, err
}

// number reads the reward. A missing reward is an error, because 0 would be a verdict.
func (o object) number(name string) (float64, error) {
	if !o.has(name) {
		return 0, fault(name, "is missing; each conversation needs the number that its source gave it")
	}
	var x float64
	if err := json.Unmarshal(o[name], &x); err != nil {
		return 0, fault(name, "must be a number, got %s", shown(o[name]))
	}
	return x, nil
}

// taskID reads a name or a whole number.
func (o object) taskID() (string, error) {
	if !o.has("task_id") {
		return "", nil
	}
	var number json.Number
	if json.Unmarshal(o["task_id"], &number) == nil && o["task_id"][0] != '"' {
		if _, err := strconv.ParseInt(number.String(), 10, 64); err == nil {
			return number.String(), nil
		}
	}
	if o["task_id"][0] != '"' {
		return "", fault("task_id", "must be text or a whole number, got %s", shown(o["task_id"]))
	}
	return o.name("task_id")
}

func (o object) trial() (*int, error) {
	if !o.has("trial") {
		return nil, nil
	}
	var n int
	if err := json.Unmarshal(o["trial"], &n); err != nil || n < 0 {
		return nil, fault("trial", "must be a whole number ≥ 0, got %s", shown(o["trial"]))
	}
	return &n, nil
}

// title is tau-bench's instruction to the simulated user: info.task.instruction.
func (o object) title() string {
	var info struct {
		Task struct {
			Instruction string `json:"instruction"`
		} `json:"task"`
	}
	if json.Unmarshal(o["info"], &info) != nil {
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
	h := sha256.New()
	for _, m := range leading(i.Messages) {
		fmt.Fprintf(h, "%d\n%s\n", len(m.raw), m.raw)
	}
	return hex.EncodeToString(h.Sum(nil))
}
