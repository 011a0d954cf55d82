package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// document is a manifest or head.
type document interface{ format() formatVersion }

// decodeDocument reads a manifest or head. It refuses a later major version by name. A document of this version must be
// exactly what Canonical writes for T; one of a later minor version may have further fields.
func decodeDocument[T document](what string, data []byte) (T, error) {
	// Most documents have no field that is unknown here. Their version is read with the rest, since a pass over the
	// text for the version alone takes much of the time.
	var v, none T
	strict := decodeStrict(data, &v)
	if strict == nil && v.format().check() == nil {
		return v, nil
	}
	version, err := documentVersion(data)
	if err != nil {
		return none, fmt.Errorf("%s: %w", what, err)
	}
	if !version.newer() {
		return none, fmt.Errorf("%s: %w", what, strict)
	}
	var later T // what the strict reading has left in v does not count
	if err := decodeLater(data, &later); err != nil {
		return none, fmt.Errorf("%s: %w", what, err)
	}
	return later, nil
}

// decodeLater parses canonical JSON that may have fields that v lacks. Every field of v must be in it.
func decodeLater(data []byte, v any) error {
	if err := checkCanonical(data); err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("decode JSON: %w", err)
	}
	known, err := Canonical(v)
	if err != nil {
		return err
	}
	var part, whole any
	if err := errors.Join(json.Unmarshal(known, &part), json.Unmarshal(data, &whole)); err != nil {
		return fmt.Errorf("decode JSON: %w", err)
	}
	if !within(part, whole) {
		return errors.New("decode JSON: a field is missing, or its name has other letters")
	}
	return nil
}

// within reports whether the values in part are those of whole, which may have further fields in its objects.
func within(part, whole any) bool {
	switch p := part.(type) {
	case map[string]any:
		w, ok := whole.(map[string]any)
		for name, value := range p {
			inner, there := w[name]
			if ok = ok && there && within(value, inner); !ok {
				return false
			}
		}
		return ok
	case []any:
		w, _ := whole.([]any)
		return slices.EqualFunc(p, w, within)
	}
	return part == whole
}

// documentVersion reads only the version of a document, so that the error for a document of a later version says so and
// does not complain about unknown fields.
func documentVersion(data []byte) (formatVersion, error) {
	var v struct {
		Major *int `json:"version"`
		Minor int  `json:"schema_version"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return formatVersion{}, fmt.Errorf("decode JSON: %w", err)
	}
	if v.Major == nil {
		return formatVersion{}, errors.New("has no version")
	}
	out := formatVersion{*v.Major, v.Minor}
	return out, out.check()
}
