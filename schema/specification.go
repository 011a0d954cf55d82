package schema

import (
	_ "embed"
	"fmt"
)

var (
	//go:embed README.md
	specification []byte
	//go:embed tables.json
	tablesJSON []byte
	//go:embed manifest.schema.json
	manifestSchema []byte
	//go:embed head.schema.json
	headSchema []byte
)

// specificationPrefix is the prefix of the keys of the format's specification. Each version has a folder, so that the
// programs that share a bucket do not replace each other's.
const specificationPrefix = "format/"

// ProgramKey is the key of the note that says what the program with a digest was built from. Manifests name programs by
// their digests; no manifest names the note.
func ProgramKey(code string) string { return specificationPrefix + "programs/" + code + ".json" }

// Program says what a program that works on the record was built from.
type Program struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified"` // built with changes that were not committed
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Code     string `json:"code"` // digest of the program, as manifests name it
}

// Specification returns the files that specify the format, by their keys in a bucket.
func Specification() map[string][]byte {
	folder := fmt.Sprintf("%s%d.%d/", specificationPrefix, Major, Version)
	return map[string][]byte{
		folder + "README.md":            specification,
		folder + "tables.json":          tablesJSON,
		folder + "manifest.schema.json": manifestSchema,
		folder + "head.schema.json":     headSchema,
	}
}
