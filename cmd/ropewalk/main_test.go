package main

import (
	"fmt"
	"os"
	"testing"
)

// TestMain ends a process that a command of a test has started as a server: the test's own program would run the tests
// again, without end.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "supervise" || os.Args[1] == "worker") {
		fmt.Fprintln(os.Stderr, "a test has started a server")
		os.Exit(1)
	}
	os.Exit(m.Run())
}
