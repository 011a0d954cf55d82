// Package pythontest finds the Python that tests compare with, and says what becomes of a test where
// there is none.
package pythontest

import (
	"os"
	"testing"

	"github.com/ropewalk/ropewalk/internal/python"
)

// Need returns an interpreter that has all modules. Where there is none the test is skipped, or
// fails if ROPEWALK_REQUIRE_<what> is set.
func Need(t testing.TB, what string, modules ...string) string {
	t.Helper()
	name, err := python.Find(t.Context(), modules...)
	if err != nil {
		if variable := "ROPEWALK_REQUIRE_" + what; os.Getenv(variable) != "" {
			t.Fatalf("%s is set, and %v", variable, err)
		}
		t.Skip(err)
	}
	return name
}
