package service

import (
	"fmt"
	"math"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
)

// The bodies of requests and responses. openapi.json says what each field means.

// CallBody is one call.
type CallBody struct {
	Code      *string    `json:"code"`
	Language  string     `json:"language,omitempty"`
	Packages  string     `json:"packages,omitempty"`
	Stdin     string     `json:"stdin,omitempty"`
	Files     []FileIn   `json:"files,omitempty"`
	Collect   []string   `json:"collect,omitempty"`
	Limits    LimitsBody `json:"limits,omitzero"`
	Preset    string     `json:"preset,omitempty"`
	QueueLife float64    `json:"queue_life_seconds,omitempty"`
	Key       string     `json:"key,omitempty"`
	Trace     string     `json:"trace,omitempty"`
}

// FileIn is a file to put into the work folder: its content in base64, or its text.
type FileIn struct {
	Name    string  `json:"name"`
	Content []byte  `json:"content,omitempty"`
	Text    *string `json:"text,omitempty"`
}

// LimitsBody holds the limits of a call.
type LimitsBody struct {
	CPU       float64 `json:"cpu_seconds,omitempty"`
	Wall      float64 `json:"wall_seconds,omitempty"`
	Memory    int64   `json:"memory_bytes,omitempty"`
	Output    int     `json:"output_bytes,omitempty"`
	File      int64   `json:"file_bytes,omitempty"`
	Processes int     `json:"processes,omitempty"`
}

// ResultBody is a verdict.
type ResultBody struct {
	Key       string     `json:"key"`
	Trace     string     `json:"trace,omitempty"`
	Status    string     `json:"status"`
	ExitCode  int        `json:"exit_code"`
	Signal    string     `json:"signal"`
	Stdout    string     `json:"stdout"`
	Stderr    string     `json:"stderr"`
	Traceback string     `json:"traceback"`
	Value     string     `json:"value"`
	Files     []FileOut  `json:"files"`
	Timing    TimingBody `json:"timing"`
}

// FileOut is a file that the call has written, its content in base64.
type FileOut struct {
	Name    string `json:"name"`
	Content []byte `json:"content"`
}

// TimingBody holds what was measured.
type TimingBody struct {
	Queue      float64 `json:"queue_seconds"`
	Wall       float64 `json:"wall_seconds"`
	CPU        float64 `json:"cpu_seconds"`
	PeakMemory int64   `json:"peak_memory_bytes"`
}

// HealthBody is the state of the service.
type HealthBody struct {
	Status      string `json:"status"`
	Tier        string `json:"tier"`
	Workers     int    `json:"workers"`
	QueuedCalls int    `json:"queued_calls"`
	QueuedBytes int64  `json:"queued_bytes"`
	Sessions    int    `json:"sessions"`
}

// call returns the body's call, with its preset's limits. Call.Validate checks the content.
func (b CallBody) call() (sandbox.Call, sandbox.Preset, error) {
	preset, err := sandbox.PresetOf(b.Preset)
	if err != nil {
		return sandbox.Call{}, preset, malformed("preset", err.Error())
	}
	if b.Code == nil {
		return sandbox.Call{}, preset, malformed("code", "code is missing")
	}
	c := sandbox.Call{Language: b.Language, Packages: b.Packages, Code: *b.Code, Stdin: b.Stdin, Collect: b.Collect,
		Trace: b.Trace}
	if c.Limits, err = b.Limits.limits(preset); err != nil {
		return c, preset, err
	}
	for i, f := range b.Files {
		content := f.Content
		if f.Text != nil {
			if len(content) > 0 {
				return c, preset, malformed(fmt.Sprintf("files[%d]", i),
					fmt.Sprintf("files[%d] has content and text", i))
			}
			content = []byte(*f.Text)
		}
		c.Files = append(c.Files, sandbox.File{Name: f.Name, Content: content})
	}
	return c, preset, nil
}

func (b LimitsBody) limits(preset sandbox.Preset) (sandbox.Limits, error) {
	cpu, err := duration("limits.cpu_seconds", b.CPU)
	if err != nil {
		return sandbox.Limits{}, err
	}
	wall, err := duration("limits.wall_seconds", b.Wall)
	if err != nil {
		return sandbox.Limits{}, err
	}
	l := sandbox.Limits{CPU: cpu, Wall: wall, MemoryBytes: b.Memory, OutputBytes: b.Output, FileBytes: b.File,
		Processes: b.Processes}
	return preset.Over(l), nil
}

// duration converts seconds. A value that a duration cannot hold is malformed.
func duration(field string, seconds float64) (time.Duration, error) {
	if math.Abs(seconds) > (365 * 24 * time.Hour).Seconds() {
		return 0, malformed(field, fmt.Sprintf("%s is more than a year: %g", field, seconds))
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// ResultOf converts a verdict to its JSON form.
func ResultOf(r sandbox.Result) ResultBody {
	out := ResultBody{Files: []FileOut{}}
	out.Status, out.ExitCode, out.Signal = string(r.Status), r.ExitCode, r.Signal
	out.Stdout, out.Stderr, out.Traceback, out.Value = r.Stdout, r.Stderr, r.Traceback, r.Value
	for _, f := range r.Files {
		out.Files = append(out.Files, FileOut(f))
	}
	out.Timing = TimingBody{Queue: r.Timing.Queue.Seconds(), Wall: r.Timing.Wall.Seconds(), CPU: r.Timing.CPU.Seconds(),
		PeakMemory: r.Timing.PeakMemory}
	return out
}
