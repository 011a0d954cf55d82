//go:build race

package household

// raceDetector reports whether the tests run under the race detector, which takes many times as long.
const raceDetector = true
