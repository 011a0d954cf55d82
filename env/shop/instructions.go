package shop

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// maxInstructions bounds the size of a file of instructions in bytes.
const maxInstructions = 64 << 20

// ReadInstructions reads the texts of WebShop's goals that people wrote: the release's human_goals.json, which is a
// JSON list of texts. The products of those goals are Amazon's and not part of the file, so a text can be searched for
// and cannot be scored.
func ReadInstructions(r io.Reader) ([]string, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxInstructions+1))
	if err != nil {
		return nil, fmt.Errorf("read instructions: %w", err)
	}
	if len(text) > maxInstructions {
		return nil, fmt.Errorf("read instructions: the file has more than %d MiB", maxInstructions>>20)
	}
	if !utf8.Valid(text) {
		return nil, errors.New("read instructions: the file is not UTF-8")
	}
	var out []string
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("read instructions: want a JSON list of texts: %w", err)
	}
	if len(out) == 0 {
		return nil, errors.New("read instructions: the list is empty")
	}
	for i, line := range out {
		if out[i] = strings.TrimSpace(line); out[i] == "" {
			return nil, fmt.Errorf("read instructions: entry %d has no text", i)
		}
	}
	return out, nil
}
