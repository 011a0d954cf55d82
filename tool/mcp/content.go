package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/tool"
)

// result returns the verdict that an answer is. Texts are joined line by line, structured content is JSON unless a text
// holds it already, and other content is a note that names its type.
func (s *session) result(r *sdk.CallToolResult) (tool.Result, error) {
	if r == nil || r.NeedsInput() {
		return tool.Result{}, fmt.Errorf("call a tool of MCP server %s: %w: it asks for a person's input",
			s.server.Name, ErrAnswer)
	}
	var parts []string
	for _, c := range r.Content {
		parts = append(parts, textOfContent(c))
	}
	if r.StructuredContent != nil {
		text, err := json.Marshal(r.StructuredContent)
		if err != nil {
			return tool.Result{}, fmt.Errorf("call a tool of MCP server %s: %w: %w", s.server.Name, ErrAnswer, err)
		}
		if !holds(r.Content, text) {
			parts = append(parts, string(unescaped(text)))
		}
	}
	text := s.clean(strings.Join(parts, "\n"))
	if most := s.server.OutputKB << 10; len(text) > most {
		return tool.Result{Status: tool.OutputLimit, Stdout: cutAt(text, most),
			Stderr: fmt.Sprintf("the answer has more than %d KiB", s.server.OutputKB)}, nil
	}
	if r.IsError {
		return s.failed(text), nil
	}
	return tool.Result{Status: tool.OK, Stdout: text}, nil
}

// failed is the verdict on a call that failed.
func (s *session) failed(text string) tool.Result {
	if text = s.clean(text); text == "" {
		text = "the tool failed"
	}
	return tool.Result{Status: tool.Failed, Stderr: cutAt(text, s.server.OutputKB<<10)}
}

// clean removes secrets and bytes that are no text.
func (s *session) clean(text string) string {
	return s.secrets.Conceal(strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\uFFFD"), "\uFFFD"))
}

func textOfContent(c sdk.Content) string {
	switch c := c.(type) {
	case *sdk.TextContent:
		return c.Text
	case *sdk.ImageContent:
		return fmt.Sprintf("[image, %s, %d bytes]", c.MIMEType, len(c.Data))
	case *sdk.AudioContent:
		return fmt.Sprintf("[audio, %s, %d bytes]", c.MIMEType, len(c.Data))
	case *sdk.ResourceLink:
		return fmt.Sprintf("[link to resource %s, %s]", c.URI, c.MIMEType)
	case *sdk.EmbeddedResource:
		if c.Resource == nil {
			return "[resource]"
		}
		if len(c.Resource.Blob) > 0 {
			return fmt.Sprintf("[resource %s, %s, %d bytes]", c.Resource.URI, c.Resource.MIMEType, len(c.Resource.Blob))
		}
		return fmt.Sprintf("[resource %s, %s]\n%s", c.Resource.URI, c.Resource.MIMEType, c.Resource.Text)
	}
	return "[content that is neither text, image, audio nor resource]"
}

// holds reports whether one of the texts is this JSON value.
func holds(content []sdk.Content, value []byte) bool {
	var want any
	if json.Unmarshal(value, &want) != nil {
		return false
	}
	for _, c := range content {
		var got any
		if t, ok := c.(*sdk.TextContent); ok && json.Unmarshal([]byte(t.Text), &got) == nil &&
			reflect.DeepEqual(got, want) {
			return true
		}
	}
	return false
}

// unescaped writes JSON with the characters of HTML as they are.
func unescaped(text []byte) []byte {
	var v any
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil || e.Encode(v) != nil {
		return text
	}
	return bytes.TrimSpace(b.Bytes())
}

// cutAt cuts a text after at most n bytes, between characters.
func cutAt(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
