package tinker

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/openai"
)

// link is a server that is connected.
type link struct {
	Server
	client *openai.Client
	wait   func(ctx context.Context, d time.Duration) error
}

// Whether a request may be sent a second time after its fate is unknown.
const (
	repeatable = true
	once       = false
)

// post sends a request and decodes its reply. It tries again after errors that may pass: if the request is not
// repeatable, only where the server has certainly not taken it.
func (l *link) post(ctx context.Context, path string, body, into any, repeat bool) error {
	return l.try(ctx, func() error {
		return l.once(ctx, openai.Call{Method: http.MethodPost, Path: path, Body: body, Limit: l.limit(),
			Bytes: mostAnswer}, into)
	}, func(e *openai.Error) bool {
		return e.Retry() && (repeat || e.Kind == openai.Unreachable || e.Kind == openai.Throttled)
	})
}

// get asks for facts.
func (l *link) get(ctx context.Context, path string, into any) error {
	return l.try(ctx, func() error {
		return l.once(ctx, openai.Call{Method: http.MethodGet, Path: path, Limit: l.limit(),
			Bytes: mostAnswer}, into)
	}, (*openai.Error).Retry)
}

// throttledMost is how many times as many tries a request may need where the server says that it has too much to do.
const throttledMost = 20

func (l *link) try(ctx context.Context, send func() error, again func(*openai.Error) bool) error {
	failures, throttled := 0, 0
	for {
		err := send()
		if err == nil || ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
		var known *openai.Error
		if !errors.As(err, &known) || !again(known) {
			return l.named(err)
		}
		if known.Kind == openai.Throttled {
			throttled++
		} else {
			failures++
		}
		if failures >= l.Attempts || throttled >= throttledMost*l.Attempts {
			return l.named(err)
		}
		if err := l.wait(ctx, known.Pause(max(1, failures))); err != nil {
			return err
		}
	}
}

func (l *link) once(ctx context.Context, call openai.Call, into any) error {
	data, err := l.client.Do(ctx, call)
	if err != nil || into == nil {
		return err
	}
	return l.decode(data, call.Path, into)
}

func (l *link) decode(data []byte, path string, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return l.fault("its reply to %s is not the JSON that was expected: %v", path, badinput.JSON(err))
	}
	return nil
}

// mostAnswer bounds the reply to a request that is answered at once, in bytes.
const mostAnswer = 1 << 20

// limit bounds the time of a request that is answered at once.
func (l *link) limit() time.Duration { return min(seconds(l.Seconds), time.Minute) }

// pollLimit bounds one question for a result. Servers hold the question until the result is there, or for so long.
const pollLimit = 45 * time.Second

// pending is the reply to a request whose result comes later.
type pending struct {
	Request string `json:"request_id"`
}

// future sends a request and waits for its result. refused tells errors after which it certainly was not carried out.
func (l *link) future(ctx context.Context, path string, body, into any, repeat bool) error {
	var p pending
	if err := l.post(ctx, path, body, &p, repeat); err != nil {
		return err
	}
	if p.Request == "" {
		return l.fault("its reply to %s names no request_id", path)
	}
	return l.result(ctx, path, p.Request, into)
}

// refused reports whether the server has not taken a request.
func refused(err error) bool {
	var known *openai.Error
	if !errors.As(err, &known) {
		return false
	}
	switch known.Kind {
	case openai.Unreachable, openai.Throttled, openai.Rejected, openai.Denied, openai.NotFound, openai.Setup:
		return true
	}
	return false
}

// outcome is what results have in common.
type outcome struct {
	Type     string  `json:"type"`
	Error    *string `json:"error"`
	Category string  `json:"category"`
}

// result asks for the result of a request until it is there. Asking changes nothing, so every error that may pass is
// followed by another question, at most Attempts in a row.
func (l *link) result(ctx context.Context, path, request string, into any) error {
	limited, cancel := context.WithTimeout(ctx, seconds(l.Seconds))
	defer cancel()
	failures := 0
	for {
		done, err := l.poll(limited, path, request, into)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case done:
			return err
		case limited.Err() != nil:
			return l.fault("no result of %s in %v", path, seconds(l.Seconds))
		}
		pause := pollPause
		var known *openai.Error
		var wrong *Fault
		switch {
		case err == nil:
			failures = 0
		case errors.As(err, &known) && (known.Status == http.StatusRequestTimeout || known.Kind == openai.Hung):
			failures = 0 // it is not finished
		case errors.As(err, &known) && known.Retry(), errors.As(err, &wrong):
			if failures++; failures >= l.Attempts {
				return l.named(err)
			}
			if known != nil {
				pause = known.Pause(failures)
			}
		default: // expired, or of a server that was started again
			return l.named(err)
		}
		if err := l.wait(limited, pause); err != nil && ctx.Err() == nil {
			return l.fault("no result of %s in %v", path, seconds(l.Seconds))
		}
	}
}

// pollPause is the time between two questions for a result, of a server that answers that there is none yet.
const pollPause = 50 * time.Millisecond

// poll asks once. done says that the request has ended: carried out, or failed for good, which err says.
func (l *link) poll(ctx context.Context, path, request string, into any) (done bool, err error) {
	data, err := l.client.Do(ctx, openai.Call{Method: http.MethodPost, Path: "api/v1/retrieve_future",
		Body: map[string]string{"request_id": request}, Limit: min(pollLimit, seconds(l.Seconds))})
	if statusOf(err) == http.StatusBadRequest { // SkyRL answers so where others answer with an error in the result
		return true, l.named(err)
	}
	if err != nil {
		return false, err
	}
	var o outcome
	if err := l.decode(data, path, &o); err != nil {
		return false, err
	}
	if o.Type == "try_again" {
		return false, nil
	}
	if o.Error != nil {
		return true, l.fault("%s failed (%s): %s", path, shorten(o.Category), shorten(*o.Error))
	}
	if into == nil {
		return true, nil
	}
	return true, l.decode(data, path, into)
}

// shorten bounds a text that a server has sent.
func shorten(text string) string {
	if len(text) > 300 {
		return text[:300] + "…"
	}
	return text
}
