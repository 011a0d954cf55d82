package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/internal/serve"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/cpu"
)

type serveOptions struct {
	listening
	name, toolFormat       string
	threads, rows, tokens  int
	context, queue, bodyMB int
	allowLoad              bool
	drain                  time.Duration
}

func serveCommand(con *console) *cobra.Command {
	o := serveOptions{}
	cmd := &cobra.Command{
		Use:   "serve CHECKPOINT",
		Short: "serve a model to programs that speak OpenAI's API, on the CPU",
		Long: "serve answers POST /v1/completions and /v1/chat/completions, whole or streamed, with\n" +
			"log-probabilities, token ids and calls of tools, and GET /v1/models, /health and /metrics. CHECKPOINT\n" +
			"is a folder or a GGUF file (./model), the name of a model in the folder of models,\n" +
			"hf://OWNER/NAME[@REVISION], s3://BUCKET/KEY, or a run's policy as RUN[@STEP], where STEP is a number,\n" +
			"latest (the default) or best. Requests join and leave the batch at any token, and prompts that begin\n" +
			"alike are computed once. The same prompt, seed and weights give the same tokens, whatever else is\n" +
			"asked for at the same time.\n\n" +
			"It listens on this machine only; on another address it needs a token. Without a token it accepts only\n" +
			"requests to 127.0.0.1, [::1] and localhost. On SIGTERM or Ctrl-C it accepts no more requests and\n" +
			"finishes those that it has. docs/serve.md",
		Example: "  ropewalk serve ./model\n" +
			"  ropewalk serve hf://HuggingFaceTB/SmolLM2-135M-Instruct --max-model-len 4096\n" +
			"  ropewalk serve quickstart-s1-20260102-030405@best --name policy\n" +
			"  ropewalk serve ./model --listen 0.0.0.0:8000 --token-file token " +
			"--tls-cert cert.pem --tls-key key.pem\n" +
			"  curl -s localhost:8000/v1/completions -H 'Content-Type: application/json' \\\n" +
			"    -d '{\"prompt\": \"The capital of France is\", \"temperature\": 0}'",
		Args: exactly("CHECKPOINT"),
		RunE: func(cmd *cobra.Command, args []string) error { return serveModel(cmd.Context(), con, args[0], o) },
	}
	f := cmd.Flags()
	o.add(f, "127.0.0.1:8000")
	f.StringVar(&o.name, "name", "", "the model's `NAME` in requests and answers (default: from CHECKPOINT)")
	f.IntVar(&o.threads, "threads", 0, "threads that compute (default: as many as cores)")
	f.IntVar(&o.rows, "rows", 64, "responses that are generated at once; further ones wait")
	f.IntVar(&o.tokens, "kv-tokens", 0, "tokens whose keys and values are held, for responses and for prompts that "+
		"begin alike (default: as many as fit in 1 GiB, and one whole context at least)")
	f.IntVar(&o.context, "max-model-len", 0, "longest prompt and response together, in tokens (default: what the "+
		"model and --kv-tokens permit)")
	f.StringVar(&o.toolFormat, "tool-format", "", "the form in which the model writes calls, by a name of "+
		"docs/protocols.md (default: the form that its chat template writes)")
	f.IntVar(&o.queue, "queue", serve.UsualQueue, "responses that may wait; beyond it requests are answered with 429")
	f.IntVar(&o.bodyMB, "body-mb", serve.UsualBodyBytes>>20, "MiB of one request at most")
	f.BoolVar(&o.allowLoad, "allow-load", false, "answer POST /v1/load, which replaces the weights by those of a "+
		"folder on this machine")
	f.DurationVar(&o.drain, "drain", time.Minute, "how long to finish requests before ending")
	return cmd
}

// check refuses values with which nothing can be served.
func (o serveOptions) check() error {
	for _, f := range []struct {
		name         string
		value, least int
	}{
		{"threads", o.threads, 0}, {"rows", o.rows, 1}, {"kv-tokens", o.tokens, 0}, {"max-model-len", o.context, 0},
		{"queue", o.queue, 1}, {"body-mb", o.bodyMB, 1},
	} {
		if f.value < f.least {
			return badInput("--%s is %d, it must be at least %d", f.name, f.value, f.least)
		}
	}
	open, err := o.open()
	if err == nil && open && o.tokenFile == "" {
		err = badInput("--listen %s is open to other machines: name a token with --token-file", o.address)
	}
	return err
}

func serveModel(ctx context.Context, con *console, checkpoint string, o serveOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	token, err := o.token()
	if err != nil {
		return err
	}
	secure, err := o.tls()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.address)
	if err != nil {
		return badInput("--listen: %w", err)
	}
	defer listener.Close()
	if open, _ := o.open(); open && secure == nil {
		fmt.Fprintln(con.err, "warning: without --tls-cert the token, prompts and answers go over the network in "+
			"plain text")
	}
	engine, err := cpu.Open(cpu.Options{Threads: o.threads})
	if err != nil {
		return err
	}
	defer engine.Close()
	model, name, err := loadServed(ctx, con, engine, checkpoint)
	if err != nil {
		return err
	}
	if o.name != "" {
		name = o.name
	}
	batcher, ok := engine.(policy.Batcher)
	if !ok {
		return errors.New("the engine has no batches")
	}
	log, err := con.log(slog.LevelWarn, token)
	if err != nil {
		return err
	}
	s, err := serve.New(serve.Options{
		Engine: batcher, Model: model, Name: name, Rows: o.rows, Tokens: o.tokens, Context: o.context, Queue: o.queue,
		BodyBytes: int64(o.bodyMB) << 20, Token: token, AllowLoad: o.allowLoad, ToolFormat: o.toolFormat,
		Log: slog.New(log),
	})
	if err != nil {
		return err
	}
	defer s.Close()
	state, err := engine.State(ctx, policy.RolePolicy)
	if err != nil {
		return err
	}
	scheme := "http"
	if secure != nil {
		scheme = "https"
	}
	fmt.Fprintf(con.out, "listening on %s://%s/v1: %s, %.1f M parameters, weights %.16s, context %d, keys and values "+
		"of %d tokens, %s\n", scheme, listener.Addr(), name, float64(state.Params)/1e6, state.Digest, s.Context(),
		s.Usage().Tokens, engine.Describe().BLAS)
	return s.Serve(ctx, listener, secure, o.drain)
}

// loadServed gets a checkpoint by the form of its address and loads it. What was only needed for that is removed.
func loadServed(ctx context.Context, con *console, engine policy.Engine, checkpoint string) (*serve.Model, string,
	error) {
	dir, err := os.MkdirTemp("", "ropewalk-serve-")
	if err != nil {
		return nil, "", fmt.Errorf("make a folder for the model: %w", err)
	}
	defer os.RemoveAll(dir)
	folder, name, err := servedFolder(ctx, con, checkpoint, dir)
	if err != nil {
		return nil, "", err
	}
	model, err := serve.ReadModel(folder)
	if err != nil {
		return nil, "", badInput("%s: %w", checkpoint, err)
	}
	if err := engine.Load(ctx, policy.RolePolicy, folder, false); err != nil {
		return nil, "", err
	}
	runtime.GC() // what was read of the files
	return model, name, nil
}
