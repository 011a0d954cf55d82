// Package versions says which versions of its Python packages the trainer engine works with.
package versions

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Version is the first two numbers of a version. Requirements read no more than these.
type Version struct{ Major, Minor int }

// String returns the version as MAJOR.MINOR.
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// Before reports whether v is older than w.
func (v Version) Before(w Version) bool {
	return v.Major < w.Major || v.Major == w.Major && v.Minor < w.Minor
}

// Python is the oldest interpreter.
var Python = Version{3, 10}

// Package is a package that the engine imports, with the oldest version that serves.
type Package struct {
	Name   string
	Oldest Version
}

// Packages are all that the engine imports outside Python's own library.
func Packages() []Package {
	return []Package{{"torch", Version{2, 11}}, {"transformers", Version{5, 17}}, {"safetensors", Version{0, 4}}}
}

// Peft is imported for LoRA alone.
func Peft() Package { return Package{"peft", Version{0, 20}} }

var leading = regexp.MustCompile(`^(\d{1,6})\.(\d{1,6})`)

// Parse reads the first two numbers of a version such as 2.15.0+cu130.
func Parse(s string) (Version, error) {
	m := leading.FindStringSubmatch(s)
	if m == nil {
		return Version{}, fmt.Errorf("%q is not a version", s)
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	return Version{major, minor}, nil
}

// Error lists the packages that are missing or too old.
type Error struct{ Missing, Old []string }

// Error lists the missing and the old packages.
func (e *Error) Error() string {
	var parts []string
	if len(e.Missing) > 0 {
		parts = append(parts, "no "+strings.Join(e.Missing, " and no "))
	}
	return strings.Join(slices.Concat(parts, e.Old), "; ")
}

// Check holds versions by package name against what is needed, for some purposes more than Packages; its error is an
// *Error. An empty version is a missing package.
func Check(found map[string]string, more ...Package) error {
	e := &Error{}
	for _, p := range slices.Concat(Packages(), more) {
		text := found[p.Name]
		if text == "" {
			e.Missing = append(e.Missing, p.Name)
			continue
		}
		if v, err := Parse(text); err != nil || v.Before(p.Oldest) {
			e.Old = append(e.Old, fmt.Sprintf("%s %s, needed is %s or newer", p.Name, text, p.Oldest))
		}
	}
	if len(e.Missing)+len(e.Old) == 0 {
		return nil
	}
	return e
}
