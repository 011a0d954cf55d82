package main

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/client"
)

// queueLife is longer than any burst takes: no call may end for having waited.
const queueLife = 30 * time.Minute

// serveArguments start the service at an address.
func serveArguments(address string) []string {
	return []string{"sandbox", "serve", "--listen", address}
}

// patient is a client whose calls may wait as long as they must.
type patient struct{ *client.Client }

// dial opens a client of the service at an address. It need not serve yet.
func dial(address string) (patient, error) {
	c, err := client.Open(client.Options{Addresses: []string{address}})
	return patient{c}, err
}

// Run implements sandbox.Executor; each call has a key of its own.
func (p patient) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	requests := make([]client.Request, len(calls))
	for i, call := range calls {
		requests[i] = client.Request{Call: call, QueueLife: queueLife}
	}
	return p.Do(ctx, requests)
}
