package service

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

// clientsFile is the YAML form of a file of clients.
type clientsFile struct {
	Clients []clientEntry `yaml:"clients"`
}

type clientEntry struct {
	Name     string   `yaml:"name"`
	Tokens   []string `yaml:"tokens"`
	Calls    *int     `yaml:"calls"`
	Running  *int     `yaml:"running"`
	Sessions *int     `yaml:"sessions"`
	QueueMB  *int     `yaml:"queue_mb"`
}

const (
	mostClients  = 256 // as many values the label of the metrics can have
	leastToken   = 16  // bytes; the digest of a shorter token could be inverted by trying
	digestPrefix = "sha256:"
	leastQueueMB = int(rpc.MostMessage >> 20)
	mostQueueMB  = 1 << 20
)

var clientName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// ParseClients reads a file of clients: one line with a token, which is that of the client "default", or YAML.
//
//	clients:
//	  - name: rl                # in metrics and in the log
//	    tokens: [sha256:9f86…]  # digests in hexadecimal, or the tokens themselves
//	    calls: 512              # calls without an answer
//	    running: 2              # calls that run
//	    sessions: 64            # sessions that are open
//	    queue_mb: 64            # MiB of requests that are read, and of calls that wait
//
// All but name and tokens may be left out. It reports the first fault as "name:line: field: fault". Neither the error
// nor the result contains a token.
func ParseClients(name string, text []byte) ([]Client, error) {
	bare := strings.TrimSpace(string(text))
	if bare == "" {
		return nil, fmt.Errorf("%s is empty", name)
	}
	if !strings.Contains(bare, "\n") && !strings.HasPrefix(bare, "clients:") {
		return []Client{{Name: defaultClient, Tokens: []Token{TokenOf(bare)}}}, nil
	}
	var file clientsFile
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&file); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s is empty", name)
	} else if err != nil {
		return nil, inFile(name, err)
	}
	if err := d.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: the file has more than one document", name)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, inFile(name, err)
	}
	if n := len(file.Clients); n == 0 || n > mostClients {
		return nil, fmt.Errorf("%s:%d: clients: there are %d, 1 to %d are taken", name, root.Content[0].Line, n,
			mostClients)
	}
	var out []Client
	for i, e := range file.Clients {
		one, field, err := e.client(out)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: clients[%d].%s: %w", name, lineOf(root.Content[0], i, field), i, field, err)
		}
		out = append(out, one)
	}
	return out, nil
}

// client converts an entry. On an error it returns the field at fault.
func (e clientEntry) client(before []Client) (out Client, field string, err error) {
	if !clientName.MatchString(e.Name) {
		return out, "name", errors.New("a name has 1 to 63 letters, digits, and . _ - after the first")
	}
	if slices.ContainsFunc(before, func(c Client) bool { return c.Name == e.Name }) {
		return out, "name", fmt.Errorf("%q is the name of another client", e.Name)
	}
	out.Name = e.Name
	if len(e.Tokens) == 0 {
		return out, "tokens", errors.New("the client has no token")
	}
	for i, text := range e.Tokens {
		t, err := parseToken(text)
		if err != nil {
			return out, "tokens", fmt.Errorf("entry %d: %w", i, err)
		}
		for _, c := range append(slices.Clone(before), out) {
			if slices.Contains(c.Tokens, t) {
				return out, "tokens", fmt.Errorf("entry %d is also a token of client %q", i, c.Name)
			}
		}
		out.Tokens = append(out.Tokens, t)
	}
	for _, bound := range []struct {
		field       string
		value       *int
		least, most int
		set         func(int)
	}{
		{limitCalls, e.Calls, 1, 1 << 20, func(n int) { out.Quota.Calls = n }},
		{limitRunning, e.Running, 1, 1 << 20, func(n int) { out.Quota.Running = n }},
		{limitSessions, e.Sessions, 1, 1 << 20, func(n int) { out.Quota.Sessions = n }},
		{limitBytes, e.QueueMB, leastQueueMB, mostQueueMB, func(n int) { out.Quota.Bytes = int64(n) << 20 }},
	} {
		if bound.value == nil {
			continue
		}
		if *bound.value < bound.least || *bound.value > bound.most {
			return out, bound.field, fmt.Errorf("%d is not between %d and %d", *bound.value, bound.least, bound.most)
		}
		bound.set(*bound.value)
	}
	return out, "", nil
}

func parseToken(text string) (t Token, err error) {
	digest, hashed := strings.CutPrefix(text, digestPrefix)
	if !hashed {
		if len(text) < leastToken {
			return t, fmt.Errorf("a token has at least %d characters", leastToken)
		}
		return TokenOf(text), nil
	}
	b, err := hex.DecodeString(digest)
	if err != nil || len(b) != len(t) {
		return t, fmt.Errorf("after %s come %d hexadecimal digits", digestPrefix, 2*len(t))
	}
	return Token(b), nil
}

// lineOf returns the line of a field of a client, or of what is nearest to it.
func lineOf(root *yaml.Node, client int, field string) int {
	at := root
	if list := valueOf(root, "clients"); list != nil {
		at = list
	}
	if client < len(at.Content) {
		at = at.Content[client]
	}
	if value := valueOf(at, field); value != nil {
		at = value
	}
	return at.Line
}

// valueOf returns the value of a key of a YAML mapping; nil if it has no such key.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

var (
	quotedValue = regexp.MustCompile("(?s) `.*?`") // could be a token
	yamlLine    = regexp.MustCompile(`(?s)^line (\d+): (.*)$`)
)

// inFile rewrites the first fault that the YAML library reports.
func inFile(name string, err error) error {
	text := err.Error()
	var typed *yaml.TypeError
	if errors.As(err, &typed) {
		text = typed.Errors[0]
	}
	text = badinput.YAML(quotedValue.ReplaceAllString(text, ""))
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		return fmt.Errorf("%s:%s: %s", name, m[1], m[2])
	}
	return fmt.Errorf("%s: %s", name, text)
}
