package service

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

// SandboxFusion's POST /run_jupyter. The fields, the defaults and the statuses follow its server's models
// (RunJupyterRequest, RunJupyterResponse) as of 2025. After a cell that raises an exception the next one runs, and the
// whole is a Success. If a time limit is reached or the kernel ends, it is Failed, and no cell is returned.
//
// Here a cell that raises MemoryError ends the kernel, and so does a cell that exits before the last one. A display
// contains only the text/plain of a value.

type jupyterRequest struct {
	Cells         []string           `json:"cells"`
	CellTimeout   float64            `json:"cell_timeout"` // seconds; 0 means that only total_timeout applies
	TotalTimeout  *float64           `json:"total_timeout"`
	MemoryLimitMB *int64             `json:"memory_limit_MB"`
	Kernel        *string            `json:"kernel"`
	Files         map[string]*string `json:"files"`
	FetchFiles    []string           `json:"fetch_files"`
}

type jupyterResponse struct {
	Status  string            `json:"status"`
	Message string            `json:"message"`
	Driver  *fusionRun        `json:"driver"`
	Cells   []jupyterCell     `json:"cells"`
	PodName *string           `json:"executor_pod_name"`
	Files   map[string]string `json:"files"`
}

type jupyterCell struct {
	Stdout  string              `json:"stdout"`
	Stderr  string              `json:"stderr"`
	Display []map[string]string `json:"display"`
	Error   []jupyterError      `json:"error"`
}

type jupyterError struct {
	Name      string   `json:"ename"`
	Value     string   `json:"evalue"`
	Traceback []string `json:"traceback"`
}

func (s *Service) serveJupyter(w http.ResponseWriter, r *http.Request) {
	var body jupyterRequest
	done, err := s.body(w, r, &body, false)
	if err != nil {
		invalid(w, err)
		return
	}
	defer done()
	book, err := body.notebook()
	if err != nil {
		invalid(w, err)
		return
	}
	for i := range book.cells {
		book.cells[i].Trace = r.Header.Get(traceHeader)
	}
	out, err := s.runJupyter(r.Context(), book)
	if err != nil {
		refuse(w, err)
		return
	}
	respond(w, http.StatusOK, out)
}

// notebook is a parsed request.
type notebook struct {
	cells  []sandbox.Call // at least one
	silent bool           // the request had no cells; the only cell here just brings its files
	limits sandbox.Limits // limits of the session
	total  time.Duration
}

func (b jupyterRequest) notebook() (notebook, error) {
	if b.Cells == nil {
		return notebook{}, malformed("cells", "Field required")
	}
	if b.Kernel != nil && *b.Kernel != "python3" {
		return notebook{}, malformed("kernel", fmt.Sprintf("kernel is %q, it must be \"python3\"", *b.Kernel))
	}
	seconds := 45.0
	if b.TotalTimeout != nil {
		seconds = *b.TotalTimeout
	}
	total, err := duration("total_timeout", seconds)
	if err != nil || total <= 0 {
		return notebook{}, malformed("total_timeout", fmt.Sprintf("total_timeout is %g, it must be above 0", seconds))
	}
	cell, err := duration("cell_timeout", b.CellTimeout)
	if err != nil || cell < 0 {
		return notebook{}, malformed("cell_timeout",
			fmt.Sprintf("cell_timeout is %g, it must not be negative", b.CellTimeout))
	}
	if cell == 0 {
		cell = total
	}
	n := notebook{total: total, silent: len(b.Cells) == 0,
		limits: sandbox.Limits{CPU: cell, Wall: cell, MemoryBytes: fusionMemory}}
	if n.limits.MemoryBytes, err = fusionMemoryLimit(b.MemoryLimitMB); err != nil {
		return n, err
	}
	if len(b.Cells) > mostBatch {
		return n, malformed("cells", fmt.Sprintf("cells has %d entries, at most %d are taken", len(b.Cells), mostBatch))
	}
	for _, code := range b.Cells {
		n.cells = append(n.cells, sandbox.Call{Code: code})
	}
	if n.silent {
		n.cells = []sandbox.Call{{}}
	}
	if n.cells[0].Files, err = fusionFiles(b.Files); err != nil {
		return n, err
	}
	n.cells[len(n.cells)-1].Collect = b.FetchFiles
	for i, c := range n.cells {
		if err := c.Validate(); err != nil {
			return n, inCell(err, i)
		}
	}
	return n, nil
}

// inCell adds to an error which cell of a notebook it is about.
func inCell(err error, i int) error { return inCall(err, fmt.Sprintf("cells[%d]", i)) }

