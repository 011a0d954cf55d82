package badinput

import "bytes"

// packers lists the first bytes of compressed files, and the program that unpacks them.
var packers = []struct{ magic, name, program string }{
	{"\x1f\x8b", "gzip", "gunzip"},
	{"\x28\xb5\x2f\xfd", "zstd", "unzstd"},
	{"BZh", "bzip2", "bunzip2"},
	{"\xfd7zXZ\x00", "xz", "unxz"},
	{"PK\x03\x04", "zip", "unzip"},
}

// Compressed says that a file with these first bytes is compressed, and how to unpack it. It returns "" for others.
func Compressed(head []byte) string {
	for _, f := range packers {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			return "is compressed with " + f.name + "; unpack it first (" + f.program + ")"
		}
	}
	return ""
}
