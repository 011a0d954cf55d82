package service

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
)

// mostBatch is how many calls one request may contain.
const mostBatch = 4096

// collect submits requests, whose keys differ, and waits for all answers. It returns them in the order of the requests.
// It fails if ctx ends.
func (s *Service) collect(ctx context.Context, requests []request) ([]answer, error) {
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
	answers := make([]answer, len(requests))
	for range requests {
		select {
		case a := <-got:
			l.held.Add(-a.size())
			answers[at[a.key]] = a
			delete(at, a.key)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return answers, nil
}

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
	answers, err := s.collect(r.Context(), []request{one})
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
	answers, err := s.collect(r.Context(), requests)
	if err != nil {
		refuse(w, err)
		return
	}
	out := BatchResult{Results: make([]ResultBody, len(answers))}
	for i, a := range answers {
		out.Results[i] = resultBody(a)
	}
	respond(w, http.StatusOK, out)
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
