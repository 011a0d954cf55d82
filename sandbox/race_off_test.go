//go:build !race

package sandbox_test

// raceDetector: the test runs under the race detector, several times slower.
const raceDetector = false
