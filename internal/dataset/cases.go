package dataset

import (
	"bytes"
	"compress/zlib"
	_ "embed"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// The cases of a test are inputs and outputs: arguments and the result of a function, or the texts that a program reads
// and prints. TACO and APPS have them as {inputs, outputs, fn_name}; LiveCodeBench as a list of {input, output,
// testtype}, of which the private ones are packed.

// entryOf names the function that the tests of a row call.
func entryOf(v any) (any, error) {
	v, err := unpackedJSON(v)
	if err != nil {
		return nil, err
	}
	of, _ := v.(map[string]any)
	for _, name := range []string{"fn_name", "func_name"} {
		if f, is := of[name].(string); is && f != "" {
			return f, nil
		}
	}
	return "__main__", nil
}

// testsOf writes a test that runs what is tested with each input.
func testsOf(v any) (any, error) {
	v, err := unpackedJSON(v)
	if err != nil {
		return nil, err
	}
	var inputs, outputs []any
	switch v := v.(type) {
	case map[string]any:
		inputs, _ = v["inputs"].([]any)
		outputs, _ = v["outputs"].([]any)
	case []any:
		for _, one := range v {
			input, output, err := caseOf(one)
			if err != nil {
				return nil, err
			}
			inputs, outputs = append(inputs, input), append(outputs, output)
		}
	}
	switch {
	case len(inputs) != len(outputs):
		return nil, errors.New("must have as many inputs as outputs")
	case len(inputs) == 0:
		return nil, nil
	}
	cases, _ := json.Marshal([]any{inputs, outputs}) // what was decoded from JSON can be written as such
	text, _ := json.Marshal(string(cases))           // a JSON string is one of Python's
	return strings.Replace(pythonTest, "CASES", string(text), 1), nil
}

// caseOf reads a case of LiveCodeBench. That of a function has an argument on each line.
func caseOf(v any) (input, output any, err error) {
	of, _ := v.(map[string]any)
	given, is := of["input"].(string)
	wanted, too := of["output"].(string)
	switch {
	case !is || !too:
		return nil, nil, fmt.Errorf("must be cases with input and output, got %.40v", v)
	case of["testtype"] != "functional":
		return given, wanted, nil
	}
	var arguments []any
	for line := range strings.Lines(given) {
		argument, err := decoded(line)
		if err != nil {
			return nil, nil, fmt.Errorf("has a case whose argument %.40q %w", line, err)
		}
		arguments = append(arguments, argument)
	}
	if output, err = decoded(wanted); err != nil {
		return nil, nil, fmt.Errorf("has a case whose output %.40q %w", wanted, err)
	}
	return arguments, output, nil
}

// pythonTest has the text of the cases instead of CASES.
//
//go:embed cases.py
var pythonTest string

// unpackedJSON decodes a text that holds JSON, or LiveCodeBench's private cases.
func unpackedJSON(v any) (any, error) {
	text, is := v.(string)
	if !is {
		return v, nil
	}
	if packed, err := base64.StdEncoding.DecodeString(text); err == nil && !json.Valid([]byte(text)) {
		if text, err = unpickled(packed); err != nil {
			return nil, fmt.Errorf("is no text that is packed as LiveCodeBench does it: %w", err)
		}
	}
	return decoded(text)
}

// mostUnpacked bounds the bytes of packed cases.
const mostUnpacked = 256 << 20

// unpickled unpacks a text that Python has pickled and zlib has packed.
func unpickled(packed []byte) (string, error) {
	z, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(io.LimitReader(z, mostUnpacked+1))
	if err != nil || len(data) > mostUnpacked {
		return "", errors.Join(err, fmt.Errorf("it must unpack to at most %d MiB", mostUnpacked>>20))
	}
	if len(data) > 2 && data[0] == 0x80 { // the protocol
		data = data[2:]
	}
	if len(data) > 9 && data[0] == 0x95 { // a frame, and its length
		data = data[9:]
	}
	var n, head int
	switch {
	case len(data) > 2 && data[0] == 0x8c: // a short text
		n, head = int(data[1]), 2
	case len(data) > 5 && data[0] == 'X':
		n, head = int(binary.LittleEndian.Uint32(data[1:])), 5
	}
	if n > 0 && n <= len(data)-head {
		return string(data[head:][:n]), nil
	}
	return "", errors.New("it is no pickled text")
}
