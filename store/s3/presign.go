package s3

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A store without credentials asks a Presigner before each request which URL it may send the request to. The URL, its
// query and the headers named in the Request are signed, so it permits that one request. Presigned URLs exist only
// inside the transport below: neither the client library, nor an observer, nor an error sees one.

// Presigner gives the right to send one request.
type Presigner interface {
	// Presign returns the URL that the request may be sent to, for a short time. It is a secret. An error that wraps
	// store.ErrUnreachable may pass, so the store asks again; every other error is final. Errors hold no URL. Safe for
	// concurrent use.
	Presign(ctx context.Context, r Request) (string, error)
	// String names the presigner for messages, without secrets.
	String() string
}

// Presign returns a URL that permits the request until it expires, at least a second from now. It sends nothing.
func (s *Store) Presign(ctx context.Context, r Request, expires time.Duration) (string, error) {
	if _, err := r.Operation(); err != nil {
		return "", err
	}
	header := http.Header{}
	for name, value := range r.Header {
		header.Set(name, value)
	}
	signed, err := s.client.PresignHeader(ctx, r.Method, s.options.Bucket, r.Key, expires, r.Query, header)
	if err != nil {
		return "", s.translate("presign", r.Key, err)
	}
	return signed.String(), nil
}

// Location returns where the bucket is: the server's URL, the region and the bucket's name.
func (s *Store) Location() (endpoint, region, bucket string) {
	scheme := "http://"
	if s.options.Secure {
		scheme = "https://"
	}
	return scheme + s.options.Endpoint, s.options.Region, s.options.Bucket
}

// presigning sends each request to the URL that a presigner gives for it.
type presigning struct {
	next   http.RoundTripper
	by     Presigner
	bucket string
}

// RoundTrip implements http.RoundTripper.
func (t presigning) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, err := t.presigned(r)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // nothing was read that matters
		}
		return nil, &presignError{err}
	}
	answer, err := t.next.RoundTrip(sent)
	if err != nil {
		return nil, err // of the connection; only http.Client adds the URL
	}
	answer.Request = r
	return answer, withoutSecrets(answer)
}

// presigned returns the request to send.
func (t presigning) presigned(r *http.Request) (*http.Request, error) {
	sent := r.Clone(r.Context())
	if err := withSum(sent); err != nil {
		return nil, err
	}
	asked, err := requestOf(sent, t.bucket)
	if err != nil {
		return nil, err
	}
	address, err := t.by.Presign(r.Context(), asked)
	if err != nil {
		return nil, err
	}
	if sent.URL, err = url.Parse(address); err != nil {
		return nil, errors.New("the presigner answers with something else than a URL")
	}
	sent.Host = sent.URL.Host
	return sent, nil
}

// longestList bounds the list of parts that ends an upload, in bytes.
const longestList = 4 << 20

// withSum adds the MD5 of the list of parts that ends an upload. Requests with content have theirs already.
func withSum(r *http.Request) error {
	if r.Method != http.MethodPost || r.Body == nil || r.Header.Get("Content-Md5") != "" {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, longestList+1))
	if err != nil {
		return err
	}
	if len(data) > longestList {
		return fmt.Errorf("the list of parts has more than %d bytes", longestList)
	}
	sum := md5.Sum(data)
	r.Header.Set("Content-Md5", base64.StdEncoding.EncodeToString(sum[:]))
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	return nil
}

// requestOf describes an unsigned request of the client library, whose URL has the bucket in its path.
func requestOf(r *http.Request, bucket string) (Request, error) {
	out := Request{Method: r.Method, Query: r.URL.Query(), Header: map[string]string{}}
	out.Key, _ = strings.CutPrefix(strings.TrimPrefix(r.URL.Path, "/"+bucket), "/")
	if len(out.Query) == 0 {
		out.Query = nil
	}
	for name, values := range r.Header {
		if name != "User-Agent" && name != "Accept-Encoding" {
			out.Header[name] = strings.Join(values, ",")
		}
	}
	if r.Method == http.MethodPut || r.Method == http.MethodPost {
		out.Header["Content-Length"] = strconv.FormatInt(r.ContentLength, 10)
	}
	_, err := out.Operation()
	return out, err
}

// secretQuery matches the parts of a URL that make it a presigned one.
var secretQuery = regexp.MustCompile(`(X-Amz-[A-Za-z-]+=)[^&\s"'<>]*`)

// withoutSecrets takes presigned URLs out of an error's body, since servers and proxies may repeat the URL.
func withoutSecrets(answer *http.Response) error {
	if answer.StatusCode < http.StatusBadRequest || answer.Request.Method == http.MethodHead {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	_ = answer.Body.Close() // it was read
	if err != nil {
		return err
	}
	body = secretQuery.ReplaceAll(body, []byte("${1}[secret]"))
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	answer.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

// presignError says that a request was not sent, because the presigner gave no URL for it.
type presignError struct{ err error }

// Error implements error.
func (e *presignError) Error() string { return e.err.Error() }

// Unwrap returns the presigner's error.
func (e *presignError) Unwrap() error { return e.err }

// notPresigned returns the presigner's error if err holds one.
func notPresigned(err error) (error, bool) {
	var p *presignError
	if errors.As(err, &p) {
		return p.err, true
	}
	return nil, false
}

// expired reports whether a presigned URL was too old when its request reached the server. The next try has a new one.
func expired(code, message string) bool {
	return code == "AccessDenied" && strings.Contains(strings.ToLower(message), "expired")
}
