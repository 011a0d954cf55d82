package openai

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Download writes the body of the reply to a GET of the path to to, at most most bytes, and returns how many there
// were. It follows one redirect, as servers do that keep files elsewhere. The secret is sent to the server of the
// recipe alone, and a file of an https server is read from no other. Its errors are those of Do; an error of to is
// returned as it is.
func (c *Client) Download(ctx context.Context, path string, to io.Writer, limit time.Duration, most int64) (int64,
	error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := c.request(limited, Call{Method: http.MethodGet, Path: path})
	if err != nil {
		return 0, err
	}
	resp, err := c.http.Do(req)
	if err == nil && resp.StatusCode >= 300 && resp.StatusCode < 400 {
		resp.Body.Close()
		if req, err = c.redirected(limited, resp); err != nil {
			return 0, err
		}
		resp, err = c.http.Do(req)
	}
	if err != nil {
		var named *url.Error // which repeats the address, and that of a redirect is a secret
		if errors.As(err, &named) {
			err = named.Err
		}
		return 0, c.broken(limited, limit, Unreachable, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, c.refused(resp)
	}
	w := &watched{to: to}
	n, err := io.Copy(w, io.LimitReader(resp.Body, most+1))
	switch {
	case w.err != nil:
		return n, w.err
	case err != nil:
		return n, c.broken(limited, limit, Broken, err)
	case n > most:
		return n, c.fault(TooLong, "its file has more than %d bytes", most)
	}
	return n, nil
}

// watched notes the error of a writer, which is not the server's fault.
type watched struct {
	to  io.Writer
	err error
}

// Write implements io.Writer.
func (w *watched) Write(p []byte) (n int, err error) {
	n, w.err = w.to.Write(p)
	return n, w.err
}

// redirected is the request that a redirect asks for.
func (c *Client) redirected(ctx context.Context, resp *http.Response) (*http.Request, error) {
	to, err := resp.Location()
	if err != nil {
		return nil, c.fault(NotFound, "it redirects and does not say where to")
	}
	if to.Scheme != "https" && (to.Scheme != "http" || c.address.Scheme == "https") {
		return nil, c.fault(NotFound, "it redirects to an address that is not https")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return nil, c.fault(NotFound, "it redirects to something that is no address")
	}
	if sameServer(to, c.address) {
		c.authorise(req)
	}
	return req, nil
}

// sameServer reports whether two addresses are of one server.
func sameServer(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }
