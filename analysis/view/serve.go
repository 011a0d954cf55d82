package view

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// GCPercent is the setting of Go's garbage collector (debug.SetGCPercent) for a program that serves a run. Reading the
// run makes much garbage and leaves little, since the list is in DuckDB's memory; a run then opens in three quarters of
// the time.
const GCPercent = 400

// Link is the address of the page where it is served, with the token that lets its reader in.
func (v *Viewer) Link(at net.Addr, token string) string {
	link := url.URL{Scheme: "http", Host: at.String(), Path: "/" + v.options.Run + "/",
		RawQuery: url.Values{tokenKey: {token}}.Encode()}
	return link.String()
}

// Serve follows the record and answers who holds the token at a listener, which it closes, until the context ends.
func (v *Viewer) Serve(ctx context.Context, listener net.Listener, token string) error {
	guard, err := GuardFor(listener.Addr(), token)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	following, stop := context.WithCancel(ctx)
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		v.Follow(following)
	}()
	server := http.Server{Handler: guard.Wrap(v.Handler()), ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return following }}
	end := context.AfterFunc(ctx, func() { server.Close() })
	err = server.Serve(listener)
	end()
	stop()
	<-followed
	if errors.Is(err, http.ErrServerClosed) {
		return nil // the context has ended
	}
	return fmt.Errorf("serve the page: %w", err)
}
