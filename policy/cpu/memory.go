package cpu

// hugePage is the size of the pages that large allocations ask for, in bytes.
const hugePage = 2 << 20

// allocated is make([]T, n). Large slices are on huge pages if the system has them: weights and activations are
// streamed, and with pages of 4 KiB the lookups in the page table take as long as the reads.
func allocated[T any](n int) []T {
	s := make([]T, n)
	adviseHuge(s)
	return s
}
