package service

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
)

// The requests of code-judge (its README, "API", and its models): /judge and /run, each also with /batch and
// /long-batch. Its limits are ten seconds for the program and fifteen for its process, 256 MB plus 128 MB for the
// interpreter, and a queue life of four seconds, or an hour in a long batch. It returns 1,000 characters of stdout and
// of stderr.

const (
	judgeLife     = 4 * time.Second
	judgeLongLife = time.Hour
	judgeTexts    = 1000 // characters
)

var judgeLimits = sandbox.Limits{CPU: 10 * time.Second, Wall: 15 * time.Second, MemoryBytes: 384 << 20}

type submission struct {
	SubID          *string           `json:"sub_id"`
	Type           *string           `json:"type"`
	Options        map[string]string `json:"options"`
	Solution       *string           `json:"solution"`
	Input          *string           `json:"input"`
	ExpectedOutput *string           `json:"expected_output"`
}

type batchSubmission struct {
	SubID       *string      `json:"sub_id"`
	Type        *string      `json:"type"`
	Submissions []submission `json:"submissions"`
}

// judgeResult is the answer to /judge.
type judgeResult struct {
	SubID      string  `json:"sub_id"`
	Success    bool    `json:"success"`     // the program ran and printed the expected output
	RunSuccess bool    `json:"run_success"` // the program ran and exited with 0
	Cost       float64 `json:"cost"`        // seconds
	Reason     string  `json:"reason"`
}

// runResult is the answer to /run.
type runResult struct {
	judgeResult
	Stdout *string `json:"stdout"`
	Stderr *string `json:"stderr"`
}

type batchResult[T any] struct {
	SubID   string `json:"sub_id"`
	Results []T    `json:"results"`
}

func (s *Service) serveJudge(w http.ResponseWriter, r *http.Request) { serveOne(s, w, r, judged) }

func (s *Service) serveJudgeRun(w http.ResponseWriter, r *http.Request) { serveOne(s, w, r, ran) }

func (s *Service) serveJudgeBatch(w http.ResponseWriter, r *http.Request) {
	serveMany(s, w, r, judgeLife, judged)
}

func (s *Service) serveJudgeRunBatch(w http.ResponseWriter, r *http.Request) {
	serveMany(s, w, r, judgeLife, ran)
}

func (s *Service) serveJudgeLongBatch(w http.ResponseWriter, r *http.Request) {
	serveMany(s, w, r, judgeLongLife, judged)
}

func (s *Service) serveJudgeRunLongBatch(w http.ResponseWriter, r *http.Request) {
	serveMany(s, w, r, judgeLongLife, ran)
}

// serveJudgeStatus answers the request by which clients find out whether the service is busy.
func (s *Service) serveJudgeStatus(w http.ResponseWriter, _ *http.Request) {
	jobs, _ := s.queue.depth()
	respond(w, http.StatusOK, struct {
		Queue   int `json:"queue"`
		Workers int `json:"num_workers"`
	}{jobs, s.workers})
}

func serveOne[T any](s *Service, w http.ResponseWriter, r *http.Request, put func(submission, answer) T) {
	var body submission
	done, err := s.body(w, r, &body, false)
	if err != nil {
		invalid(w, err)
		return
	}
	defer done()
	out, err := judge(s, r, []submission{body}, judgeLife, put)
	if err != nil {
		invalid(w, err)
		return
	}
	respond(w, http.StatusOK, out[0])
}

func serveMany[T any](s *Service, w http.ResponseWriter, r *http.Request, life time.Duration,
	put func(submission, answer) T) {
	var body batchSubmission
	done, err := s.body(w, r, &body, false)
	if err != nil {
		invalid(w, err)
		return
	}
	defer done()
	if len(body.Submissions) == 0 {
		invalid(w, malformed("submissions", "List should have at least 1 item after validation, not 0"))
		return
	}
	if n := len(body.Submissions); n > mostBatch {
		invalid(w, malformed("submissions",
			fmt.Sprintf("submissions has %d entries, at most %d are taken", n, mostBatch)))
		return
	}
	if body.Type != nil && *body.Type != "batch" {
		invalid(w, malformed("type", "Input should be 'batch'"))
		return
	}
	out, err := judge(s, r, body.Submissions, life, put)
	if err != nil {
		invalid(w, err)
		return
	}
	respond(w, http.StatusOK, batchResult[T]{named(body.SubID), out})
}

// judge runs submissions and converts each answer with put. It fails if a submission is malformed.
func judge[T any](s *Service, r *http.Request, subs []submission, life time.Duration,
	put func(submission, answer) T) ([]T, error) {
	requests := make([]request, len(subs))
	for i := range subs {
		call, err := subs[i].call()
		if err != nil {
			return nil, err
		}
		id := named(subs[i].SubID)
		subs[i].SubID, call.Trace = &id, r.Header.Get(traceHeader)
		requests[i] = request{key: rand.Text(), call: call, life: life}
	}
	out, err := collect(r.Context(), s, requests, func(i int, a answer) T { return put(subs[i], a) })
	if err != nil {
		out = make([]T, len(subs))
		for i := range out {
			out[i] = put(subs[i], answer{err: err})
		}
	}
	return out, nil
}

func named(id *string) string {
	if id == nil || *id == "" {
		return rand.Text()
	}
	return *id
}

func (b submission) call() (sandbox.Call, error) {
	switch {
	case b.Type == nil:
		return sandbox.Call{}, malformed("type", "Field required")
	case *b.Type != "python" && *b.Type != "cpp" && *b.Type != "math":
		return sandbox.Call{}, malformed("type",
			fmt.Sprintf("Input should be 'python', 'cpp' or 'math', not %q", *b.Type))
	case b.Solution == nil:
		return sandbox.Call{}, malformed("solution", "Field required")
	}
	c := sandbox.Call{Language: *b.Type, Code: *b.Solution, Limits: judgeLimits}
	if b.Input != nil {
		c.Stdin = *b.Input
	}
	return c, nil
}

// judged converts an answer to a submission, without its texts.
func judged(b submission, a answer) judgeResult {
	out := judgeResult{SubID: *b.SubID, Reason: reason(a)}
	if a.err != nil {
		return out
	}
	out.Cost = a.result.Timing.Wall.Seconds()
	out.RunSuccess = a.result.Status == sandbox.StatusOK
	out.Success = out.RunSuccess &&
		(b.ExpectedOutput == nil || strings.TrimSpace(a.result.Stdout) == strings.TrimSpace(*b.ExpectedOutput))
	return out
}

func ran(b submission, a answer) runResult {
	out := runResult{judgeResult: judged(b, a)}
	if a.err == nil {
		stdout, stderr := characters(a.result.Stdout, judgeTexts), characters(a.result.Stderr, judgeTexts)
		out.Stdout, out.Stderr = &stdout, &stderr
	}
	return out
}

// reason returns code-judge's word for a failure of the run itself.
func reason(a answer) string {
	switch {
	case a.err != nil:
		return map[sandbox.Status]string{
			sandbox.StatusQueueTimeout: "queue_timeout", sandbox.StatusInfrastructure: "internal_error",
			"": "invalid_input",
		}[sandbox.StatusOf(a.err)]
	case a.result.Status == sandbox.StatusTimeoutWall, a.result.Status == sandbox.StatusTimeoutCPU:
		return "worker_timeout"
	}
	return ""
}

// characters returns the first n characters of a text.
func characters(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return strings.Clone(s[:i]) // the rest need not be held
		}
	}
	return s
}
