// Package download opens remote files for reading: s3://BUCKET/KEY and https://…. The reader decides how many bytes it
// accepts and compares their digest, so nothing here trusts a server.
package download

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/store"
)

// answerWithin bounds the time until a web server begins its answer.
const answerWithin = 30 * time.Second

// silentFor bounds the time for which a web server may send nothing.
const silentFor = time.Minute

// piece is how many bytes of an object are fetched at once.
const piece = 8 << 20

// Opener opens remote files. It is safe for concurrent use.
type Opener struct {
	// Bucket opens a bucket on the worker's S3 server, with the worker's credentials.
	Bucket func(name string) (store.Store, error)
	// Transport replaces the HTTP transport; nil means the standard one.
	Transport http.RoundTripper
}

// Open opens the file at an address, or the list of a folder on the S3 server, whose address ends in a slash. The
// caller closes it. A connection that breaks is an error of a read.
func (o Opener) Open(ctx context.Context, address string) (io.ReadCloser, error) {
	scheme, rest, _ := strings.Cut(address, "://")
	switch scheme {
	case "s3":
		return o.object(ctx, rest)
	case "http", "https":
		return o.page(ctx, address)
	}
	return nil, fmt.Errorf("the address begins with neither s3:// nor https://")
}

// object opens BUCKET/KEY.
func (o Opener) object(ctx context.Context, address string) (io.ReadCloser, error) {
	bucket, key, _ := strings.Cut(address, "/")
	if bucket == "" || key == "" {
		return nil, errors.New("the address is not s3://BUCKET/KEY")
	}
	objects, err := o.Bucket(bucket)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(key, "/") {
		return listing(ctx, objects, key)
	}
	r := &object{ctx: ctx, from: objects, key: key}
	if err := r.fill(); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return r, nil
}

// listing lists the objects of a folder, as dataset.Fetch has it.
func listing(ctx context.Context, objects store.Store, folder string) (io.ReadCloser, error) {
	all, err := objects.List(ctx, folder)
	if err != nil {
		return nil, err
	}
	var names strings.Builder
	for _, o := range all {
		fmt.Fprintln(&names, strings.TrimPrefix(o.Key, folder))
	}
	return io.NopCloser(strings.NewReader(names.String())), nil
}

// object reads an object a piece at a time.
type object struct {
	ctx   context.Context // of the caller that opened it
	from  store.Store
	key   string
	at    int64
	rest  []byte
	ended bool
}

// fill fetches the next piece. It returns io.EOF after the last.
func (r *object) fill() (err error) {
	if r.ended {
		return io.EOF
	}
	if r.rest, err = r.from.GetRange(r.ctx, r.key, r.at, piece); err != nil {
		return err
	}
	r.at += int64(len(r.rest))
	if r.ended = len(r.rest) < piece; len(r.rest) == 0 {
		return io.EOF
	}
	return nil
}

// Read implements io.Reader.
func (r *object) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if err := r.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Close implements io.Closer.
func (*object) Close() error { return nil }

// page opens a file on a web server.
func (o Opener) page(ctx context.Context, address string) (io.ReadCloser, error) {
	transport := o.Transport
	if transport == nil {
		usual := http.DefaultTransport.(*http.Transport).Clone()
		usual.ResponseHeaderTimeout = answerWithin
		transport = usual
	}
	ctx, cancel := context.WithCancelCause(ctx)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		cancel(nil)
		return nil, fmt.Errorf("the address is not that of a file: %w", err)
	}
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		cancel(nil)
		return nil, errors.Join(fmt.Errorf("the server answers %s", answer.Status), answer.Body.Close())
	}
	return &page{body: answer.Body, cancel: cancel, watch: time.AfterFunc(silentFor, func() {
		cancel(fmt.Errorf("the server has sent nothing for %s", silentFor))
	})}, nil
}

// page is the body of an answer. A server that stops sending ends it.
type page struct {
	body   io.ReadCloser
	cancel context.CancelCauseFunc
	watch  *time.Timer
}

// Read implements io.Reader.
func (p *page) Read(b []byte) (int, error) {
	n, err := p.body.Read(b)
	p.watch.Reset(silentFor)
	return n, err
}

// Close implements io.Closer.
func (p *page) Close() error {
	p.watch.Stop()
	p.cancel(nil)
	return p.body.Close()
}
