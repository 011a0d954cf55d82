package openai

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// Call is one request to a path below the server's address. Chat makes its own; other calls are for servers whose API
// has more than chats.
type Call struct {
	Method, Path string
	Query        string        // "" = none
	Body         any           // sent as JSON; nil = no body
	Limit        time.Duration // 0 = the server's
	Bytes        int64         // of the reply at most; 0 = the server's
	// Event gets the data of each event of a reply that is a stream (text/event-stream), in order, without the mark
	// that ends OpenAI's streams; nil = the reply is no stream. An error of Event ends the call and is returned.
	Event func(data []byte) error
}

// Do sends one request and returns the body of the reply, or nothing after a stream. It does not try again. Its errors
// are those of Chat; they are *Error unless ctx has ended or Event has returned the error.
func (c *Client) Do(ctx context.Context, call Call) ([]byte, error) {
	limit, most := cmp.Or(call.Limit, c.server.Limit), cmp.Or(call.Bytes, c.server.Bytes)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := c.request(limited, call)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.broken(limited, limit, Unreachable, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, c.refused(resp)
	}
	if call.Event != nil {
		return nil, c.events(limited, resp, call.Event, limit, most)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil:
		return nil, c.broken(limited, limit, Broken, err)
	case int64(len(data)) > most:
		return nil, c.fault(TooLong, "its reply has more than %d bytes", most)
	}
	return data, nil
}

func (c *Client) request(ctx context.Context, call Call) (*http.Request, error) {
	address := c.address.JoinPath(call.Path)
	address.RawQuery = call.Query
	var body io.Reader
	if call.Body != nil {
		data, err := json.Marshal(call.Body)
		if err != nil {
			return nil, fmt.Errorf("encode a request: %w", err)
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, call.Method, address.String(), body)
	if err != nil {
		return nil, c.fault(Setup, "%v", err)
	}
	if call.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json")
	if call.Event != nil {
		req.Header.Set("Accept", eventStream)
	}
	c.authorise(req)
	return req, nil
}

// authorise puts the server's secret into a request, if there is one.
func (c *Client) authorise(req *http.Request) {
	switch {
	case c.key == "":
	case c.server.Header != "":
		req.Header.Set(c.server.Header, c.key)
	default:
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
}

// Conceal removes the server's secrets, and bytes that are no text, from what it has sent.
func (c *Client) Conceal(text string) string { return c.clean(&text) }

// trusting returns the settings of connections to servers whose certificates descend from those of a PEM file.
func trusting(path string) (*tls.Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, errors.New("the worker cannot read the file")
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("the file holds no certificate (PEM)")
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}
