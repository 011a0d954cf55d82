package service

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

// body reads a request's JSON into a value. Nothing is read before there is room for it; done gives
// the room back. What openapi.json does not name is refused where strict.
func (s *Service) body(w http.ResponseWriter, r *http.Request, into any, strict bool) (done func(), err error) {
	size := r.ContentLength
	if size > rpc.MostMessage {
		return nil, tooLarge(size)
	}
	if size < 0 {
		size = rpc.MostMessage
	}
	if err := s.bodies.Acquire(r.Context(), size); err != nil {
		return nil, err
	}
	done = func() { s.bodies.Release(size) }
	if err := decode(w, r, into, strict); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

func decode(w http.ResponseWriter, r *http.Request, into any, strict bool) error {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, rpc.MostMessage))
	var over *http.MaxBytesError
	switch {
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
		return malformed(fieldOf(err), "the body is not the JSON that is wanted: "+err.Error())
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return malformed("", "the body goes on after its JSON value")
	}
	return nil
}

func tooLarge(size int64) error {
	return httpError{http.StatusRequestEntityTooLarge,
		ErrorDetail{kindTooLarge, "", fmt.Sprintf("the body has %d bytes or more, at most %d are taken", size, rpc.MostMessage)}}
}
