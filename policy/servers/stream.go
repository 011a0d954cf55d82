package servers

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/openai"
)

// stream is generation for a reply that is a stream of events, each of which is a T.
func stream[T any](ctx context.Context, l *link, path string, body map[string]any, tokens int,
	event func(T) error) error {
	body["stream"] = true
	return l.call(ctx, openai.Call{Method: http.MethodPost, Path: path, Body: body,
		Bytes: leastRow + perEvent*int64(tokens), Event: func(data []byte) error {
			var failed struct {
				Error json.RawMessage `json:"error"`
			}
			if json.Unmarshal(data, &failed) == nil && len(failed.Error) > 0 && string(failed.Error) != "null" {
				return l.fault("it breaks off: %s", shorten(string(failed.Error)))
			}
			var part T
			if err := json.Unmarshal(data, &part); err != nil {
				return l.fault("its stream is not the JSON that was expected: %v", badinput.JSON(err))
			}
			return event(part)
		}}, nil)
}

// streams reports whether a row is streamed.
func (l *link) streams(r row) bool { return r.maxTokens >= l.StreamFrom && r.top == 0 }

// completed asks for a response in OpenAI's form, as a stream if the row is streamed; part reads its tokens.
func (l *link) completed(ctx context.Context, r row, body map[string]any,
	part func(row, completionReply) (response, error)) (response, error) {
	if l.streams(r) {
		return l.streamed(ctx, r, body, part)
	}
	var reply completionReply
	if err := l.generation(ctx, "v1/completions", body, r.maxTokens, &reply); err != nil {
		return response{}, err
	}
	return part(r, reply)
}

// streamed reads a response in OpenAI's form as it grows: each event has some of its tokens, which part reads.
func (l *link) streamed(ctx context.Context, r row, body map[string]any,
	part func(row, completionReply) (response, error)) (out response, err error) {
	finished := false
	err = stream(ctx, l, "v1/completions", body, r.maxTokens, func(reply completionReply) error {
		more, err := part(r, reply)
		if err != nil {
			return err
		}
		if len(more.logProbs) != len(more.tokens) {
			return l.fault("a part of its response has %d tokens and %d log-probabilities", len(more.tokens),
				len(more.logProbs))
		}
		out = out.and(more)
		finished = finished || reply.Choices[0].Finish != ""
		return nil
	})
	return out, l.ended(err, finished, out)
}

// ended is the error of a stream; a stream that does not say why it ends is one.
func (l *link) ended(err error, finished bool, out response) error {
	if err == nil && !finished {
		return l.fault("its stream ends after %d tokens and does not say why", len(out.tokens))
	}
	return err
}
