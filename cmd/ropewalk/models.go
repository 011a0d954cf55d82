package main

import (
	"os"
	"path/filepath"
)

// modelFolder is the folder of the models that recipes name without a path: ROPEWALK_MODELS, or .tools/models of the
// working folder or of one above it. It is "" if there is none.
func modelFolder() string {
	if folder := os.Getenv("ROPEWALK_MODELS"); folder != "" {
		absolute, err := filepath.Abs(folder)
		if err != nil {
			return folder
		}
		return absolute
	}
	at, err := os.Getwd()
	for ; err == nil; at = filepath.Dir(at) {
		folder := filepath.Join(at, ".tools", "models")
		if info, err := os.Stat(folder); err == nil && info.IsDir() {
			return folder
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	return ""
}
