package reward

import "testing"

// The cases are the specification's test vectors.
func TestLastBoxed(t *testing.T) {
	for text, want := range map[string]string{
		`a \boxed{42}`: "42", `\boxed{1} then \boxed{\frac{1}{2}}`: `\frac{1}{2}`,
		`\boxed{unbalanced`: "", "none": "", `\boxed{a{b}c} x}`: "a{b}c",
	} {
		got, ok := LastBoxed(text)
		if got != want || ok != (want != "") {
			t.Errorf("last box of %q is %q, %v", text, got, ok)
		}
	}
}
