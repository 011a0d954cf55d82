// Package ropewalk embeds project files in the binary: temporal.yaml, so that a worker that starts outside the source
// tree knows what it needs from Temporal.
package ropewalk

import _ "embed"

// TemporalYAML is the project's temporal.yaml at the time of the build. Package internal/temporalconf reads it if the
// working folder has none.
//
//go:embed temporal.yaml
var TemporalYAML []byte
