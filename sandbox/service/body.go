package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/semaphore"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

// Limits on sending a body: the time for the whole body, and the longest pause.
const (
	bodyTime  = 2 * time.Minute
	bodyPause = 15 * time.Second
	bodyChunk = 64 << 10 // bytes; room for a chunk is reserved before it is read
)

// body decodes a request's JSON into a value. It reserves room for the content as it arrives, so a client that
// announces a large body and sends nothing holds no room. done releases the room. If strict, fields that openapi.json
// does not name are refused.
func (s *Service) body(w http.ResponseWriter, r *http.Request, into any, strict bool) (done func(), err error) {
	if r.ContentLength > rpc.MostMessage {
		return nil, tooLarge(r.ContentLength)
	}
	in := &bodyReader{body: http.MaxBytesReader(w, r.Body, rpc.MostMessage), conn: http.NewResponseController(w),
		room: s.bodies, client: asking(r.Context()), ctx: r.Context(),
		until: time.Now().Add(bodyTime), pause: s.bodyPause}
	in.quota = in.client.quota.Load()
	err = decode(in, into, strict)
	if e := in.deadline(time.Time{}); err == nil { // the server keeps reading to notice when the client disconnects
		err = e
	}
	if err != nil {
		in.release()
		return nil, err
	}
	return in.release, nil
}

// bodyReader reads a body within a time limit, and reserves room for what it reads.
type bodyReader struct {
	body   io.Reader
	conn   *http.ResponseController
	room   *semaphore.Weighted
	client *client
	quota  *quota // of the client, when the body began
	ctx    context.Context
	until  time.Time
	pause  time.Duration
	held   int64 // bytes reserved of room
	spare  int64 // bytes reserved but not read
}

// Read implements io.Reader. If there is no room in time the request is refused, because requests that each hold a part
// of the room could wait for each other.
func (b *bodyReader) Read(p []byte) (int, error) {
	if b.spare == 0 {
		if own := b.quota.bodies; own != nil && !own.TryAcquire(bodyChunk) {
			return 0, b.client.over(limitBytes, b.quota.Bytes>>20)
		}
		waiting, cancel := context.WithTimeout(b.ctx, b.pause)
		defer cancel()
		if err := b.room.Acquire(waiting, bodyChunk); err != nil {
			giveBack(b.quota.bodies, bodyChunk)
			if b.ctx.Err() != nil {
				return 0, b.ctx.Err()
			}
			return 0, httpError{http.StatusServiceUnavailable,
				ErrorDetail{kindBusy, "", "there is no room for the body now: send it again later"}}
		}
		b.held, b.spare = b.held+bodyChunk, bodyChunk
	}
	next := time.Now().Add(b.pause)
	if b.until.Before(next) {
		next = b.until
	}
	if err := b.deadline(next); err != nil {
		return 0, err
	}
	n, err := b.body.Read(p[:min(int64(len(p)), b.spare)])
	b.spare -= int64(n)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = httpError{http.StatusRequestTimeout, ErrorDetail{kindSlow, "",
			fmt.Sprintf("the body did not arrive in time: a pause may last %s, the whole body %s", b.pause, bodyTime)}}
	}
	return n, err
}

// deadline sets the time at which the next read fails. Writers without a connection, as in tests, ignore it.
func (b *bodyReader) deadline(at time.Time) error {
	if err := b.conn.SetReadDeadline(at); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return malformed("", "read the body: "+err.Error())
	}
	return nil
}

func (b *bodyReader) release() {
	b.room.Release(b.held)
	giveBack(b.quota.bodies, b.held)
	b.held = 0
}

func decode(in io.Reader, into any, strict bool) error {
	data, err := io.ReadAll(in)
	var placed httpError
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &placed), errors.Is(err, rpc.ErrOverQuota):
		return err
	case errors.As(err, &over):
		return tooLarge(over.Limit + 1)
	case err != nil:
		return malformed("", "read the body: "+err.Error())
	case !utf8.Valid(data):
		return malformed("", "the body is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(into); err != nil {
		return malformed(fieldOf(err), "the body is not the expected JSON: "+badinput.JSON(err).Error())
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return malformed("", "the body continues after its JSON value")
	}
	return nil
}

func tooLarge(size int64) error {
	return httpError{http.StatusRequestEntityTooLarge,
		ErrorDetail{kindTooLarge, "", fmt.Sprintf("the body has %d bytes or more, at most %d are taken", size,
			rpc.MostMessage)}}
}
