package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/sandbox/service"
)

// clientsCheck is how often the file of clients is compared with what was read.
const clientsCheck = 5 * time.Second

// clientsFile is the file of --token-file: who may use the service. Its texts hold secrets.
type clientsFile struct {
	path    string
	text    []byte
	clients []service.Client
}

// clients reads the file of --token-file; it has no clients if the flag is not set.
func (l listening) clients() (*clientsFile, error) {
	f := &clientsFile{path: l.tokenFile}
	if f.path == "" {
		return f, nil
	}
	if _, err := f.read(); err != nil {
		return nil, badInput("--token-file: %w", err)
	}
	return f, nil
}

// read reads the file if its content has changed. After an error the clients are those of before, and the same content
// is not read again.
func (f *clientsFile) read() (changed bool, err error) {
	text, err := os.ReadFile(f.path)
	if err != nil {
		return false, err
	}
	if bytes.Equal(text, f.text) {
		return false, nil
	}
	f.text = text
	all, err := service.ParseClients(f.path, text)
	if err != nil {
		return false, err
	}
	f.clients = all
	return true, nil
}

// secrets returns the tokens that the file holds and not only their digests.
func (f *clientsFile) secrets() (out []string) {
	for _, word := range strings.FieldsFunc(string(f.text), func(r rune) bool {
		return strings.ContainsRune(" \t\r\n[]{},\"'", r)
	}) {
		if slices.ContainsFunc(f.clients, func(c service.Client) bool {
			return slices.Contains(c.Tokens, service.TokenOf(word))
		}) {
			out = append(out, word)
		}
	}
	return out
}

// follow has the clients follow the file until the returned function is called.
func (f *clientsFile) follow(ctx context.Context, log *slog.Logger, set func([]service.Client)) (stop func()) {
	hangUp := make(chan os.Signal, 1)
	signal.Notify(hangUp, syscall.SIGHUP)
	watching, end := context.WithCancel(ctx)
	go f.watch(watching, hangUp, clientsCheck, log, set)
	return func() { end(); signal.Stop(hangUp) }
}

// watch sets the clients again when the file has changed, until ctx ends. It checks at once after a signal. Of a file
// that cannot be used it logs the reason, and the clients stay.
func (f *clientsFile) watch(ctx context.Context, hangUp <-chan os.Signal, every time.Duration, log *slog.Logger,
	set func([]service.Client)) {
	check := time.NewTicker(every)
	defer check.Stop()
	told := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-check.C:
		case <-hangUp:
			f.text, told = nil, "" // the one who asks is answered even if nothing has changed
		}
		changed, err := f.read()
		switch {
		case err != nil && err.Error() != told:
			told = err.Error()
			log.Error("kept the clients of before, the file cannot be used", "error", told)
		case err != nil:
		case changed:
			told = ""
			set(f.clients)
			log.Info("read the clients", "file", f.path, "clients", len(f.clients))
		default:
			told = ""
		}
	}
}
