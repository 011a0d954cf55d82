//go:build !race

package household

// raceDetector reports whether the tests run under the race detector.
const raceDetector = false
