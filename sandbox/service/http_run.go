package service

import (
	"context"
	"crypto/rand"
	"net/http"
)

// answerTo submits a request and waits for its answer. It fails if ctx ends.
func (s *Service) answerTo(ctx context.Context, r request) (answer, error) {
	got := make(chan answer, 1)
	l := &receiver{client: asking(ctx), deliver: func(a answer) { got <- a }}
	if err := s.submit(ctx, l, r); err != nil {
		return answer{}, err
	}
	select {
	case a := <-got:
		return a, nil
	case <-ctx.Done():
		l.gone.Store(true)
		s.leave(l, r.key)
		s.queue.wake()
		return answer{}, ctx.Err()
	}
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
	a, err := s.answerTo(r.Context(), one)
	if err == nil {
		err = a.err
	}
	w.Header().Set(traceHeader, one.call.Trace)
	if err != nil {
		refuse(w, err)
		return
	}
	out := ResultOf(a.result)
	out.Key, out.Trace = a.key, a.trace
	respond(w, http.StatusOK, out)
}
