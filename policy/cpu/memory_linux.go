package cpu

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// adviseHuge asks for huge pages where s covers whole ones. Memory that the collector reuses already has small pages,
// which the kernel joins at once. A system without huge pages refuses, which does no harm.
func adviseHuge[T any](s []T) {
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
	if len(bytes) < 2*hugePage {
		return
	}
	first := -int(uintptr(unsafe.Pointer(&bytes[0]))) & (hugePage - 1)
	whole := bytes[first : first+(len(bytes)-first)&^(hugePage-1)]
	if unix.Madvise(whole, unix.MADV_HUGEPAGE) == nil {
		_ = unix.Madvise(whole, unix.MADV_COLLAPSE)
	}
}
