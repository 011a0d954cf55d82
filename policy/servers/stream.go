package servers

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/openai"
)

// stream is generation for a reply that is a stream of events; event gets the JSON of each.
func (l *link) stream(ctx context.Context, path string, body any, tokens int, event func(data []byte) error) error {
	return l.call(ctx, openai.Call{Method: http.MethodPost, Path: path, Body: body,
		Bytes: leastRow + perEvent*int64(tokens), Event: func(data []byte) error {
			var failed struct {
				Error json.RawMessage `json:"error"`
			}
			if json.Unmarshal(data, &failed) == nil && len(failed.Error) > 0 && string(failed.Error) != "null" {
				return l.fault("it breaks off: %s", shorten(string(failed.Error)))
			}
			return event(data)
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
	body["stream"] = true
	finished := false
	err = l.stream(ctx, "v1/completions", body, r.maxTokens, func(data []byte) error {
		var reply completionReply
		if err := json.Unmarshal(data, &reply); err != nil {
			return l.fault("its stream is not the JSON that was expected: %v", badinput.JSON(err))
		}
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
