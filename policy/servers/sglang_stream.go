package servers

import (
	"context"
	"encoding/json"
	"slices"
)

// mostEvents bounds the events of one response. An event of SGLang repeats all log-probabilities since the first token,
// unless the server was started with --incremental-streaming-output, so that events for every token would make a long
// response as large as the square of its length.
const mostEvents = 32

// streamed reads a response as it grows. Which of an event's lists repeat earlier tokens differs between versions and
// settings of the server; the number of tokens so far, which each event states, tells.
func (d *sglang) streamed(ctx context.Context, r row, body map[string]any) (out response, err error) {
	body["sampling_params"].(map[string]any)["stream_interval"] = (r.maxTokens + mostEvents - 1) / mostEvents
	finished := false
	err = stream(ctx, d.link, "generate", body, r.maxTokens, func(reply sglangReply) error {
		if err := d.sameVersion(reply); err != nil {
			return err
		}
		if err := d.aborted(reply); err != nil {
			return err
		}
		more, err := d.more(reply, len(out.tokens))
		if err != nil {
			return err
		}
		out = out.and(more)
		if n := min(len(reply.IDs), len(out.tokens)); !slices.Equal(reply.IDs[len(reply.IDs)-n:],
			out.tokens[len(out.tokens)-n:]) {
			return d.fault("an event of its stream lists other tokens than its log-probabilities are of")
		}
		finished = finished || reply.ends()
		return nil
	})
	return out, d.ended(err, finished, out)
}

// more reads the tokens of an event that come after the first n.
func (d *sglang) more(reply sglangReply, n int) (response, error) {
	list, count := reply.Meta.Output, reply.Meta.Count
	switch {
	case count >= n && len(list) == count:
		list = list[n:]
	case count >= n && len(list) == count-n:
	default:
		return response{}, d.fault("an event of its stream has %d log-probabilities after %d tokens, and counts %d",
			len(list), n, count)
	}
	return d.entries(list)
}

// ends reports whether a reply names the reason why the response ends.
func (r sglangReply) ends() bool { return len(r.Meta.Finish) > 0 && string(r.Meta.Finish) != "null" }

// aborted is the error of a response that the server gives up in the middle, after it has answered 200.
func (d *sglang) aborted(reply sglangReply) error {
	var reason struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	if reply.ends() && json.Unmarshal(reply.Meta.Finish, &reason) == nil && reason.Type == "abort" {
		return d.fault("it breaks off: %s", shorten(reason.Message))
	}
	return nil
}
