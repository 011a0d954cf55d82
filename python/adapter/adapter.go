// Package adapter holds the Python program that runs a user's own environments and graders: adapter.py, which speaks
// JSON lines over its standard streams. Package env/remote starts it.
package adapter

import _ "embed" // the program

// Program is the source of adapter.py.
//
//go:embed adapter.py
var Program string
