package serve

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/spelling"
)

// fields are a request's fields. Each is read once; the first error stays.
type fields struct {
	raw  map[string]json.RawMessage
	seen []string // names that were asked for
	err  *apiError
}

// readFields reads a body of at most limit bytes, which must be one JSON object.
func readFields(w http.ResponseWriter, r *http.Request, limit int64) (*fields, *apiError) {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(kind), "application/json") {
		return nil, fault(http.StatusUnsupportedMediaType, typeInvalid, "the content type must be application/json")
	}
	// The deadline ends with the body: a read that then waits for the client to go away must not end the request.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyLimit)) // not every writer has deadlines
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	body := http.MaxBytesReader(w, r.Body, limit)
	d := json.NewDecoder(body)
	f := &fields{}
	err := badinput.JSON(d.Decode(&f.raw))
	if err == nil && f.raw == nil {
		err = errors.New("the body must be a JSON object")
	}
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			err = nil
		} else if err == nil {
			err = errors.New("the body holds more than one JSON value")
		}
	}
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return nil, fault(http.StatusRequestEntityTooLarge, typeInvalid, "the body is larger than %d bytes",
			limit).coded("body_too_large")
	}
	if late := net.Error(nil); errors.As(err, &late) && late.Timeout() {
		return nil, fault(http.StatusRequestTimeout, typeInvalid, "the body did not come within %v", bodyLimit)
	}
	if err != nil {
		return nil, invalid("", "the body is no JSON object: %v", err).coded("invalid_json")
	}
	return f, nil
}

// fail notes an error unless there is one.
func (f *fields) fail(e *apiError) { f.err = cmp.Or(f.err, e) }

// take returns a field's value; ok is false if it is missing or null.
func (f *fields) take(name string) (raw json.RawMessage, ok bool) {
	f.seen = append(f.seen, name)
	raw, ok = f.raw[name]
	return raw, ok && !bytes.Equal(bytes.TrimSpace(raw), []byte("null"))
}

// read decodes a field into to, if it is there. want says what it must be.
func (f *fields) read(name string, to any, want string) bool {
	raw, ok := f.take(name)
	if !ok {
		return false
	}
	if err := json.Unmarshal(raw, to); err != nil {
		f.fail(invalid(name, "must be %s", want))
		return false
	}
	return true
}

func (f *fields) boolean(name string, value bool) bool {
	f.read(name, &value, "true or false")
	return value
}

// number reads a number between least and most.
func (f *fields) number(name string, value, least, most float64) float64 {
	if f.read(name, &value, "a number") && !(value >= least && value <= most) {
		f.fail(invalid(name, "must be between %v and %v, got %v", least, most, value))
	}
	return value
}

// whole reads a whole number between least and most.
func (f *fields) whole(name string, value, least, most int) int {
	x := float64(value)
	if f.read(name, &x, "a whole number") {
		if x != math.Trunc(x) || !(x >= float64(least) && x <= float64(most)) {
			f.fail(invalid(name, "must be a whole number between %d and %d, got %v", least, most, x))
			return value
		}
	}
	return int(x)
}

// texts reads a text or a list of texts.
func (f *fields) texts(name string, most int) []string {
	raw, ok := f.take(name)
	if !ok {
		return nil
	}
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}
	}
	var many []string
	if json.Unmarshal(raw, &many) != nil {
		f.fail(invalid(name, "must be a text or a list of texts"))
	} else if len(many) > most {
		f.fail(invalid(name, "must have at most %d entries, got %d", most, len(many)))
	}
	return many
}

// seeds reads a seed, or a list of seeds. A negative seed is read as its two's complement.
func (f *fields) seeds(name string) []uint64 {
	raw, ok := f.take(name)
	if !ok {
		return nil
	}
	var many []json.RawMessage
	if json.Unmarshal(raw, &many) != nil {
		many = []json.RawMessage{raw}
	}
	var out []uint64
	for _, one := range many {
		var u uint64
		var i int64
		switch {
		case json.Unmarshal(one, &u) == nil:
			out = append(out, u)
		case json.Unmarshal(one, &i) == nil:
			out = append(out, uint64(i))
		}
	}
	if len(out) == 0 || len(out) != len(many) {
		f.fail(invalid(name, "must be a whole number of 64 bits, or a list of such numbers, one for each choice"))
	}
	return out
}

// only refuses a field whose value is not one of those that change nothing.
func (f *fields) only(name, why string, neutral ...string) {
	raw, ok := f.take(name)
	if ok && !slices.Contains(neutral, string(bytes.TrimSpace(raw))) {
		f.fail(invalid(name, "%s", why).coded("unsupported"))
	}
}

// ignore accepts fields that change no answer.
func (f *fields) ignore(names ...string) { f.seen = append(f.seen, names...) }

// done refuses fields that nothing has asked for, and returns the first error.
func (f *fields) done() *apiError {
	if f.err != nil {
		return f.err
	}
	var unknown []string
	for name := range f.raw {
		if !slices.Contains(f.seen, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	name := slices.Min(unknown)
	if len(name) > 64 {
		name = name[:64]
	}
	message := "there is no such field"
	if near := spelling.Nearest(name, f.seen); near != "" {
		message += fmt.Sprintf("; did you mean %s?", near)
	}
	return invalid(name, "%s", message).coded("unknown_field")
}
