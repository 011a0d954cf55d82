package secret

import (
	"errors"
	"os"
	"slices"
	"strings"
)

// Variables returns the variables of a program. NAME is the worker's value, and NAME=TEXT may hold references.
func (s *Values) Variables(list []string) ([]string, error) {
	out := []string{}
	var errs []error
	for _, entry := range list {
		name, text, given := strings.Cut(entry, "=")
		if !given {
			if value, ok := os.LookupEnv(name); ok {
				s.keep(name, value)
				out = append(out, name+"="+value)
			}
			continue
		}
		value, err := s.Resolve("env", text)
		errs = append(errs, err)
		out = append(out, name+"="+value)
	}
	return out, errors.Join(errs...)
}

// public are variables whose values are no secrets and occur in many texts: concealing them would change results.
var public = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "TMPDIR", "TERM", "TZ", "LANG", "LANGUAGE",
	"LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "PYTHONPATH"}

// keep remembers a variable's value, so that it is concealed like that of a reference: whole, and each of its lines,
// which programs print one by one. A value too short to be told from other text stays as it is.
func (s *Values) keep(name, value string) {
	if slices.Contains(public, name) {
		return
	}
	for _, text := range append([]string{value}, strings.FieldsFunc(value, isLineEnd)...) {
		if len(text) >= least {
			s.values = append(s.values, text)
		}
	}
}

func isLineEnd(r rune) bool { return r == '\n' || r == '\r' }

// Headers returns the headers of a request, NAME=TEXT each, with their secrets.
func (s *Values) Headers(list []string) (map[string]string, error) {
	out := map[string]string{}
	var errs []error
	for _, entry := range list {
		name, text, _ := strings.Cut(entry, "=")
		value, err := s.Resolve("headers", text)
		errs = append(errs, err)
		out[name] = value
	}
	return out, errors.Join(errs...)
}
