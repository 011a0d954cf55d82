package stack

import (
	"errors"
	"fmt"
	"os"
)

// ErrNotRunning says that no local stack is running in the root folder.
var ErrNotRunning = errors.New("no local stack runs")

// Running returns the addresses of the local stack that is running in the root folder. It starts nothing and keeps
// nothing running. While a stack is starting, addresses may be missing.
func Running(opts Options) (Addresses, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return Addresses{}, err
	}
	l := layout{opts.Root}
	var a Addresses
	some := false
	for _, server := range []string{workerName, temporalName, s3Name} { // a worker may use servers that are not ours
		s, err := l.running(server)
		if err == nil && server == workerName {
			a = s.Addresses
		}
		if err == nil {
			a, err = l.with(a, s.Addresses)
		}
		if err != nil {
			return Addresses{}, err
		}
		some = some || s.PID > 0
	}
	if !some {
		return Addresses{}, fmt.Errorf("%w in %s", ErrNotRunning, l.root)
	}
	return a, nil
}

// IsLocal reports whether the Temporal server that a worker connects to is that of a local stack: one whose addresses
// are in its environment, or the one in the root folder.
func IsLocal(hostPort string) bool {
	if os.Getenv(uiVariable) != "" {
		return true
	}
	a, err := Running(Options{})
	return err == nil && a.UI != "" && a.Temporal == hostPort
}

// WorkerRuns reports whether the local stack is running and has a worker.
func WorkerRuns() (bool, error) {
	o, err := Options{}.withDefaults()
	if err != nil {
		return false, err
	}
	s, err := layout{o.Root}.running(workerName)
	return s.Server > 0, err
}

// with adds to addresses what b has of local servers, with their keys.
func (l layout) with(a, b Addresses) (Addresses, error) {
	if b.UI != "" {
		a.Temporal, a.Namespace, a.UI, a.Logs = b.Temporal, b.Namespace, b.UI, b.Logs
	}
	if b.S3Folder == "" {
		return a, nil
	}
	a.S3Endpoint, a.S3Bucket, a.Region, a.S3Folder, a.Logs = b.S3Endpoint, b.S3Bucket, b.Region, b.S3Folder, b.Logs
	keys, err := l.loadCredentials() // states hold no secrets
	a.AccessKey, a.SecretKey = keys.AccessKey, keys.SecretKey
	return a, err
}
