// Package compressed recognises files that must be unpacked before a command can read them.
package compressed

import "bytes"

// formats lists the first bytes of compressed files, and the program that unpacks them.
var formats = []struct{ magic, name, program string }{
	{"\x1f\x8b", "gzip", "gunzip"},
	{"\x28\xb5\x2f\xfd", "zstd", "unzstd"},
	{"BZh", "bzip2", "bunzip2"},
	{"\xfd7zXZ\x00", "xz", "unxz"},
	{"PK\x03\x04", "zip", "unzip"},
}

// Fault says that a file with these first bytes is compressed, and how to unpack it. It returns "" for other files.
func Fault(head []byte) string {
	for _, f := range formats {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			return "is compressed with " + f.name + "; unpack it first (" + f.program + ")"
		}
	}
	return ""
}
