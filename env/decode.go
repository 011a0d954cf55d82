package env

import (
	"bytes"
	"encoding/json"
	"errors"
)

// Decode reads a task, a state or settings from JSON. An unknown field, or text after the value, is an error.
func Decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return errors.New("more than one value")
	}
	return nil
}
