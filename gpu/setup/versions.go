package setup

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// version is the first two numbers of a version. Requirements read no more than these.
type version struct{ Major, Minor int }

// String returns the version as MAJOR.MINOR.
func (v version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// before reports whether v is older than w.
func (v version) before(w version) bool {
	return v.Major < w.Major || v.Major == w.Major && v.Minor < w.Minor
}

// oldestPython is the oldest interpreter.
var oldestPython = version{3, 10}

// Package is a package that the engine imports, with the oldest version that serves.
type Package struct {
	Name   string
	Oldest version
}

// packages are all that the engine imports outside Python's own library.
func packages() []Package {
	return []Package{{"torch", version{2, 11}}, {"transformers", version{5, 17}}, {"safetensors", version{0, 4}}}
}

// Peft is imported for LoRA alone.
func Peft() Package { return Package{"peft", version{0, 20}} }

var leading = regexp.MustCompile(`^(\d{1,6})\.(\d{1,6})`)

// parse reads the first two numbers of a version such as 2.15.0+cu130.
func parse(s string) (version, error) {
	m := leading.FindStringSubmatch(s)
	if m == nil {
		return version{}, fmt.Errorf("%q is not a version", s)
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	return version{major, minor}, nil
}

// unfitPackages lists the packages that are missing or too old.
type unfitPackages struct{ Missing, Old []string }

// Error lists the missing and the old packages.
func (e *unfitPackages) Error() string {
	var parts []string
	if len(e.Missing) > 0 {
		parts = append(parts, "no "+strings.Join(e.Missing, " and no "))
	}
	return strings.Join(slices.Concat(parts, e.Old), "; ")
}

// Check holds versions by package name against what is needed, for some purposes more than packages. An empty version
// is a missing package.
func Check(found map[string]string, more ...Package) error {
	e := &unfitPackages{}
	for _, p := range slices.Concat(packages(), more) {
		text := found[p.Name]
		if text == "" {
			e.Missing = append(e.Missing, p.Name)
			continue
		}
		if v, err := parse(text); err != nil || v.before(p.Oldest) {
			e.Old = append(e.Old, fmt.Sprintf("%s %s, needed is %s or newer", p.Name, text, p.Oldest))
		}
	}
	if len(e.Missing)+len(e.Old) == 0 {
		return nil
	}
	return e
}
