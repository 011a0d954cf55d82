package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/grants"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/presigned"
	"github.com/ropewalk/ropewalk/store/s3"
)

type presignOptions struct{ listening }

func presignCommand(con *console) *cobra.Command {
	o := presignOptions{}
	cmd := &cobra.Command{
		Use:   "presign",
		Short: "let workers of the queue sandbox use the store without its credentials",
		Long: "presign holds the store's credentials (the AWS_* variables) and gives clients presigned URLs: each\n" +
			"permits one request for a minute. A client may ask for what workers of the queue sandbox need, and\n" +
			"nothing else (docs/deploy.md). Content goes directly between the client and the S3 server. Clients\n" +
			"need a token; on addresses that other machines reach the presigner needs a certificate, too.\n" +
			"The token's file holds one token, or a line NAME TOKEN for each client. A refusal names the client.",
		Example: "  ropewalk presign --token-file token\n" +
			"  ropewalk presign --listen 0.0.0.0:8291 --token-file clients --tls-cert cert.pem --tls-key key.pem\n" +
			"  " + presignerToken + "=$(cat token) ropewalk worker --queues sandbox --presigner http://127.0.0.1:8291",
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.serve(cmd.Context(), con) },
	}
	o.add(cmd.Flags(), "127.0.0.1:8291")
	return cmd
}

func (o presignOptions) serve(ctx context.Context, con *console) error {
	clients, err := o.clients()
	if err != nil {
		return err
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
	objects, err := s3.New(options)
	if err != nil {
		return badinput.Of(err)
	}
	if err := persist(ctx, func() error { return store.Probe(ctx, objects) }); err != nil {
		return err
	}
	names, secrets := make([]string, len(clients)), make([]string, len(clients))
	for i, c := range clients {
		names[i], secrets[i] = c.Name, c.Token
	}
	log, err := con.log(slog.LevelWarn, secrets...)
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
	return presigned.NewService(presigned.ServiceOptions{Store: objects, Clients: clients,
		Policy: grants.SandboxQueue(), Log: slog.New(log)}).Serve(ctx, listener, secure)
}

// loneClient is the name of the client whose token is the only one.
const loneClient = "sandbox"

// clients reads the tokens' file. A presigner without one would give every program of the machine the store.
func (o presignOptions) clients() ([]presigned.Client, error) {
	if o.tokenFile == "" {
		return nil, badInput("name the clients' tokens with --token-file")
	}
	data, err := os.ReadFile(o.tokenFile)
	if err != nil {
		return nil, badInput("--token-file: %w", err)
	}
	var out []presigned.Client
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		c := presigned.Client{Name: loneClient}
		switch fields := strings.Fields(line); len(fields) {
		case 0:
			continue
		case 1:
			c.Token = fields[0]
		case 2:
			c.Name, c.Token = fields[0], fields[1]
		default:
			return nil, badInput("--token-file %s: line %d has %d words: want NAME TOKEN", o.tokenFile, number,
				len(fields))
		}
		for _, other := range out {
			if other.Name == c.Name || other.Token == c.Token {
				return nil, badInput("--token-file %s: line %d repeats the name or the token of client %s", o.tokenFile,
					number, other.Name)
			}
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, badInput("--token-file: %s is empty", o.tokenFile)
	}
	return out, nil
}
