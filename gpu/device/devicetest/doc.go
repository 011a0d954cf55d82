// Package devicetest stands in for NVML in tests: devices written down as struct literals, whose figures a test alters
// and whose events it sends, and a clock that the test moves.
package devicetest
