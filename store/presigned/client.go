package presigned

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/internal/cause"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/s3"
)

// Options say which presigner a store asks.
type Options struct {
	Address string      // https://HOST:PORT; http only on this machine
	Token   string      // the client's
	TLS     *tls.Config // nil: the system's authorities
	// Store completes the store: its Signer, Observer, PartSize and Transport, which leads to the S3 server. The
	// presigner says the rest.
	Store s3.Options
}

// Open asks the presigner which bucket it signs for, and returns the store.
func Open(ctx context.Context, o Options) (*s3.Store, error) {
	c, err := newClient(o)
	if err != nil {
		return nil, err
	}
	var at locationBody
	if err := c.ask(ctx, http.MethodGet, pathStore, nil, &at); err != nil {
		return nil, fmt.Errorf("open the store through %s: %w", c, err)
	}
	options := o.Store
	options.Endpoint, options.Region, options.Bucket, options.Presigner = at.Endpoint, at.Region, at.Bucket, c
	return s3.New(options)
}

// client asks a presigner.
type client struct {
	address string
	token   string
	http    *http.Client
}

// CheckAddress returns an error unless the address is one of a presigner: https, or http on this machine.
func CheckAddress(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.User != nil: // the error of url.Parse repeats the text, which may hold a password
		return errors.New("the presigner's address is no URL, or holds a password: want https://HOST:PORT")
	case u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("the presigner's address %s://%s%s: want https://HOST:PORT", u.Scheme, u.Host, u.Path)
	case u.Scheme == "http" && !onThisMachine(u.Hostname()):
		return fmt.Errorf("the presigner's address %s would send the token and the URLs in plain text: want https://",
			address)
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("the presigner's address %s: want https://HOST:PORT", address)
	}
	return nil
}

func onThisMachine(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.Unmap().IsLoopback()
}

// Bounds of a question: one that has no answer by then may pass, and is asked again by the store.
const (
	answerWithin = 20 * time.Second
	mostAnswer   = 64 << 10 // bytes
)

func newClient(o Options) (*client, error) {
	if err := CheckAddress(o.Address); err != nil {
		return nil, err
	}
	if o.Token == "" {
		return nil, errors.New("the presigner wants a token")
	}
	return &client{strings.TrimSuffix(o.Address, "/"), o.Token, &http.Client{
		Timeout: answerWithin,
		Transport: &http.Transport{TLSClientConfig: o.TLS, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute,
			DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext},
		// A presigner redirects no one, and the token is for it alone.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// String implements s3.Presigner.
func (c *client) String() string { return c.address }

// Presign implements s3.Presigner.
func (c *client) Presign(ctx context.Context, r s3.Request) (string, error) {
	question, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	var answer urlBody
	if err := c.ask(ctx, http.MethodPost, pathPresign, question, &answer); err != nil {
		return "", err
	}
	if answer.URL == "" {
		return "", c.stranger()
	}
	return answer.URL, nil
}

// ask sends one question. Its errors are the store's: ErrUnreachable may pass, and ErrCredentials is a refusal.
func (c *client) ask(ctx context.Context, method, path string, question []byte, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, c.address+path, bytes.NewReader(question))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+c.token)
	answer, err := c.http.Do(r)
	if err != nil {
		return c.lost(ctx, err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	if err != nil {
		return c.lost(ctx, err)
	}
	if answer.StatusCode == http.StatusOK {
		if json.Unmarshal(data, into) != nil {
			return c.stranger() // the error would repeat a part of the answer
		}
		return nil
	}
	var said errorBody
	if json.Unmarshal(data, &said) != nil || said.Error == "" {
		said.Error = answer.Status
	}
	switch {
	case answer.StatusCode == http.StatusUnauthorized, answer.StatusCode == http.StatusForbidden:
		return fmt.Errorf("%w by the presigner %s: %s", store.ErrCredentials, c, said.Error)
	case answer.StatusCode == http.StatusTooManyRequests, answer.StatusCode >= http.StatusInternalServerError:
		return fmt.Errorf("%w: the presigner %s answers %d: %s", store.ErrUnreachable, c, answer.StatusCode, said.Error)
	}
	return fmt.Errorf("the presigner %s answers %d: %s", c, answer.StatusCode, said.Error)
}

// lost is the error of a question without an answer.
func (c *client) lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: the presigner %s does not answer: %w", store.ErrUnreachable, c, cause.Of(err))
}

func (c *client) stranger() error {
	return fmt.Errorf("%s answers as no presigner does; check the address", c)
}
