package service

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/sandbox"
)

// SandboxFusion's POST /run_code. The fields, the defaults and the meaning of the statuses follow its documentation
// (docs/api/run-code-run-code-post) and its server's models, as of 2025.
//
// Its run_timeout is wall-clock time, and so it is here: the CPU limit and the wall limit both have that length, and a
// verdict depends on load as it does there. compile_timeout has no effect, since nothing is compiled.

type fusionRequest struct {
	CompileTimeout *float64           `json:"compile_timeout"`
	RunTimeout     *float64           `json:"run_timeout"`
	MemoryLimitMB  *int64             `json:"memory_limit_MB"`
	Code           *string            `json:"code"`
	Stdin          *string            `json:"stdin"`
	Language       *string            `json:"language"`
	Files          map[string]*string `json:"files"` // base64; null entries are ignored
	FetchFiles     []string           `json:"fetch_files"`
}

type fusionResponse struct {
	Status        string            `json:"status"`
	Message       string            `json:"message"`
	CompileResult *fusionRun        `json:"compile_result"`
	RunResult     *fusionRun        `json:"run_result"`
	PodName       *string           `json:"executor_pod_name"`
	Files         map[string]string `json:"files"`
}

type fusionRun struct {
	Status        string   `json:"status"`
	ExecutionTime *float64 `json:"execution_time"`
	ReturnCode    *int     `json:"return_code"`
	Stdout        *string  `json:"stdout"`
	Stderr        *string  `json:"stderr"`
}

const (
	fusionSuccess = "Success"
	fusionFailed  = "Failed"
	fusionError   = "SandboxError"
)

// fusionMemory is used for SandboxFusion's "no limit".
const fusionMemory = 4 << 30

func (s *Service) serveFusion(w http.ResponseWriter, r *http.Request) {
	var body fusionRequest
	done, err := s.body(w, r, &body, false)
	if err != nil {
		invalid(w, err)
		return
	}
	defer done()
	call, err := body.call()
	if err != nil {
		invalid(w, err)
		return
	}
	call.Trace = r.Header.Get(traceHeader)
	a, err := s.answerTo(r.Context(), request{key: rand.Text(), call: call})
	if err != nil {
		a.err = err
	}
	respond(w, http.StatusOK, fusionAnswer(a))
}

func (b fusionRequest) call() (sandbox.Call, error) {
	switch {
	case b.Code == nil:
		return sandbox.Call{}, malformed("code", "Field required")
	case b.Language == nil:
		return sandbox.Call{}, malformed("language", "Field required")
	}
	timeout := 10.0
	if b.RunTimeout != nil {
		timeout = *b.RunTimeout
	}
	limit, err := duration("run_timeout", timeout)
	if err != nil || limit <= 0 {
		return sandbox.Call{}, malformed("run_timeout", fmt.Sprintf("run_timeout is %g, it must be above 0", timeout))
	}
	c := sandbox.Call{Language: *b.Language, Code: *b.Code, Collect: b.FetchFiles,
		Limits: sandbox.Limits{CPU: limit, Wall: limit}}
	if c.Limits.MemoryBytes, err = fusionMemoryLimit(b.MemoryLimitMB); err != nil {
		return sandbox.Call{}, err
	}
	if b.Stdin != nil {
		c.Stdin = *b.Stdin
	}
	c.Files, err = fusionFiles(b.Files)
	return c, err
}

// fusionMemoryLimit converts a limit in MiB. A missing limit, and one that is not above 0, means "no limit".
func fusionMemoryLimit(mb *int64) (int64, error) {
	const most = int64(1 << 20) // MiB; checked before the multiplication, and equal to sandbox.MostLimits
	switch {
	case mb == nil || *mb <= 0:
		return fusionMemory, nil
	case *mb > most:
		return 0, malformed("memory_limit_MB", fmt.Sprintf("memory_limit_MB is %d, at most %d are taken", *mb, most))
	}
	return *mb << 20, nil
}

// fusionFiles decodes files and sorts them by name.
func fusionFiles(named map[string]*string) (files []sandbox.File, err error) {
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if named[name] == nil {
			continue
		}
		content, err := base64.StdEncoding.DecodeString(*named[name])
		if err != nil {
			return nil, malformed("files."+name, "not base64: "+err.Error())
		}
		files = append(files, sandbox.File{Name: name, Content: content})
	}
	return files, nil
}

// fusionAnswer converts an answer to SandboxFusion's form.
func fusionAnswer(a answer) fusionResponse {
	out := fusionResponse{Status: fusionFailed, Files: map[string]string{}}
	if a.err != nil {
		out.Status, out.Message = fusionError, a.err.Error()
		return out
	}
	r := a.result
	took := r.Timing.Wall.Seconds()
	out.RunResult = &fusionRun{Status: "Finished", ExecutionTime: &took, Stdout: &r.Stdout, Stderr: &r.Stderr}
	switch r.Status {
	case sandbox.StatusOK:
		out.Status = fusionSuccess
		out.RunResult.ReturnCode = returnCode(r)
	case sandbox.StatusTimeoutWall, sandbox.StatusTimeoutCPU:
		out.RunResult.Status = "TimeLimitExceeded"
	default:
		out.RunResult.ReturnCode = returnCode(r)
	}
	for _, f := range r.Files {
		out.Files[f.Name] = base64.StdEncoding.EncodeToString(f.Content)
	}
	return out
}

// returnCode is the exit status, or minus the signal, as in Python. It is 0 only if the verdict is ok.
func returnCode(r sandbox.Result) *int {
	code := r.ExitCode
	if r.Signal != "" {
		code = -int(unix.SignalNum(r.Signal))
	}
	if code == 0 && r.Status != sandbox.StatusOK {
		code = 1
	}
	return &code
}

// validation is the body of FastAPI's status 422, which SandboxFusion's clients expect.
type validation struct {
	Detail []validationDetail `json:"detail"`
}

type validationDetail struct {
	Type string   `json:"type"`
	Loc  []string `json:"loc"`
	Msg  string   `json:"msg"`
}

// invalid refuses a malformed request as FastAPI does, and other requests as everywhere else.
func invalid(w http.ResponseWriter, err error) {
	e := asHTTP(err)
	if e.code != http.StatusBadRequest {
		refuse(w, err)
		return
	}
	loc := []string{"body"}
	if e.detail.Field != "" {
		loc = append(loc, e.detail.Field)
	}
	respond(w, http.StatusUnprocessableEntity, validation{[]validationDetail{{"value_error", loc, e.detail.Message}}})
}
