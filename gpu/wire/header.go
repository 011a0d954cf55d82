package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Envelope is what a header says before it is known which message it is.
type Envelope struct {
	Type string
	ID   uint64 // 0 where the message has none
	Call string // of a call
}

// Peek reads a header's envelope; the header is checked as an object, not as its message.
func Peek(header []byte) (Envelope, error) {
	if err := checkObject(header); err != nil {
		return Envelope{}, err
	}
	var e Envelope
	if err := json.Unmarshal(header, &e); err != nil {
		return Envelope{}, broken("read JSON: %v", err)
	}
	if e.Type == "" {
		return Envelope{}, broken("a header has no type")
	}
	return e, nil
}

// Decode reads a header as the message that into points to. Every field must be there, but those
// that the message's type marks as optional, and no other.
func Decode(header []byte, into any) error {
	if err := decodeObject(header, into); err != nil {
		return err
	}
	var there map[string]json.RawMessage
	if err := json.Unmarshal(header, &there); err != nil {
		return broken("read JSON: %v", err)
	}
	message := reflect.TypeOf(into).Elem()
	for _, f := range reflect.VisibleFields(message) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || options == "omitempty" {
			continue
		}
		if _, ok := there[name]; !ok {
			return broken("%s: field %q is missing", strings.ToLower(message.Name()), name)
		}
	}
	return nil
}

func encodeHeader(message any) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(message); err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	b := bytes.TrimRight(buf.Bytes(), "\n")
	if len(b) > maxHeader {
		return nil, broken("a header of %d bytes, allowed are %d", len(b), maxHeader)
	}
	return b, nil
}
