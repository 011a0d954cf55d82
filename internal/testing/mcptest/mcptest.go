// Package mcptest has MCP servers for tests. An honest server counts; hostile ones hang, die, flood and lie. A test's
// program becomes such a server when it is started as Command says (Main).
package mcptest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// variable tells a test's program to be a server, and which.
const variable = "ROPEWALK_TEST_MCP_SERVER"

// Main runs the tests, or the server that the variable names. A package's TestMain calls it.
func Main(m *testing.M) {
	if mode, ok := os.LookupEnv(variable); ok {
		if err := serve(mode, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Command returns the command and the variables of a server: "honest", or a mode of hostile servers. more are further
// variables.
func Command(mode string, more ...string) (command, env []string) {
	return []string{os.Args[0]}, append([]string{variable + "=" + mode}, more...)
}

// Handler returns the honest server over streamable HTTP, a counter for each session.
func Handler() http.Handler {
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return honest() }, nil)
}

func serve(mode string, in io.Reader, out io.Writer) error {
	if mode == "honest" {
		err := honest().Run(context.Background(), &sdk.StdioTransport{})
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
	h := &hostile{mode: mode, out: bufio.NewWriter(out)}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if err := h.answer(lines.Bytes()); err != nil {
			return err
		}
	}
	return lines.Err()
}

// counter is the state of one session.
type counter struct {
	mu sync.Mutex
	n  int
}

type amount struct {
	By int `json:"by" jsonschema:"what is added"`
}

type word struct {
	Text string `json:"text" jsonschema:"what is said"`
}

// honest makes a server with a counter of its own and tools of every kind of result.
func honest() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "counter", Version: "1"}, nil)
	c := &counter{}
	sdk.AddTool(s, &sdk.Tool{Name: "add", Description: "Adds to the counter.\nReturns its value."},
		func(_ context.Context, _ *sdk.CallToolRequest, in amount) (*sdk.CallToolResult, any, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.n += in.By
			if file := os.Getenv("EXECUTIONS"); file != "" { // the effect outside, which tests count
				f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
				if err != nil {
					return nil, nil, err
				}
				defer f.Close()
				fmt.Fprintln(f, c.n)
			}
			return text(fmt.Sprintf("the counter is %d", c.n)), nil, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "Say-It", Description: "says a text",
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *sdk.CallToolRequest, in word) (*sdk.CallToolResult, any, error) {
			return text(in.Text), nil, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "fail", Annotations: &sdk.ToolAnnotations{IdempotentHint: true}},
		func(_ context.Context, _ *sdk.CallToolRequest, in word) (*sdk.CallToolResult, any, error) {
			return nil, nil, errors.New(in.Text)
		})
	sdk.AddTool(s, &sdk.Tool{Name: "show", Description: "shows one of each kind"}, show)
	sdk.AddTool(s, &sdk.Tool{Name: "variables", Description: "lists the program's variables"},
		func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			return text(strings.Join(os.Environ(), "\n")), nil, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "die", Description: "ends the program, once if a file is given"},
		func(_ context.Context, _ *sdk.CallToolRequest, in word) (*sdk.CallToolResult, any, error) {
			if _, err := os.Stat(in.Text); in.Text != "" && err == nil {
				return text("still alive"), nil, nil
			}
			if in.Text != "" {
				if err := os.WriteFile(in.Text, nil, 0o600); err != nil {
					return nil, nil, err
				}
			}
			os.Exit(3)
			return nil, nil, nil
		})
	return s
}

func show(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
	return &sdk.CallToolResult{Content: []sdk.Content{
		&sdk.TextContent{Text: "a text"},
		&sdk.ImageContent{MIMEType: "image/png", Data: []byte("png")},
		&sdk.AudioContent{MIMEType: "audio/wav", Data: []byte("wave")},
		&sdk.ResourceLink{URI: "file:///a.txt", Name: "a", MIMEType: "text/plain"},
		&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///b.txt", MIMEType: "text/plain",
			Text: "inside b"}},
	}, StructuredContent: map[string]any{"b": 2, "a": "<x>"}}, nil, nil
}

func text(s string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
}