// runJupyter fails if the client may open no session now. Everything else that fails is a response.
func (s *Service) runJupyter(ctx context.Context, book notebook) (jupyterResponse, error) {
	out := jupyterResponse{Status: fusionSuccess, Cells: []jupyterCell{}, Files: map[string]string{}}
	kernel, err := s.openSession(ctx, "", book.limits)
	if errors.Is(err, rpc.ErrOverQuota) {
		return out, err
	}
	if err != nil {
		out.Status, out.Message = fusionError, err.Error()
		return out, nil
	}
	defer s.sessions.finish(asking(ctx))
	defer kernel.Close()
	began := time.Now()
	for i, cell := range book.cells {
		left := max(book.total-time.Since(began), time.Millisecond)
		cell.Limits = sandbox.Limits{CPU: min(left, book.limits.CPU), Wall: min(left, book.limits.Wall)}
		result, err := s.kernelCell(ctx, kernel, cell)
		if why := failure(i, result, err); why != "" || err != nil {
			return out.failed(why, err, result.Status, time.Since(began)), nil
		}
		if !book.silent {
			out.Cells = append(out.Cells, shownCell(result))
		}
		for _, f := range result.Files {
			out.Files[f.Name] = base64.StdEncoding.EncodeToString(f.Content)
		}
	}
	took, code, none := time.Since(began).Seconds(), 0, ""
	out.Driver = &fusionRun{Status: "Finished", ExecutionTime: &took, ReturnCode: &code, Stdout: &none, Stderr: &none}
	return out, nil
}

// kernelCell runs one cell, and counts and logs it like every other cell.
func (s *Service) kernelCell(ctx context.Context, kernel sandbox.Session, cell sandbox.Call) (result sandbox.Result,
	err error) {
	began := time.Now()
	err = rescue.Do(func() (err error) {
		result, err = kernel.Run(ctx, cell)
		return err
	})
	a := answer{trace: cell.Trace, result: result, err: err}
	s.metrics.cell(asking(ctx), a, time.Since(began))
	s.log(cell, a)
	return result, err
}

// failure says why a kernel cannot continue after a cell; "" if it can.
func failure(i int, r sandbox.Result, err error) string {
	switch {
	case errors.Is(err, sandbox.ErrSessionEnded):
		return fmt.Sprintf("a cell before cell %d ended the kernel", i+1)
	case err != nil:
		return err.Error()
	}
	switch r.Status {
	case sandbox.StatusTimeoutCPU, sandbox.StatusTimeoutWall:
		return fmt.Sprintf("cell %d took too long", i+1)
	case sandbox.StatusOutOfMemory, sandbox.StatusOutputLimit, sandbox.StatusKilled:
		return fmt.Sprintf("cell %d ended the kernel: %s", i+1, r.Status)
	}
	return ""
}

// failed returns the answer to a notebook that was not completed.
func (j jupyterResponse) failed(why string, err error, status sandbox.Status, took time.Duration) jupyterResponse {
	j.Cells, j.Files = []jupyterCell{}, map[string]string{}
	if err != nil && !errors.Is(err, sandbox.ErrSessionEnded) {
		j.Status, j.Message = fusionError, why
		return j
	}
	seconds, none := took.Seconds(), ""
	j.Status, j.Driver = fusionFailed, &fusionRun{Status: "TimeLimitExceeded", ExecutionTime: &seconds, Stdout: &none,
		Stderr: &why}
	if status != sandbox.StatusTimeoutCPU && status != sandbox.StatusTimeoutWall {
		code := 1
		j.Driver.Status, j.Driver.ReturnCode = "Finished", &code
	}
	return j
}

// shownCell converts a result to what a notebook shows. There the traceback is not part of stderr.
func shownCell(r sandbox.Result) jupyterCell {
	c := jupyterCell{Stdout: r.Stdout, Stderr: strings.TrimSuffix(r.Stderr, r.Traceback),
		Display: []map[string]string{}, Error: []jupyterError{}}
	if r.Value != "" {
		c.Display = append(c.Display, map[string]string{"text/plain": r.Value})
	}
	if r.Traceback != "" {
		c.Error = append(c.Error, readTraceback(r.Traceback))
	}
	return c
}

// readTraceback parses Python's text of an exception. After the indented lines of the last frame come the class, with
// its module, and the message, which may have several lines.
func readTraceback(text string) jupyterError {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	from := 0
	for i, line := range lines {
		if strings.HasPrefix(line, "  File \"") {
			from = i
		}
	}
	for from < len(lines)-1 && strings.HasPrefix(lines[from], " ") {
		from++
	}
	class, message, _ := strings.Cut(strings.Join(lines[from:], "\n"), ": ")
	return jupyterError{Name: class[strings.LastIndex(class, ".")+1:], Value: message, Traceback: lines}
}
