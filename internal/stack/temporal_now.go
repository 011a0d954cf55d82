package stack

import "errors"

// TemporalNow returns the addresses of the Temporal server that commands would use now: the one that the environment
// selects, which may not answer, or that of the local stack if it runs. It starts nothing and writes nothing.
func TemporalNow() (a Addresses, running bool, err error) {
	o, err := Options{}.withDefaults()
	if err != nil {
		return a, false, err
	}
	e, err := findExisting()
	if err != nil {
		return a, false, err
	}
	if e.temporal != "" {
		return e.addresses(o), true, nil
	}
	a, err = Running(Options{})
	if errors.Is(err, ErrNotRunning) {
		return a, false, nil
	}
	return a, err == nil && a.Temporal != "", err
}
