package main

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/client"
)

// queueLife is longer than any burst takes: no call may fail because it waited.
const queueLife = 30 * time.Minute

// serveArguments returns the command line that starts the service at an address.
func serveArguments(address string) []string {
	return []string{"sandbox", "serve", "--listen", address}
}

// patient is a client whose calls may wait as long as necessary.
type patient struct{ *client.Client }

// dial opens a client of the service at an address. The service need not run yet.
func dial(address string) (patient, error) {
	c, err := client.Open(client.Options{Addresses: []string{address}})
	return patient{c}, err
}

// Run implements sandbox.Executor. Each call has its own key.
func (p patient) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	requests := make([]client.Request, len(calls))
	for i, call := range calls {
		requests[i] = client.Request{Call: call, QueueLife: queueLife}
	}
	return p.Do(ctx, requests)
}
