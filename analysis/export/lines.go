package export

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// conversation is a line of the format openai; `ropewalk import openai` reads it back. Tools are
// the tool declarations in the source of an imported conversation and Info its description of the task (tau-bench);
// Source holds all fields of the source besides its messages.
type conversation struct {
	Messages   []json.RawMessage `json:"messages"`
	Tools      json.RawMessage   `json:"tools,omitempty"`
	TaskID     json.RawMessage   `json:"task_id"`
	Info       json.RawMessage   `json:"info,omitempty"`
	Trial      int               `json:"trial"`
	Reward     float64           `json:"reward"`
	Run        string            `json:"run"`
	Step       int               `json:"step"`
	Group      string            `json:"group_id"`
	Trajectory string            `json:"trajectory_id"`
	Problem    string            `json:"problem_id"`
	Success    bool              `json:"success"`
	Kept       bool              `json:"kept"`
	Reason     string            `json:"reason,omitempty"`    // why it was dropped
	Advantage  *float64          `json:"advantage,omitempty"` // before its weight; absent outside the batch
	Source     json.RawMessage   `json:"source,omitempty"`
}

// lines writes one JSON value a line.
type lines struct {
	w       io.Writer
	opening string          // see messages
	tools   json.RawMessage // of a completion whose source declares none
	line    func(run string, step int, e analysis.Episode, opening string) (any, error)
}

func (l lines) write(run string, step int, episodes []analysis.Episode) error {
	for _, e := range episodes {
		v, err := l.line(run, step, e, l.opening)
		if err != nil {
			return err
		}
		if c, ok := v.(completion); ok && c.Tools == nil && e.Trajectory.Source == rollout.SourceRollout {
			c.Tools = l.tools
			v = c
		}
		text, err := encode(v)
		if err != nil {
			return fmt.Errorf("write trajectory %s: %w", e.Trajectory.TrajectoryID, err)
		}
		if _, err := l.w.Write(append(text, '\n')); err != nil {
			return fmt.Errorf("write trajectory %s: %w", e.Trajectory.TrajectoryID, err)
		}
	}
	return nil
}

func (lines) close() error { return nil }

func openaiLine(run string, step int, e analysis.Episode, opening string) (any, error) {
	list, err := messages(e, opening)
	if err != nil {
		return nil, err
	}
	fields, err := sourceOf(e.Trajectory)
	if err != nil {
		return nil, err
	}
	_, _, sample, err := schema.ParseTrajectoryID(e.Trajectory.TrajectoryID)
	if err != nil {
		return nil, err
	}
	out := conversation{
		Messages: list, Tools: fields.Tools, TaskID: fields.TaskID, Info: fields.Info, Trial: sample,
		Reward: e.Reward.Reward,
		Run:    run, Step: step, Group: e.Trajectory.GroupID, Trajectory: e.Trajectory.TrajectoryID,
		Problem: e.Trajectory.ProblemID,
		Success: e.Reward.Success, Kept: e.Selection.Kept, Reason: e.Selection.Reason, Advantage: e.Advantage,
		Source: fields.whole,
	}
	if fields.Trial != nil {
		out.Trial = *fields.Trial
	}
	if out.TaskID == nil {
		out.TaskID, err = encode(e.Trajectory.GroupID) // a prompt can be used again in another step
	}
	return out, err
}

// source holds the fields of an imported conversation's source besides its messages; it is empty for other
// trajectories.
type source struct {
	TaskID json.RawMessage `json:"task_id"`
	Trial  *int            `json:"trial"`
	Tools  json.RawMessage `json:"tools"`
	Info   json.RawMessage `json:"info"`
	whole  json.RawMessage
}

func sourceOf(t schema.TrajectoryRow) (source, error) {
	var s source
	if t.Item == nil {
		return s, nil
	}
	if err := json.Unmarshal([]byte(*t.Item), &s); err != nil {
		return s, fmt.Errorf("read item of trajectory %s: %w", t.TrajectoryID, err)
	}
	if string(s.TaskID) == "null" {
		s.TaskID = nil
	}
	s.whole = json.RawMessage(*t.Item)
	return s, nil
}

// completion is a line of the format sft: TRL's conversational prompt and completion. The prompt is everything before
// the first response, the completion everything from there to the last response. Arguments of calls are objects: chat
// templates write them as JSON, and would write a text as JSON twice. Tools are what the prompt lists.
type completion struct {
	Prompt     []json.RawMessage `json:"prompt"`
	Completion []json.RawMessage `json:"completion"`
	Tools      json.RawMessage   `json:"tools,omitempty"`
	Trajectory string            `json:"trajectory_id"`
	Reward     float64           `json:"reward"`
}

func sftLine(_ string, _ int, e analysis.Episode, opening string) (any, error) {
	list, err := messages(e, opening)
	if err != nil {
		return nil, err
	}
	fields, err := sourceOf(e.Trajectory)
	if err != nil {
		return nil, err
	}
	first, last := -1, -1
	for i, m := range list {
		if list[i], err = withObjects(m); err != nil {
			return nil, fmt.Errorf("read messages of trajectory %s: %w", e.Trajectory.TrajectoryID, err)
		}
		var role struct {
			Role string `json:"role"`
		}
		if err := json.Unmarshal(m, &role); err != nil {
			return nil, fmt.Errorf("read messages of trajectory %s: %w", e.Trajectory.TrajectoryID, err)
		}
		if role.Role != "assistant" {
			continue
		}
		if last = i; first < 0 {
			first = i
		}
	}
	if first < 0 {
		return nil, fmt.Errorf("write trajectory %s: it holds no response", e.Trajectory.TrajectoryID)
	}
	return completion{list[:first], list[first : last+1], fields.Tools, e.Trajectory.TrajectoryID, e.Reward.Reward}, nil
}
