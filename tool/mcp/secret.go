package mcp

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
	// secretLeast is the shortest secret, in bytes: a shorter one could not be told from other text.
	secretLeast = 6
	secretMost  = 16 << 10 // bytes
	// concealed replaces a secret in results and errors.
	concealed = "[secret]"
)

// malformed returns what is wrong with the references of a text; "" if nothing is.
func malformed(text string) string {
	if strings.Contains(reference.ReplaceAllString(text, ""), "${") {
		return "a reference to a secret is ${env:NAME} or ${file:PATH}"
	}
	return ""
}

// secrets are the values that references had when a session was opened.
type secrets struct{ values []string }

// resolve replaces the references of a text by their values. The error names the reference and never a value.
func (s *secrets) resolve(field, text string) (string, error) {
	var errs []error
	out := reference.ReplaceAllStringFunc(text, func(ref string) string {
		parts := reference.FindStringSubmatch(ref)
		value, err := lookUp(parts[1], parts[2])
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: resolve %s: %w", field, ref, err))
		case len(value) < secretLeast || len(value) > secretMost || strings.ContainsAny(value, "\x00\r\n"):
			errs = append(errs, fmt.Errorf("%s: %s must hold one line of %d to %d bytes", field, ref, secretLeast,
				secretMost))
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
	data, err := io.ReadAll(io.LimitReader(f, secretMost+2))
	if err != nil {
		return "", errors.New("the worker cannot read the file")
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}

// conceal replaces the secrets in a text, also where they are written as in addresses and in JSON.
func (s *secrets) conceal(text string) string {
	for _, value := range s.values {
		quoted, err := json.Marshal(value)
		if err != nil {
			panic(fmt.Sprintf("mcp: encode a text: %v", err))
		}
		for _, form := range []string{value, string(quoted[1 : len(quoted)-1]), url.QueryEscape(value),
			url.PathEscape(value)} {
			text = strings.ReplaceAll(text, form, concealed)
		}
	}
	return text
}

// hidden is an error whose text holds no secret.
type hidden struct {
	error
	text string
}

// Error returns the text without secrets.
func (h hidden) Error() string { return h.text }

// Unwrap returns the error's chain. Its text is not for people.
func (h hidden) Unwrap() []error {
	var kept []error
	for _, sentinel := range sentinels {
		if errors.Is(h.error, sentinel) {
			kept = append(kept, sentinel)
		}
	}
	return kept
}
