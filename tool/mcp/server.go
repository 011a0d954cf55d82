package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/internal/secret"
	"github.com/ropewalk/ropewalk/tool"
)

// Server is a server as a recipe names it. Exactly one of Command and URL is set.
type Server struct {
	Name     string   `json:"name" required:"true" pattern:"^[a-z][a-z0-9_]{0,31}$" doc:"name of the server; the policy calls its tools NAME_TOOL"`
	Command  []string `json:"command" default:"[]" quiet:"true" doc:"program and arguments of a server that speaks on standard input and output; it runs as the worker's user"`
	Env      []string `json:"env" default:"[]" quiet:"true" doc:"the program's variables, and no others: NAME is the worker's value; NAME=TEXT may hold references to secrets"`
	URL      string   `json:"url" optional:"true" doc:"address of a server that speaks streamable HTTP"`
	Headers  []string `json:"headers" default:"[]" quiet:"true" doc:"headers of each request, NAME=TEXT; TEXT may hold references to secrets"`
	Tools    []string `json:"tools" default:"[]" quiet:"true" doc:"tools that the policy can call, by the server's names; empty = all"`
	Repeat   string   `json:"repeat" default:"at_most_once" enum:"at_most_once|annotations|pure|sandboxed|keyed" doc:"what another attempt does with a call that may have run. annotations: a tool that the server calls read-only is pure, one that it calls idempotent is sandboxed, and any other runs at most once"`
	Session  string   `json:"session" default:"episode" enum:"episode|shared" doc:"each episode has a session of its own, or all share one"`
	Sessions int      `json:"sessions" default:"256" min:"1" max:"65536" doc:"sessions of episodes that a worker holds at once; a program each with command"`
	Seconds  float64  `json:"seconds" default:"60" above:"0" max:"3600" doc:"wall-clock time of one call, and of the start of a session, in seconds; a call that takes longer breaks"`
	OutputKB int      `json:"output_kb" default:"64" min:"1" max:"4096" doc:"text of one result, in KiB"`
	Pinned   []Pinned `json:"pinned" doc:"the tools as the server described them when the run was prepared; a run that is prepared fills it in"`
}

// Pinned is what a server said about a tool.
type Pinned struct {
	Tool        string `json:"tool" required:"true" doc:"the server's name of the tool"`
	Description string `json:"description" optional:"true" doc:"what it does, in one line"`
	Schema      string `json:"schema" required:"true" doc:"JSON schema of its arguments"`
	Repeat      string `json:"repeat" required:"true" enum:"at_most_once|pure|sandboxed|keyed" doc:"what another attempt does with a call that may have run"`
	Digest      string `json:"digest" required:"true" doc:"SHA-256 of the other fields; sessions compare it with what the server says"`
}

// The values of Repeat and Session that are no tool.Repeat.
const (
	ByAnnotations  = "annotations"
	PerEpisode     = "episode"
	SharedSession  = "shared"
	nameBytes      = 64      // of a tool, as the policy calls it
	pinnedBytes    = 1 << 18 // of all tools of a server
	descriptionMax = 8 << 10 // bytes
	schemaMax      = 32 << 10
)

