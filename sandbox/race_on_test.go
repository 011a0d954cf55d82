//go:build race

package sandbox_test

// raceDetector says whether the test runs under the race detector, which makes it several times slower.
const raceDetector = true
