package secret

import (
	"errors"
	"os"
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
