//go:build !amd64

package sgemm

// Available reports whether the processor has what the kernels need.
func Available() bool { return false }

const absent = "sgemm: no kernels for this processor"

func tile6x16(int, *float32, uintptr, uintptr, *float32, *float32, uintptr, *float32, float32, bool) {
	panic(absent)
}

func tile4x16(int, *float32, uintptr, uintptr, *float32, *float32, uintptr, *float32, float32, bool) {
	panic(absent)
}

func tile2x16(int, *float32, uintptr, uintptr, *float32, *float32, uintptr, *float32, float32, bool) {
	panic(absent)
}

func tile2x32(int, *float32, uintptr, uintptr, *float32, uintptr, *float32, uintptr, *float32, float32, bool) {
	panic(absent)
}

func turn8(int, *float32, uintptr, *float32, uintptr) { panic(absent) }

func pack6x4(int, *float32, uintptr, *float32, uintptr) { panic(absent) }
