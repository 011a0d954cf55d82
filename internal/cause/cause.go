// Package cause strips errors of the names that a message has already. The operating system's errors name the file, and
// those of HTTP the address: "read a.yaml: open a.yaml: no such file or directory".
package cause

import (
	"io/fs"
	"net/url"
	"os"
)

// Of returns the cause of an error about a file or an address, for a message that names it. It returns other errors,
// and those that more was said about, as they are.
func Of(err error) error {
	switch e := err.(type) { // not errors.As, which would lose what was said around them
	case *fs.PathError:
		return e.Err
	case *os.LinkError:
		return e.Err
	case *url.Error:
		return Of(e.Err)
	}
	return err
}
