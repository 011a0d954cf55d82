package sgemm

import "golang.org/x/sys/cpu"

// Available reports whether the processor has what the kernels need.
func Available() bool { return cpu.X86.HasAVX2 && cpu.X86.HasFMA }

// tile6x16, tile4x16 and tile2x16 compute C (6, 4 or 2 rows of 16, ldc bytes apart) = or += alpha·A·B over k ≥ 1:
// element (i, l) of A lies at a + i·rs + l·cs bytes, B is packed [k][16]. An element's products are added in the
// order of k, whatever the tile. Meanwhile they fetch 32·k bytes at next into the second cache.
//
//go:noescape
func tile6x16(k int, a *float32, rs, cs uintptr, b, c *float32, ldc uintptr, next *float32, alpha float32, add bool)

//go:noescape
func tile4x16(k int, a *float32, rs, cs uintptr, b, c *float32, ldc uintptr, next *float32, alpha float32, add bool)

//go:noescape
func tile2x16(k int, a *float32, rs, cs uintptr, b, c *float32, ldc uintptr, next *float32, alpha float32, add bool)

// tile2x32 computes 2 rows of 32 columns in the same way, from two panels step bytes apart.
//
//go:noescape
func tile2x32(
	k int, a *float32, rs, cs uintptr, b *float32, step uintptr, c *float32, ldc uintptr, next *float32, alpha float32,
	add bool,
)

// turn8 writes eight rows of 8·k8 columns, ld bytes apart, as columns of rows width bytes apart.
//
//go:noescape
func turn8(k8 int, src *float32, ld uintptr, dst *float32, width uintptr)

// pack6x4 copies k rows of 24 columns, ld bytes apart, to four tiles of [k][6], step bytes apart. It reads two columns
// more, and writes two floats beyond each tile.
//
//go:noescape
func pack6x4(k int, src *float32, ld uintptr, dst *float32, step uintptr)
