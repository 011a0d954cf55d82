package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// maxDepth is deeper than any message nests.
const maxDepth = 8

// checkObject refuses what encoding/json lets pass: invalid UTF-8, duplicate keys, null (a field's absence by
// another name), anything after the object. A key with a capital is refused because encoding/json takes it
// for the field in small letters, and no field has one.
func checkObject(b []byte) error {
	if !utf8.Valid(b) {
		return broken("a header is no UTF-8")
	}
	if trimmed := bytes.TrimLeft(b, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return broken("a header is no JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := checkValue(d, 0); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return broken("a header goes on after its object")
	}
	return nil
}

// checkValue reads one value off the decoder.
func checkValue(d *json.Decoder, depth int) error {
	token, err := d.Token()
	if err != nil {
		return broken("read JSON: %v", err)
	}
	if token == nil {
		return broken("a field is null")
	}
	open, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	if depth == maxDepth {
		return broken("a header nests deeper than %d", maxDepth)
	}
	keys := map[string]bool{}
	for d.More() {
		if open == '{' {
			if err := checkKey(d, keys); err != nil {
				return err
			}
		}
		if err := checkValue(d, depth+1); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil { // the closing delimiter
		return broken("read JSON: %v", err)
	}
	return nil
}

func checkKey(d *json.Decoder, seen map[string]bool) error {
	token, err := d.Token()
	if err != nil {
		return broken("read JSON: %v", err)
	}
	key, ok := token.(string)
	switch {
	case !ok:
		return broken("a key is %v", token)
	case seen[key]:
		return broken("field %q is there twice", key)
	case strings.ToLower(key) != key:
		return broken("unknown field %q", key)
	}
	seen[key] = true
	return nil
}
