package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/internal/bench"
)

// outcome is the end of a part, with its figures.
type outcome struct {
	bench.Outcome
	At     time.Time   `json:"at"`
	Commit string      `json:"commit"`
	Rows   []bench.Row `json:"rows,omitempty"`
}

// newOutcome is the outcome of a part that begins now.
func newOutcome() outcome {
	return outcome{At: time.Now().UTC().Truncate(time.Second), Commit: commit}
}

// report is the JSON object: what the parts were measured on, and a key for each part.
type report struct {
	file    string
	head    head
	parts   map[string]outcome
	ran     []string // in this run
	skipped int
}

// head is what the parts have in common. In a file of several runs it is that of the last run.
type head struct {
	Program  string            `json:"program"`
	Commit   string            `json:"commit"`
	Device   string            `json:"device"`
	Short    bool              `json:"short"`
	Machine  hardware          `json:"machine"`
	Versions map[string]string `json:"versions"`
}

// openReport begins a report with the parts that its file already holds.
func openReport(o options) (*report, error) {
	r := &report{file: o.out, parts: map[string]outcome{}}
	text, err := os.ReadFile(o.out)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	var held map[string]json.RawMessage
	if err := json.Unmarshal(text, &held); err != nil || string(held["program"]) != `"gpu-check"` {
		return nil, fmt.Errorf("-o: %s is there and holds something else", o.out)
	}
	for _, name := range partNames() {
		var out outcome
		if err := json.Unmarshal(held[name], &out); err == nil {
			r.parts[name] = out
		}
	}
	return r, nil
}

// add adds a part's outcome and writes the file.
func (r *report) add(name string, out outcome, l *lab) error {
	r.parts[name] = out
	r.ran = append(r.ran, name)
	if out.Status == bench.StatusSkipped {
		r.skipped++
	}
	r.head = head{
		Program: "gpu-check", Commit: commit, Device: l.o.device, Short: l.o.short, Machine: l.machine,
		Versions: l.versions,
	}
	return bench.Write(r.file, r)
}

// MarshalJSON writes the head's fields, then the parts in the order in which they run.
func (r *report) MarshalJSON() ([]byte, error) {
	out, err := json.Marshal(r.head)
	if err != nil {
		return nil, err
	}
	out = out[:len(out)-1]
	for _, name := range partNames() {
		if p, ok := r.parts[name]; ok {
			b, err := json.Marshal(p)
			if err != nil {
				return nil, err
			}
			out = append(fmt.Appendf(out, ",%q:", name), b...)
		}
	}
	return append(out, '}'), nil
}

func (r *report) failed() bool {
	return slices.ContainsFunc(r.ran, func(name string) bool { return r.parts[name].Status == bench.StatusFailed })
}

// print writes the table of this run's parts.
func (r *report) print(w io.Writer) {
	if r.skipped == len(r.ran) {
		for _, name := range r.ran {
			fmt.Fprintf(w, "%s: %s\n", name, r.parts[name])
		}
		fmt.Fprintln(w, "Nothing was measured.")
		return
	}
	fmt.Fprintf(w, "%s\n", r.head.Machine)
	if r.head.Device == torch.CPU {
		fmt.Fprintln(w, "In miniature on the processor: these figures say nothing about a GPU.")
	}
	for _, name := range r.ran {
		p := r.parts[name]
		fmt.Fprintf(w, "\n%s: %s\n%s", name, inCell(p.String()), &bench.Report{Rows: p.Rows})
	}
	fmt.Fprintf(w, "%s holds it all.\n", r.file)
}

// inCell is the first line of a text, cut to the width of a cell. The file holds the whole text.
func inCell(text string) string {
	const most = 80
	line, _, more := strings.Cut(text, "\n")
	runes := []rune(strings.ReplaceAll(line, "\t", " "))
	if len(runes) > most {
		runes, more = runes[:most], true
	}
	if more {
		return string(runes) + " …"
	}
	return string(runes)
}
