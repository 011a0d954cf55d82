package serve

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"time"
)

// events writes server-sent events.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	begun   bool
}

func newEvents(w http.ResponseWriter) *events {
	return &events{w: w, control: http.NewResponseController(w)}
}

// send writes one event. The answer's headers go out with the first one.
func (e *events) send(body any) error { return e.write(encode(body)) }

func (e *events) write(data []byte) error {
	if !e.begun {
		e.begun = true
		e.w.Header().Set("Content-Type", "text/event-stream")
		e.w.Header().Set("Cache-Control", "no-store")
		e.w.Header().Set("X-Accel-Buffering", "no")
		e.w.WriteHeader(http.StatusOK)
	}
	_ = e.control.SetWriteDeadline(time.Now().Add(writeLimit)) // not every writer has deadlines
	for _, part := range [][]byte{[]byte("data: "), data, []byte("\n")} {
		if _, err := e.w.Write(part); err != nil {
			return err
		}
	}
	return e.control.Flush()
}

// end ends the stream, after an error if there is one.
func (e *events) end(err error) {
	if err != nil {
		if !e.begun {
			refuse(e.w, asAPI(err))
			return
		}
		if e.send(map[string]any{"error": asAPI(err)}) != nil {
			return
		}
	}
	_ = e.write([]byte("[DONE]\n"))
}

// form says how one kind of request writes its answer.
type form struct {
	envelope envelope
	chunk    string // the object of a stream's chunks
	// whole is a choice of a whole answer, and parts are the choices of a stream's chunks, one a chunk.
	whole func(d delta) any
	parts func(d delta) []any
}

// reply runs an answer and writes it, whole or as a stream.
func (s *Server) reply(ctx context.Context, w http.ResponseWriter, a *answer, f form) {
	if !a.p.stream {
		all := make([]delta, len(a.choices))
		err := a.run(ctx, s.scheduler, func(d delta) error {
			all[d.choice].choice = d.choice
			all[d.choice].plus(d)
			return nil
		})
		if err != nil {
			if ctx.Err() == nil {
				refuse(w, asAPI(err))
			}
			return
		}
		choices := make([]any, len(all))
		for i, d := range all {
			choices[i] = f.whole(d)
		}
		body := f.envelope.with(a.weights, choices...)
		u := a.usage()
		body.Usage = &u
		respond(w, http.StatusOK, body)
		return
	}
	out := newEvents(w)
	f.envelope.Object = f.chunk
	err := a.run(ctx, s.scheduler, func(d delta) error {
		for _, part := range f.parts(d) {
			if err := out.send(f.envelope.with(a.weights, part)); err != nil {
				return err
			}
			f.envelope.Prompt = nil // once is enough
		}
		return nil
	})
	if err == nil && a.p.usage {
		body := f.envelope.with(a.weights)
		u := a.usage()
		body.Usage = &u
		err = out.send(body)
	}
	if ctx.Err() == nil {
		out.end(err)
	}
}

// randomName is a name that no other answer has.
func randomName() string {
	var b [12]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
