package openai

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"
)

// eventStream is the content type of streams (server-sent events).
const eventStream = "text/event-stream"

// endOfEvents is the data of the event that ends OpenAI's streams. Other servers just end them.
const endOfEvents = "[DONE]"

// events reads a stream. It ends with the server's mark or with the body; whether the response is whole then, the
// receiver of the events knows.
func (c *Client) events(ctx context.Context, resp *http.Response, event func([]byte) error, limit time.Duration,
	most int64) error {
	if kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || kind != eventStream {
		return c.fault(Malformed, "its reply is no stream of events: content type %q",
			resp.Header.Get("Content-Type"))
	}
	body := &io.LimitedReader{R: resp.Body, N: most + 1}
	lines := bufio.NewReaderSize(body, 64<<10)
	var data []byte // of the event so far
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			switch {
			case body.N <= 0:
				return c.fault(TooLong, "its reply has more than %d bytes", most)
			case !errors.Is(err, io.EOF):
				return c.broken(ctx, limit, Broken, err)
			}
			return nil // what is left is no whole event
		}
		line = bytes.TrimRight(line, "\r\n")
		switch field, value, _ := bytes.Cut(line, []byte(":")); {
		case len(line) == 0 && data != nil:
			if string(data) == endOfEvents {
				return nil
			}
			if err := event(data); err != nil {
				return err
			}
			data = nil
		case string(field) == "data":
			if data != nil {
				data = append(data, '\n')
			}
			data = append(data, bytes.TrimPrefix(value, []byte(" "))...)
		}
	}
}
