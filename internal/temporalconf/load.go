package temporalconf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"

	ropewalk "github.com/ropewalk/ropewalk"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"go.yaml.in/yaml/v3"
)

// fileName is the name of the project file.
const fileName = "temporal.yaml"

// errInvalid is wrapped by every error about the content of a configuration.
var errInvalid = errors.New("invalid temporal configuration")

// Load reads the file at path. With an empty path it reads temporal.yaml of the working folder, or the built-in one if
// the folder has none.
func Load(path string) (Config, error) {
	name, optional := path, path == ""
	if optional {
		name = fileName
	}
	text, err := os.ReadFile(name)
	switch {
	case optional && errors.Is(err, fs.ErrNotExist):
		return Default()
	case err != nil:
		return Config{}, fmt.Errorf("read temporal configuration: %w", err)
	}
	return parse(name, text)
}

// Default parses the built-in configuration.
func Default() (Config, error) { return parse("built-in "+fileName, ropewalk.TemporalYAML) }

// parse reads one YAML document strictly and validates it. name is used only in messages. All faults are reported at
// once, one per line, as "name:line: path: fault".
func parse(name string, text []byte) (Config, error) {
	var c Config
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&c); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the file is empty")
		}
		return Config{}, fmt.Errorf("%w: %s", errInvalid, yamlFaults(name, err))
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return Config{}, fmt.Errorf("%w: %s: %v", errInvalid, name, err)
	}
	var lines []string
	for _, f := range c.faults() {
		lines = append(lines, fmt.Sprintf("%s:%d: %s: %s", name, lineOf(&root, f.path), f.path, f.text))
	}
	if len(lines) > 0 {
		return Config{}, fmt.Errorf("%w: %s", errInvalid, strings.Join(lines, "\n"))
	}
	return c, nil
}

var yamlLine = regexp.MustCompile(`^line (\d+): (.*)$`)

// yamlFaults rewrites the library's message as name:line: fault.
func yamlFaults(name string, err error) string {
	texts := []string{err.Error()}
	var te *yaml.TypeError
	if errors.As(err, &te) {
		texts = te.Errors
	}
	for i, t := range texts {
		t = badinput.YAML(t)
		if m := yamlLine.FindStringSubmatch(t); m != nil {
			texts[i] = fmt.Sprintf("%s:%s: %s", name, m[1], m[2])
		} else {
			texts[i] = name + ": " + t
		}
	}
	return strings.Join(texts, "\n")
}

// lineOf returns the line of a dotted path, or of its nearest parent that exists. Keys of dynamic_config contain dots,
// so it uses the longest matching key.
func lineOf(n *yaml.Node, path string) int {
	if n.Kind == yaml.DocumentNode && len(n.Content) > 0 {
		n = n.Content[0]
	}
	line := n.Line
	if n.Kind != yaml.MappingNode {
		return line
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i].Value
		if key == path {
			return n.Content[i].Line
		}
		if rest, ok := strings.CutPrefix(path, key+"."); ok {
			if n.Content[i+1].Kind != yaml.MappingNode {
				return n.Content[i].Line
			}
			if l := lineOf(n.Content[i+1], rest); l > n.Content[i].Line {
				return l
			}
			return n.Content[i].Line
		}
	}
	return line
}
