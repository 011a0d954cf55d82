// Package longform leaves tests to the long forms: a long form has the tests that guard a part and take long, and runs
// when that part has changed, or if all of them are asked for.
package longform

import (
	"os"
	"testing"
)

// Need skips a test unless its long form is asked for: by a variable, which a make target sets, or by
// ROPEWALK_LONG_FORMS, which asks for all of them.
func Need(t testing.TB, variable, target string) {
	t.Helper()
	if !Asked(variable) {
		t.Skip("takes long: make " + target)
	}
}

// Asked reports whether a long form is asked for.
func Asked(variable string) bool {
	return os.Getenv(variable) != "" || os.Getenv("ROPEWALK_LONG_FORMS") != ""
}
