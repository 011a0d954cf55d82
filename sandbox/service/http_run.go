package service

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"golang.org/x/sync/semaphore"

	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

// mostBatch is how many calls one request may contain.
const mostBatch = 4096

// mostAnswer is how many bytes of JSON the answer to a batch may have.
const mostAnswer = rpc.MostMessage

// collect submits requests, whose keys differ, and waits for all answers. Each answer is converted with put when it
// comes, so that only what a batch returns is held; the results are in the order of the requests. It fails if ctx ends.
func collect[T any](ctx context.Context, s *Service, requests []request, put func(i int, a answer) T) ([]T, error) {
	got := make(chan answer, len(requests))
	l := &receiver{client: asking(ctx), deliver: func(a answer) { got <- a }}
	at := make(map[string]int, len(requests))
	defer func() {
		l.gone.Store(true)
		for key := range at {
			s.leave(l, key)
		}
		s.queue.wake()
	}()
	go func() { // answers are received while further requests wait for room
		for _, r := range requests {
			if s.submit(ctx, l, r) != nil {
				return
			}
		}
	}()
	for i, r := range requests {
		at[r.key] = i
	}
	out := make([]T, len(requests))
	for range requests {
		select {
		case a := <-got:
			i := at[a.key]
			out[i] = put(i, a)
			full := l.full()
			if l.held.Add(-a.size()); full {
				s.queue.wake() // the jobs that waited for room
			}
			delete(at, a.key)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return out, nil
}

// whole keeps an answer as it is.
func whole(_ int, a answer) answer { return a }

// request converts one call.
func (b CallBody) request(r *http.Request) (request, error) {
	call, preset, err := b.call()
	if err != nil {
		return request{}, err
	}
	if call.Trace == "" {
		call.Trace = r.Header.Get(traceHeader)
	}
	life, err := duration("queue_life_seconds", b.QueueLife)
	if err != nil {
		return request{}, err
	}
	if life == 0 && b.Preset != "" {
		life = preset.QueueLife
	}
	key := b.Key
	if key == "" {
		key = rand.Text()
	}
	return request{key: key, call: call, life: life}, nil
}

func (s *Service) serveRun(w http.ResponseWriter, r *http.Request) {
	var body CallBody
	done, err := s.body(w, r, &body, true)
	if err != nil {
		refuse(w, err)
		return
	}
	defer done()
	one, err := body.request(r)
	if err != nil {
		refuse(w, err)
		return
	}
	answers, err := collect(r.Context(), s, []request{one}, whole)
	if err == nil {
		err = answers[0].err
	}
	w.Header().Set(traceHeader, one.call.Trace)
	if err != nil {
		refuse(w, err)
		return
	}
	respond(w, http.StatusOK, resultBody(answers[0]))
}

func (s *Service) serveBatch(w http.ResponseWriter, r *http.Request) {
	var body BatchBody
	done, err := s.body(w, r, &body, true)
	if err != nil {
		refuse(w, err)
		return
	}
	defer done()
	requests, err := body.requests(r)
	if err != nil {
		refuse(w, err)
		return
	}
	out := batchWriter{room: s.bodies}
	defer out.release()
	results, err := collect(r.Context(), s, requests, out.put)
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_, _ = io.WriteString(w, `{"results":[`) // the client has gone otherwise, here and below
	for i, text := range results {
		if i > 0 {
			_, _ = io.WriteString(w, ",")
		}
		_, _ = w.Write(text)
	}
	_, _ = io.WriteString(w, "]}\n")
}

// batchWriter converts the answers of a batch to JSON. What they print is others' choice, so their bytes are bounded
// for one batch, and reserved with those of the bodies that the service holds. An error replaces a result beyond the
// bounds; the verdict is kept, so that the same call with the same key gets it in another request.
type batchWriter struct {
	room *semaphore.Weighted
	held int64
}

func (b *batchWriter) put(_ int, a answer) json.RawMessage {
	n := jsonSize(a)
	switch {
	case a.err != nil:
	case b.held+n > mostAnswer:
		a.err = httpError{http.StatusRequestEntityTooLarge, ErrorDetail{kindTooLarge, "",
			fmt.Sprintf("the results of the batch have more than %d bytes, and this one is left out: send the call in "+
				"a smaller batch", mostAnswer)}}
	case !b.room.TryAcquire(n):
		a.err = httpError{http.StatusServiceUnavailable, ErrorDetail{kindBusy, "",
			"there is no room for the result now: send the call again later"}}
	default:
		b.held += n
	}
	text, err := json.Marshal(resultBody(a))
	if err != nil {
		panic(fmt.Sprintf("service: encode a result: %v", err))
	}
	return text
}

func (b *batchWriter) release() { b.room.Release(b.held) }

// jsonSize is how many bytes an answer has as JSON, or a few more.
func jsonSize(a answer) int64 {
	n := int64(overhead)
	r := a.result
	for _, text := range []string{a.key, a.trace, r.Stdout, r.Stderr, r.Traceback, r.Value} {
		for i := range len(text) {
			switch c := text[i]; {
			case c == '\n', c == '\t', c == '\r', c == '"', c == '\\':
				n += 2
			case c < ' ', c == '<', c == '>', c == '&', c == 0x7f:
				n += 6
			default:
				n++
			}
		}
	}
	for _, f := range a.result.Files {
		n += overhead + int64(len(f.Name)) + int64(len(f.Content))/3*4
	}
	return n
}

// requests converts a batch's calls. A malformed call refuses the whole batch before anything has run.
func (b BatchBody) requests(r *http.Request) ([]request, error) {
	if len(b.Calls) == 0 || len(b.Calls) > mostBatch {
		return nil, malformed("calls", fmt.Sprintf("calls has %d entries, 1 to %d are taken", len(b.Calls), mostBatch))
	}
	out, seen := make([]request, len(b.Calls)), map[string]int{}
	for i, c := range b.Calls {
		at := fmt.Sprintf("calls[%d]", i)
		one, err := c.request(r)
		if err == nil {
			err = one.call.Validate()
		}
		if err != nil {
			return nil, inCall(err, at)
		}
		if first, repeated := seen[one.key]; repeated {
			return nil, malformed(at+".key", fmt.Sprintf("%s: key repeats that of calls[%d]", at, first))
		}
		out[i], seen[one.key] = one, i
	}
	return out, nil
}
