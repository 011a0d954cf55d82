package schema

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Digest returns the SHA-256 of data in lower-case hexadecimal.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// validDigest reports whether s has the form of a Digest.
func validDigest(s string) bool { return digestForm.MatchString(s) }

// Canonical encodes v as the record's JSON: keys sorted, indented by two spaces, HTML not escaped, a newline at the
// end. Equal values give equal bytes.
func Canonical(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode JSON: %w", err)
	}
	out, err := arrange(raw)
	if err != nil {
		return nil, fmt.Errorf("encode JSON: %w", err)
	}
	return out, nil
}

// recode parses JSON and writes it in canonical form; numbers keep their text.
func recode(raw []byte) ([]byte, error) {
	if nesting(raw) > mostNesting {
		return nil, fmt.Errorf("decode JSON: it is nested more than %d deep", mostNesting)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return nil, fmt.Errorf("decode JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("decode JSON: text follows the document")
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(tree); err != nil { // maps are written in sorted order
		return nil, fmt.Errorf("encode JSON: %w", err)
	}
	return out.Bytes(), nil
}

// mostNesting bounds how deeply a document is nested: the canonical form indents each line by its depth.
const mostNesting = 200

// nesting returns how deeply a text of JSON is nested, by its brackets.
func nesting(raw []byte) (deepest int) {
	depth, inText := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '[' || c == '{':
			depth++
			deepest = max(deepest, depth)
		case c == ']' || c == '}':
			depth--
		}
	}
	return deepest
}

// checkCanonical returns an error unless data is in the form that Canonical writes.
func checkCanonical(data []byte) error {
	again, err := recode(data)
	if err != nil {
		return err
	}
	if !bytes.Equal(again, data) {
		return errors.New("decode JSON: the text is not in canonical form")
	}
	return nil
}

// decodeStrict parses canonical JSON into v. An unknown, missing or repeated field, or any other difference from what
// Canonical writes for v, is an error.
func decodeStrict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("decode JSON: %w", err)
	}
	again, err := Canonical(v)
	if err != nil {
		return err
	}
	if !bytes.Equal(again, data) {
		return errors.New("decode JSON: the text is not in canonical form, or a field is missing")
	}
	return nil
}
