package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/grants"
	"github.com/ropewalk/ropewalk/sandbox/service"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/presigned"
	"github.com/ropewalk/ropewalk/store/s3"
)

type presignOptions struct {
	listening
	metrics metricsOptions
}

func presignCommand(con *console) *cobra.Command {
	o := presignOptions{}
	cmd := &cobra.Command{
		Use:   "presign",
		Short: "let workers of the queue sandbox use the store without its credentials",
		Long: "presign holds the store's credentials (the AWS_* variables) and gives clients presigned URLs: each\n" +
			"permits one request for a minute. A client may ask for what workers of the queue sandbox need, and\n" +
			"nothing else (docs/deploy.md). Content goes directly between the client and the S3 server. Clients\n" +
			"need a token; on addresses that other machines reach the presigner needs a certificate, too.\n" +
			"The file of --token-file holds one token or names clients (docs/sandbox.md); refusals name the client.\n" +
			"Metrics have an address of their own: Prometheus needs no token, with which it could read the record.",
		Example: "  ropewalk presign --token-file token\n" +
			"  ropewalk presign --listen 0.0.0.0:8291 --token-file clients --tls-cert cert.pem --tls-key key.pem\n" +
			"  " + presignerToken + "=$(cat token) ropewalk worker --queues sandbox --presigner http://127.0.0.1:8291",
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.serve(cmd.Context(), con) },
	}
	o.add(cmd.Flags(), "127.0.0.1:8291")
	o.metrics.add(cmd.Flags(), metricsVariable)
	cmd.Flags().Lookup("token-file").Usage = "file with the token that requests must bear (Authorization: Bearer " +
		"TOKEN), or with the tokens of named clients; read again when it changes, and on SIGHUP"
	return cmd
}

func (o presignOptions) serve(ctx context.Context, con *console) error {
	if o.tokenFile == "" { // every program of the machine would have the store
		return badInput("name the clients' tokens with --token-file")
	}
	file, err := o.clients()
	if err != nil {
		return err
	}
	clients, err := clientsOf(file.clients)
	if err != nil {
		return badInput("--token-file %s: %w", o.tokenFile, err)
	}
	open, err := o.open()
	if err != nil {
		return err
	}
	secure, err := o.tls()
	if err != nil {
		return err
	}
	if open && secure == nil {
		return badInput("--listen %s is open to other machines, which would get URLs of the store in plain text: name "+
			"a certificate with --tls-cert and --tls-key", o.address)
	}
	options, err := s3.FromEnv()
	if err != nil {
		return badinput.Of(err)
	}
	code, err := codeDigest()
	if err != nil {
		return err
	}
	counts, stop, err := o.metrics.serve(con, "presigner", code)
	if err != nil {
		return err
	}
	defer stop()
	options.Observer = counts.Requests()
	objects, err := s3.New(options)
	if err != nil {
		return badinput.Of(err)
	}
	if err := persist(ctx, func() error { return store.Probe(ctx, objects) }); err != nil {
		return err
	}
	names := make([]string, len(clients))
	for i, c := range clients {
		names[i] = c.Name
	}
	handler, err := con.log(slog.LevelWarn, file.secrets()...)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.address)
	if err != nil {
		return badInput("--listen: %w", err)
	}
	defer listener.Close()
	scheme := "http"
	if secure != nil {
		scheme = "https"
	}
	fmt.Fprintf(con.out, "listening on %s://%s: URLs for %s are valid for %s; clients: %s\n", scheme, listener.Addr(),
		objects, presigned.Life, strings.Join(names, ", "))
	log := slog.New(handler)
	presigner := presigned.NewService(presigned.ServiceOptions{Store: objects, Clients: clients,
		Policy: grants.SandboxQueue(), Log: log, Observer: counts.Presign(presigned.Answers())})
	defer file.follow(ctx, log, func(all []service.Client) {
		clients, err := clientsOf(all)
		if err != nil {
			log.Error("kept the clients of before, the file cannot be used", "error", err)
			return
		}
		presigner.SetClients(clients)
	})()
	return presigner.Serve(ctx, listener, secure)
}

// clientsOf returns the clients of a file. A presigner has no quotas, and a file that sets some is refused.
func clientsOf(all []service.Client) ([]presigned.Client, error) {
	out := make([]presigned.Client, len(all))
	for i, c := range all {
		if c.Quota != (service.Quota{}) {
			return nil, fmt.Errorf("client %s: a presigner has no quotas: name and tokens only", c.Name)
		}
		out[i].Name = c.Name
		for _, t := range c.Tokens {
			out[i].Tokens = append(out[i].Tokens, t)
		}
	}
	return out, nil
}
