package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/service"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

type sandboxServeOptions struct {
	listening
	python   string
	minTier  string
	preload  []string
	workers  int
	queueMB  int
	life     time.Duration
	keepMB   int
	keep     time.Duration
	sessions int
	conns    int
	idle     time.Duration
	logCode  bool
	drain    time.Duration
}

func sandboxServeCommand(con *console) *cobra.Command {
	o := sandboxServeOptions{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "offer a sandbox to other programs, over HTTP and a stream",
		Long: "serve runs the calls of other programs: HTTP and JSON (GET /openapi.json describes it), a gRPC\n" +
			"stream on the same address, and the requests of SandboxFusion. Prometheus reads GET /metrics. By\n" +
			"default it listens on this machine only; on other addresses it needs a token and a certificate. On\n" +
			"loopback it accepts only requests to 127.0.0.1, [::1] and localhost with the content type of JSON,\n" +
			"so that no web page in a browser can send it code. On SIGTERM or Ctrl-C it accepts no more calls and\n" +
			"finishes those that it has.",
		Example: "  ropewalk sandbox serve\n" +
			"  ropewalk sandbox serve --listen 0.0.0.0:8290 --token-file token " +
			"--tls-cert cert.pem --tls-key key.pem\n" +
			"  curl -s localhost:8290/v1/run -H 'Content-Type: application/json' -d '{\"code\": \"print(6 * 7)\"}'",
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return serveSandbox(cmd.Context(), con, o) },
	}
	f := cmd.Flags()
	minTierFlag(f, &o.minTier)
	o.add(f, "127.0.0.1:8290")
	f.Lookup("listen").Usage += "; systemd: take the socket that systemd has opened"
	f.Lookup("token-file").Usage = "file with the token that requests must bear (Authorization: Bearer TOKEN), or " +
		"with the tokens and quotas of named clients; read again when it changes, and on SIGHUP"
	f.StringVar(&o.python, "python", "", "interpreter (default: $ROPEWALK_SANDBOX_PYTHON, else the python3 that is "+
		"found)")
	f.StringSliceVar(&o.preload, "preload", nil, "package sets to load in the background at the start: numpy, sympy "+
		"(default: load them when a call first needs them)")
	f.IntVar(&o.workers, "workers", 0, "calls at once (default: as many as cores)")
	f.IntVar(&o.queueMB, "queue-mb", 256, "MiB of calls that may wait, at least 64; beyond that no more requests "+
		"are read")
	f.DurationVar(&o.life, "queue-life", 2*time.Minute, "how long a call may wait by default")
	f.IntVar(&o.keepMB, "keep-mb", 64, "MiB of verdicts kept for calls that are sent again with the same key")
	f.DurationVar(&o.keep, "keep-for", 10*time.Minute, "how long verdicts are kept")
	f.IntVar(&o.conns, "connections", 4096, "connections at once, of both protocols; further ones are answered with "+
		"503 (too_many_connections) or UNAVAILABLE and closed")
	f.IntVar(&o.sessions, "sessions", 1024, "sessions at once")
	f.DurationVar(&o.idle, "session-idle", 10*time.Minute, "close a session after this long without a cell")
	f.BoolVar(&o.logCode, "log-code", false, "also log code and output, which are never logged otherwise")
	f.DurationVar(&o.drain, "drain", time.Minute, "how long to finish calls before ending")
	return cmd
}

func serveSandbox(ctx context.Context, con *console, o sandboxServeOptions) error {
	var listener net.Listener
	if o.address == "systemd" {
		var err error
		if listener, err = service.Inherited(); err != nil {
			return badInput("--listen systemd: %w", err)
		}
		defer listener.Close()
		o.address = listener.Addr().String()
	}
	if err := o.guarded(); err != nil {
		return err
	}
	file, err := o.clients()
	if err != nil {
		return err
	}
	if o.conns < 1 {
		return badInput("--connections is %d, it must be at least 1", o.conns)
	}
	secure, err := o.tls()
	if err != nil {
		return err
	}
	if listener == nil {
		if listener, err = net.Listen("tcp", o.address); err != nil {
			return badInput("--listen: %w", err)
		}
		defer listener.Close()
	}
	tier, err := parseMinTier(o.minTier)
	if err != nil {
		return err
	}
	zygotes := zygote.Options{Python: sandboxPython(o.python), Preferred: toolsPython(), Workers: o.workers,
		Preload: o.preload, MinTier: tier}
	executor, err := zygote.Open(zygotes)
	if errors.Is(err, sandbox.ErrBadCall) {
		return badInput("--preload: %w", err)
	}
	if err != nil {
		return err
	}
	defer executor.Close()
	sessions := zygote.NewLateSessions(zygotes, executor)
	defer sessions.Close()
	log, err := serveLog(con, o, file.secrets())
	if err != nil {
		return err
	}
	s := service.New(service.Options{
		Executor: executor, Sessions: sessions, QueueBytes: int64(o.queueMB) << 20, QueueLife: o.life,
		KeepBytes: int64(o.keepMB) << 20, KeepFor: o.keep,
		MostConnections: o.conns, MostSessions: o.sessions, SessionIdle: o.idle, Clients: file.clients,
		Log: slog.New(log), LogCode: o.logCode,
	})
	defer s.Close()
	if o.tokenFile != "" {
		defer file.follow(ctx, slog.New(log), s.SetClients)()
	}
	scheme := "http"
	if secure != nil {
		scheme = "https"
	}
	python, version := executor.Python()
	fmt.Fprintf(con.out, "listening on %s://%s: tier %s, %d calls at once, Python %s at %s\n",
		scheme, listener.Addr(), executor.Isolation(), executor.Workers(), version, python)
	return s.Serve(ctx, listener, secure, o.drain)
}

// serveLog is the command's log. Code is logged at level info, so --log-code shows that level.
func serveLog(con *console, o sandboxServeOptions, secrets []string) (slog.Handler, error) {
	level := slog.LevelWarn
	if o.logCode {
		level = slog.LevelInfo
	}
	return con.log(level, secrets...)
}

// guarded refuses options that protect too little. A service that other machines reach needs a token, and TLS around
// it.
func (o sandboxServeOptions) guarded() error {
	open, err := o.open()
	if err != nil {
		return err
	}
	if open && o.tokenFile == "" {
		return badInput("--listen %s is open to other machines: name a token with --token-file, and a "+
			"certificate with --tls-cert and --tls-key", o.address)
	}
	if open && o.cert == "" && o.key == "" {
		return badInput("--listen %s is open to other machines, which would send the token, code and results in "+
			"plain text: "+
			"name a certificate with --tls-cert and --tls-key, or listen on 127.0.0.1 behind a proxy that speaks TLS",
			o.address)
	}
	return nil
}
