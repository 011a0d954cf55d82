package simulate

import (
	"embed"
	"path"
	"slices"
	"strings"
)

//go:embed presets/*.yaml
var presets embed.FS

// Presets returns the names of the built-in workloads, sorted.
func Presets() []string {
	entries, err := presets.ReadDir("presets")
	if err != nil {
		panic(err) // the folder is embedded
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	slices.Sort(names)
	return names
}

// Preset returns the file of a built-in workload.
func Preset(name string) ([]byte, bool) {
	data, err := presets.ReadFile(path.Join("presets", name+".yaml"))
	return data, err == nil
}
