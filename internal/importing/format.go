package importing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ropewalk/ropewalk/env/openai"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/cause"
	"github.com/ropewalk/ropewalk/internal/dataset"
	"github.com/ropewalk/ropewalk/internal/spelling"
	"github.com/ropewalk/ropewalk/internal/step/api"
)

// Format is one kind of file that `ropewalk import` takes.
type Format struct {
	Name   string
	Recipe string // built in
	What   string // the file holds, in words
	Ext    string // of the uploaded file
	// Check reads the file before anything starts.
	Check func(data []byte) error
}

// formats lists the kinds of files.
func formats() []Format {
	return []Format{
		{api.FormatOpenAI, "openai-offline", "conversations", ".json", func(data []byte) error {
			_, err := openai.Read(data)
			return err
		}},
	}
}

// Read reads a file as a user gives it, and checks it. A file of JSON is taken as it is. The rows of another one, of a
// folder or of what is at a remote address become JSON lines (package dataset).
func (f Format) Read(ctx context.Context, file string, fetch dataset.Fetch) (data []byte, err error) {
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
			return nil, fmt.Errorf("read %s: %s: %w", f.What, file, cause.Of(err))
		}
	}
	if start := bytes.TrimSpace(data); !bytes.HasPrefix(start, []byte("{")) && !bytes.HasPrefix(start, []byte("[")) {
		if data, err = dataset.Objects(ctx, address, fetch); err != nil {
			var fault *dataset.Fault
			if errors.As(err, &fault) && fault.File == address {
				fault.File = file // as the user names it
			}
			return nil, fmt.Errorf("read %s: %w", f.What, err)
		}
	}
	if err := f.Check(data); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return data, nil
}

// FormatOf finds a format by its name.
func FormatOf(name string) (Format, error) {
	var names []string
	for _, f := range formats() {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	if near := spelling.Nearest(name, names); near != "" {
		return Format{}, badinput.Errorf("unknown format %q; did you mean %s?", name, near)
	}
	return Format{}, badinput.Errorf("unknown format %q; there are %s", name, strings.Join(names, ", "))
}

// Source is the key of an uploaded file.
func (f Format) Source(digest string) string { return fmt.Sprintf("imports/%s%s", digest, f.Ext) }
