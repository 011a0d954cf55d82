// Package logs makes the program's log: structured lines, each with the run, step, stage, shard and attempt that it is
// about, and without secrets.
//
// The code that runs a stage puts its whereabouts into the context (With). Lines that are logged with that context
// (slog.InfoContext and its neighbours) carry them. The handler (New) also conceals the program's secrets and the user
// information of addresses in messages, texts and errors, and so does Concealing for what a command tells a person. It
// is the last barrier: code is to log neither prompts, nor responses, nor code, nor secrets in the first place.
package logs

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
)

type key struct{}

// With returns a context whose lines carry the attributes, instead of those of the same names and next to the others
// that ctx has.
func With(ctx context.Context, attrs ...slog.Attr) context.Context {
	kept := slices.DeleteFunc(slices.Clone(of(ctx)), func(a slog.Attr) bool {
		return slices.ContainsFunc(attrs, func(b slog.Attr) bool { return a.Key == b.Key })
	})
	return context.WithValue(ctx, key{}, append(kept, attrs...))
}

func of(ctx context.Context) []slog.Attr {
	attrs, _ := ctx.Value(key{}).([]slog.Attr)
	return attrs
}

// formats are the forms of a log: one key=value line, or one JSON object a line.
var formats = []string{"text", "json"}

// Variables of the environment that hold secrets of the program. Their values never appear in the log.
var secretVariables = []string{"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "TEMPORAL_API_KEY",
	"ROPEWALK_SANDBOX_TOKEN", "HF_TOKEN", "OTEL_EXPORTER_OTLP_HEADERS"}

// Options of a log.
type Options struct {
	Format string // one of formats; "" is text
	Level  slog.Level
	// Secrets are texts that never appear; those of the environment's variables are added.
	Secrets []string
}

// New returns the program's handler, which writes to w.
func New(w io.Writer, o Options) (slog.Handler, error) {
	c := newConcealer(o.Secrets)
	options := &slog.HandlerOptions{Level: o.Level, ReplaceAttr: c.replace}
	switch o.Format {
	case "", "text":
		return handler{slog.NewTextHandler(w, options)}, nil
	case "json":
		return handler{slog.NewJSONHandler(w, options)}, nil
	}
	return nil, fmt.Errorf("log format %q: want %s", o.Format, strings.Join(formats, " or "))
}

// least is the shortest secret that is concealed, in bytes: a shorter one cannot be told from other text.
const least = 6

// handler adds a context's attributes.
type handler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	r.AddAttrs(of(ctx)...)
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }

// Conceal returns a message to a person without the program's secrets and without the user information of addresses.
func Conceal(text string) string { return newConcealer(nil).text(text) }

// Concealing returns a writer that passes messages to w as Conceal returns them. Each Write must be whole lines.
func Concealing(w io.Writer) io.Writer { return concealing{w, newConcealer(nil)} }

type concealing struct {
	to io.Writer
	concealer
}

// Write implements io.Writer.
func (c concealing) Write(p []byte) (int, error) {
	if _, err := io.WriteString(c.to, c.text(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// concealer takes secrets out of texts.
type concealer struct{ secrets []string }

// newConcealer knows these secrets and those of the environment's variables.
func newConcealer(given []string) concealer {
	var c concealer
	for _, name := range secretVariables {
		given = append(slices.Clip(given), os.Getenv(name))
	}
	for _, secret := range given {
		if len(secret) >= least {
			c.secrets = append(c.secrets, secret)
		}
	}
	return c
}

// userInfo matches the credentials of an address.
var userInfo = regexp.MustCompile(`(://)[^/\s"'@]+@`)

// presigned matches what makes an S3 URL a presigned one, which is a secret for as long as it is valid. Hubs redirect
// downloads to such URLs.
var presigned = regexp.MustCompile(`(X-Amz-(?:Credential|Security-Token|Signature)=)[^&\s"'<>]+`)

const concealed = "[secret]"

func (c concealer) text(s string) string {
	for _, secret := range c.secrets {
		s = strings.ReplaceAll(s, secret, concealed)
	}
	return presigned.ReplaceAllString(userInfo.ReplaceAllString(s, "${1}"+concealed+"@"), "${1}"+concealed)
}

// replace conceals what a handler is about to write. Values that are neither texts, numbers nor times are written as
// text, so that no field of a struct gets past it.
func (c concealer) replace(_ []string, a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(c.text(v.String()))
	case slog.KindAny:
		switch x := v.Any().(type) {
		case slog.Level, *slog.Source:
			return a
		case error:
			a.Value = slog.StringValue(c.text(x.Error()))
		default:
			a.Value = slog.StringValue(c.text(fmt.Sprint(x)))
		}
	}
	return a
}
