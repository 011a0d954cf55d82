package importing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ropewalk/ropewalk/env/openai"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/cause"
	"github.com/ropewalk/ropewalk/internal/dataset"
	"github.com/ropewalk/ropewalk/internal/spelling"
	"github.com/ropewalk/ropewalk/internal/step/api"
)

// Recipe is the built-in recipe of an import.
const Recipe = "openai-offline"

// CheckFormat refuses the name of a format that `ropewalk import` does not take.
func CheckFormat(name string) error {
	switch near := spelling.Nearest(name, []string{api.FormatOpenAI}); {
	case name == api.FormatOpenAI:
		return nil
	case near != "":
		return badinput.Errorf("unknown format %q; did you mean %s?", name, near)
	}
	return badinput.Errorf("unknown format %q; there are %s", name, api.FormatOpenAI)
}

// Read reads a file of conversations as a user gives it, and checks it. A file of JSON is taken as it is. The rows of
// another one, of a folder or of what is at a remote address become JSON lines (package dataset).
func Read(ctx context.Context, file string, fetch dataset.Fetch) (data []byte, err error) {
	address := file
	if !dataset.Remote(file) {
		if address, err = filepath.Abs(file); err != nil {
			return nil, err
		}
		info, err := os.Stat(address)
		if err == nil && !info.IsDir() {
			data, err = os.ReadFile(address)
		}
		if err != nil {
			return nil, fmt.Errorf("read conversations: %s: %w", file, cause.Of(err))
		}
	}
	if start := bytes.TrimSpace(data); !bytes.HasPrefix(start, []byte("{")) && !bytes.HasPrefix(start, []byte("[")) {
		if data, err = dataset.Objects(ctx, address, fetch); err != nil {
			var fault *dataset.Fault
			if errors.As(err, &fault) && fault.File == address {
				fault.File = file // as the user names it
			}
			return nil, fmt.Errorf("read conversations: %w", err)
		}
	}
	if _, err := openai.Read(data); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return data, nil
}

// Source is the key of an uploaded file.
func Source(digest string) string { return "imports/" + digest + ".json" }