// digest returns the digest of a pinned tool.
func (p Pinned) digest() string {
	h := sha256.New()
	for _, s := range []string{p.Tool, p.Description, p.Schema, p.Repeat} {
		fmt.Fprintf(h, "%d %s", len(s), s)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Identity is the digest of everything that determines what prompts say about the servers' tools and how their calls
// are run; "" without servers.
func Identity(servers []Server) string {
	if len(servers) == 0 {
		return ""
	}
	text, err := json.Marshal(servers)
	if err != nil {
		panic(fmt.Sprintf("mcp: encode servers: %v", err)) // they consist of texts and numbers
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// ToolName is the name by which the policy calls a tool of the server: the server's name and the tool's, in lower case,
// with _ in the place of characters that names of tools do not have.
func (s Server) ToolName(name string) string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, strings.ToLower(name))
	return s.Name + "_" + plain
}

// Spec describes a pinned tool.
func (s Server) Spec(p Pinned) tool.Spec {
	out := tool.Spec{Name: s.ToolName(p.Tool), Doc: p.Description, Schema: json.RawMessage(p.Schema),
		Repeat: tool.Repeat(p.Repeat), Part: "MCP tool " + s.ToolName(p.Tool)}
	if s.Session != SharedSession {
		out.Stateful, out.Server, out.Repeat = true, s.Name, s.repeat()
	}
	return out
}

// repeat is how the calls of a session are repeated: a session is made again by all its calls, so the tool that can be
// repeated least decides.
func (s Server) repeat() tool.Repeat {
	out := tool.Pure
	for _, p := range s.Pinned {
		if r := tool.Repeat(p.Repeat); slices.Index(repeatOrder, r) > slices.Index(repeatOrder, out) {
			out = r
		}
	}
	return out
}

// repeatOrder lists the kinds, those that can be repeated most freely first.
var repeatOrder = []tool.Repeat{tool.Pure, tool.Sandboxed, tool.Keyed, tool.AtMostOnce}

// Specs describes the pinned tools of the server.
func (s Server) Specs() []tool.Spec {
	out := make([]tool.Spec, len(s.Pinned))
	for i, p := range s.Pinned {
		out[i] = s.Spec(p)
	}
	return out
}

// Restores reports whether a session that is lost can be made again.
func (s Server) Restores() bool {
	if len(s.Pinned) == 0 {
		return s.Repeat != string(tool.AtMostOnce) && s.Repeat != ByAnnotations
	}
	return s.repeat() != tool.AtMostOnce
}

// Limit is the time that one call, or the start of a session, may take.
func (s Server) Limit() time.Duration { return time.Duration(s.Seconds * float64(time.Second)) }

// Fault returns the first field with a value that no session can be opened with, and what is wrong with it; "" if there
// is none.
func (s Server) Fault() (field, text string) {
	switch {
	case (len(s.Command) > 0) == (s.URL != ""):
		return "command", "a server has either command or url"
	case len(s.Command) == 0 && len(s.Env) > 0:
		return "env", "is for the program of command, and the server has url"
	case s.URL == "" && len(s.Headers) > 0:
		return "headers", "are sent to url, and the server has command"
	case len(s.Command) > 0 && s.Command[0] == "":
		return "command", "must begin with the name of a program"
	}
	if s.URL != "" {
		u, err := url.Parse(secret.Masked(s.URL))
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return "url", "must be an address that begins with http:// or https://"
		}
		if fault := secret.Literal(s.URL); fault != "" {
			return "url", fault
		}
	}
	for _, of := range []struct {
		field string
		texts []string
	}{{"command", s.Command}, {"env", s.Env}, {"url", []string{s.URL}}, {"headers", s.Headers}} {
		for _, text := range of.texts {
			if fault := secret.Malformed(text); fault != "" {
				return of.field, fault
			}
		}
	}
	for _, e := range s.Env {
		if name, _, _ := strings.Cut(e, "="); name == "" || strings.Contains(name, "$") {
			return "env", fmt.Sprintf("must list NAME or NAME=TEXT, got %q", e)
		}
	}
	for _, h := range s.Headers {
		if name, _, ok := strings.Cut(h, "="); !ok || name == "" || strings.ContainsAny(name, " :\r\n$") {
			return "headers", fmt.Sprintf("must list NAME=TEXT, got %q", h)
		}
	}
	return s.faultOfPins()
}

func (s Server) faultOfPins() (field, text string) {
	names := map[string]bool{}
	for _, p := range s.Pinned {
		if p.Digest != p.digest() {
			return "pinned", fmt.Sprintf("tool %s: the digest is not that of the other fields", p.Tool)
		}
		if _, err := newChecker(p.Schema); err != nil {
			return "pinned", fmt.Sprintf("tool %s: %v", p.Tool, err)
		}
		name := s.ToolName(p.Tool)
		if len(name) > nameBytes {
			return "pinned", fmt.Sprintf("tool %s: its name %s is longer than %d bytes", p.Tool, name, nameBytes)
		}
		if names[name] {
			return "pinned", fmt.Sprintf("two tools have the name %s", name)
		}
		names[name] = true
	}
	return "", ""
}

// Adopt returns the servers with the pinned tools of the earlier servers of the same names, where they have none of
// their own.
func Adopt(servers, earlier []Server) []Server {
	out := slices.Clone(servers)
	for i := range out {
		at := slices.IndexFunc(earlier, func(e Server) bool { return e.Name == out[i].Name })
		if len(out[i].Pinned) == 0 && at >= 0 {
			out[i].Pinned = earlier[at].Pinned
		}
	}
	return out
}
