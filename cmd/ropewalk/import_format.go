package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/env/gsm8k"
	"github.com/ropewalk/ropewalk/env/openai"
)

// importFormat is one kind of file that `ropewalk import` takes.
type importFormat struct {
	name   string
	recipe string // built in
	what   string // the file holds, in words
	ext    string // of the uploaded file
	// check reads the file before anything starts.
	check func(data []byte) error
}

func importFormats() []importFormat {
	return []importFormat{
		{wire.FormatGSM8K, "gsm8k-offline", "solutions", ".jsonl", func(data []byte) error {
			_, err := gsm8k.Read(bytes.NewReader(data))
			return err
		}},
		{wire.FormatOpenAI, "openai-offline", "conversations", ".json", func(data []byte) error {
			_, err := openai.Read(data)
			return err
		}},
	}
}

func importFormatOf(name string) (importFormat, error) {
	var names []string
	for _, f := range importFormats() {
		if f.name == name {
			return f, nil
		}
		names = append(names, f.name)
	}
	return importFormat{}, badInput("unknown format %q; there are %s", name, strings.Join(names, ", "))
}

// source is the key of an uploaded file.
func (f importFormat) source(digest string) string { return fmt.Sprintf("imports/%s%s", digest, f.ext) }
