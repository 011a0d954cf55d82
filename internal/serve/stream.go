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
	// choice is all of a choice, or in a stream what is new of it.
	choice func(d delta) any
	// opening is a chunk before the first one of a choice; nil = none.
	opening func(choice int) any
}

// answering makes a handler of one kind of request from what reads its fields.
func answering(
	read func(*Server, *fields, *params) (*answer, form, *apiError),
) func(*Server, http.ResponseWriter, *http.Request) {
	return func(s *Server, w http.ResponseWriter, r *http.Request) {
		f, failed := readFields(w, r, s.o.BodyBytes)
		if failed != nil {
			refuse(w, failed)
			return
		}
		f.checkModel(s.o.Name)
		p := readParams(f, s.o.Model)
		a, form, failed := read(s, f, &p)
		if failed != nil {
			refuse(w, failed)
			return
		}
		s.reply(r.Context(), w, a, form)
	}
}

// reply runs an answer and writes it. A whole answer is one delta for each choice.
func (s *Server) reply(ctx context.Context, w http.ResponseWriter, a *answer, f form) {
	out, all := newEvents(w), make([]delta, len(a.choices))
	emit := func(d delta) error {
		all[d.choice].plus(d)
		return nil
	}
	if a.p.stream {
		f.envelope.Object, all = f.chunk, nil
		emit = func(d delta) error { return f.stream(out, a, d) }
	}
	err := a.run(ctx, s.scheduler, emit)
	var choices []any
	for _, d := range all {
		choices = append(choices, f.choice(d))
	}
	last, used := f.envelope.with(a.weights, choices...), a.usage()
	last.Usage = &used
	if err == nil && a.p.stream && a.p.usage {
		err = out.send(last)
	}
	switch {
	case ctx.Err() != nil: // the client is gone
	case err == nil && !a.p.stream:
		respond(w, http.StatusOK, last)
	default:
		out.end(err)
	}
}

// stream sends what is new of a choice.
func (f *form) stream(out *events, a *answer, d delta) error {
	if d.first && f.opening != nil {
		if err := out.send(f.envelope.with(a.weights, f.opening(d.choice))); err != nil {
			return err
		}
		f.envelope.Prompt = nil // once is enough
	}
	err := out.send(f.envelope.with(a.weights, f.choice(d)))
	f.envelope.Prompt = nil
	return err
}

// randomName is a name that no other answer has.
func randomName() string {
	var b [12]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
