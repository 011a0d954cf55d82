package importing

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/env/openai"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/compressed"
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

// Formats lists the kinds of files.
func Formats() []Format {
	return []Format{
		{api.FormatOpenAI, "openai-offline", "conversations", ".json", func(data []byte) error {
			_, err := openai.Read(data)
			return err
		}},
	}
}

// CheckFile is Check for a file as a user gives it: it says what to do about files that cannot be in the format.
func (f Format) CheckFile(data []byte) error {
	if fault := compressed.Fault(data); fault != "" {
		return errors.New(fault)
	}
	for _, magic := range []string{"PAR1", "ARROW1"} {
		if bytes.HasPrefix(data, []byte(magic)) {
			return errors.New("is a table in Parquet or Arrow; write it as JSON lines")
		}
	}
	return f.Check(data)
}

// FormatOf finds a format by its name.
func FormatOf(name string) (Format, error) {
	var names []string
	for _, f := range Formats() {
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
