// Package ropewalk holds the project files that the binary carries with it: temporal.yaml, so that
// a worker started far from the source tree still knows what it needs of Temporal.
package ropewalk

import _ "embed"

// TemporalYAML is the project's temporal.yaml as it was when the binary was built. Package
// internal/temporalconf reads it when the working folder has none.
//
//go:embed temporal.yaml
var TemporalYAML []byte
