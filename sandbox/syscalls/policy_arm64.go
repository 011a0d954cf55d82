package syscalls

import (
	"golang.org/x/sys/unix"
)

const auditArch = unix.AUDIT_ARCH_AARCH64

// forks is empty: this architecture has only clone and clone3.
var forks []uint32

// olderAllowed has one entry: this architecture has one older form, under another name.
var olderAllowed = []uint32{unix.SYS_FSTATAT}

// olderMetadataCalls is empty: this architecture has only the calls in metadataCalls.
var olderMetadataCalls []uint32
