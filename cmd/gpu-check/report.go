package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ropewalk/ropewalk/gpu/torch"
)

const (
	statusOK      = "ok"
	statusFailed  = "failed"
	statusSkipped = "skipped"
)

// outcome is what became of a part.
type outcome struct {
	Status  string          `json:"status"`
	Why     string          `json:"why,omitempty"` // it failed or was skipped
	Seconds float64         `json:"seconds"`
	At      time.Time       `json:"at"`
	Commit  string          `json:"commit"`
	Figures json.RawMessage `json:"figures,omitempty"`

	rows []row
}

func (o outcome) said() string {
	switch {
	case o.Status == statusSkipped:
		return o.Status + ": " + o.Why
	case o.Why != "":
		return fmt.Sprintf("%s after %.0f s: %s", o.Status, o.Seconds, o.Why)
	}
	return fmt.Sprintf("%s, %.0f s", o.Status, o.Seconds)
}

// report is the JSON object: what it was measured on, and a key for each part.
type report struct {
	file    string
	head    head
	parts   map[string]outcome
	ran     []string // in this run
	skipped int
}

// head is what the parts have in common. Where a file of several runs is put together, it is the last run's.
type head struct {
	Program  string            `json:"program"`
	Commit   string            `json:"commit"`
	Device   string            `json:"device"`
	Short    bool              `json:"short"`
	Machine  hardware          `json:"machine"`
	Versions map[string]string `json:"versions"`
}

// openReport begins a report, with the other parts that its file holds already.
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

// add takes a part's outcome and writes the file.
func (r *report) add(name string, out outcome, l *lab) error {
	r.parts[name] = out
	r.ran = append(r.ran, name)
	if out.Status == statusSkipped {
		r.skipped++
	}
	r.head = head{
		Program: "gpu-check", Commit: commit, Device: l.o.device, Short: l.o.short, Machine: l.machine, Versions: l.versions,
	}
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the outcomes: %w", err)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, text, "", "  "); err != nil {
		return err
	}
	indented.WriteByte('\n')
	return replace(r.file, indented.Bytes())
}

// replace puts a file in its place when it is whole.
func replace(file string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	defer os.Remove(f.Name()) // nothing is there once it has been renamed
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
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
	return slices.ContainsFunc(r.ran, func(name string) bool { return r.parts[name].Status == statusFailed })
}

// print is the table of this run's parts.
func (r *report) print(w io.Writer) {
	if r.skipped == len(r.ran) {
		for _, name := range r.ran {
			fmt.Fprintf(w, "%s: %s\n", name, r.parts[name].said())
		}
		fmt.Fprintln(w, "Nothing was measured.")
		return
	}
	fmt.Fprintf(w, "%s\n", r.head.Machine)
	wanted := "wanted"
	if r.head.Device == torch.CPU {
		fmt.Fprintln(w, "In miniature on the processor: these figures say nothing of a GPU.")
		wanted = "wanted of a GPU"
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "part\tfigure\tvalue\t%s\n", wanted)
	for _, name := range r.ran {
		p := r.parts[name]
		fmt.Fprintf(t, "%s\t\t%s\t\n", name, inCell(p.said()))
		for _, x := range p.rows {
			fmt.Fprintf(t, "\t%s\t%s\t%s\n", x.what, x.value, x.aim)
		}
	}
	t.Flush()
	fmt.Fprintf(w, "%s holds it all.\n", r.file)
}

// inCell is the first line of a text, as much as a cell of the table takes; the file holds it whole.
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
