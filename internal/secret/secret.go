// Package secret resolves references to secrets and keeps the secrets out of texts.
//
// A *reference* is ${env:NAME} or ${file:PATH} inside a text of a recipe. It is resolved where the secret is used, so
// that the record, errors and logs hold the reference alone. *Values* are the secrets that one user has resolved; texts
// from outside pass through Conceal, because another party may send a secret back.
package secret

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"strings"
)

// reference matches a reference to a secret.
var reference = regexp.MustCompile(`\$\{(env|file):([^${}]+)\}`)

const (
	// least is the shortest secret, in bytes: a shorter one could not be told from other text.
	least = 6
	most  = 16 << 10 // bytes
	// concealed replaces a secret in results and errors.
	concealed = "[secret]"
)

// Malformed returns what is wrong with the references of a text; "" if nothing is.
func Malformed(text string) string {
	if strings.Contains(reference.ReplaceAllString(text, ""), "${") {
		return "a reference to a secret is ${env:NAME} or ${file:PATH}"
	}
	return ""
}

// References returns the references in a text, in order.
func References(text string) []string { return reference.FindAllString(text, -1) }

// Masked returns a text with x in the place of each reference, so that its form can be checked without the secrets.
func Masked(text string) string { return reference.ReplaceAllString(text, "x") }

// Literal returns what is wrong with the credentials of an address; "" if nothing is. A password, or a name without a
// password, which may be a token, must be references, because the record keeps the address.
func Literal(address string) string {
	const hidden = "\x00"
	_, rest, ok := strings.Cut(reference.ReplaceAllString(address, hidden), "://")
	authority, _, _ := strings.Cut(rest, "/")
	at := strings.LastIndexByte(authority, '@')
	if !ok || at < 0 {
		return ""
	}
	name, password, both := strings.Cut(authority[:at], ":")
	if !both {
		password = name
	}
	if strings.Trim(password, hidden) == "" {
		return ""
	}
	return "must hold no password or token; write a reference to it, such as ${env:NAME}"
}

// Whole reports whether a text is one reference and nothing else.
func Whole(text string) bool { return reference.FindString(text) == text && text != "" }

// Values are the values that references had when they were resolved. The zero value has none. Resolve and Conceal must
// not overlap; calls of Conceal may.
type Values struct{ values []string }

// Resolve replaces the references of a text by their values. The error names the field and the reference, and never a
// value.
func (s *Values) Resolve(field, text string) (string, error) {
	var errs []error
	out := reference.ReplaceAllStringFunc(text, func(ref string) string {
		parts := reference.FindStringSubmatch(ref)
		value, err := lookUp(parts[1], parts[2])
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: resolve %s: %w", field, ref, err))
		case len(value) < least || len(value) > most || strings.ContainsAny(value, "\x00\r\n"):
			errs = append(errs, fmt.Errorf("%s: %s must hold one line of %d to %d bytes", field, ref, least, most))
		default:
			s.values = append(s.values, value)
		}
		return value
	})
	return out, errors.Join(errs...)
}

func lookUp(kind, name string) (string, error) {
	if kind == "env" {
		value, ok := os.LookupEnv(name)
		if !ok {
			return "", errors.New("the worker has no such variable")
		}
		return value, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return "", errors.New("the worker cannot open the file")
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+2))
	if err != nil {
		return "", errors.New("the worker cannot read the file")
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}

// Conceal replaces the secrets in a text, also where they are written as in addresses and in JSON.
func (s *Values) Conceal(text string) string {
	for _, value := range s.values {
		quoted, err := json.Marshal(value)
		if err != nil {
			panic(fmt.Sprintf("secret: encode a text: %v", err))
		}
		for _, form := range []string{value, string(quoted[1 : len(quoted)-1]), url.QueryEscape(value),
			url.PathEscape(value)} {
			text = strings.ReplaceAll(text, form, concealed)
		}
	}
	return text
}
