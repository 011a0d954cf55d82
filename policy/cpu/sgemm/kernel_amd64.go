package sgemm

import "golang.org/x/sys/cpu"

// Available reports whether the processor has what the kernels need.
func Available() bool { return cpu.X86.HasAVX2 && cpu.X86.HasFMA }

// tile6x16 computes C (6×16, rows ldc bytes apart) = or += alpha·A·B over k: element (i, l) of A lies at
// a + i·rs + l·cs bytes, B is packed [k][16]. Every element's products are added in the order of k.
//
//go:noescape
func tile6x16(k int, a *float32, rs, cs uintptr, b, c *float32, ldc uintptr, alpha float32, add bool)

// dot3x4, dot2x4 and dot1x4 compute C (3, 2 or 1 rows of 4) = or += x·Wᵀ over 8·k8 columns, both operands
// row-major with distances in bytes. Every element is summed in the same eight lanes whatever the tile.
//
//go:noescape
func dot3x4(k8 int, x *float32, ldx uintptr, w *float32, ldw uintptr, c *float32, ldc uintptr, add bool)

//go:noescape
func dot2x4(k8 int, x *float32, ldx uintptr, w *float32, ldw uintptr, c *float32, ldc uintptr, add bool)

//go:noescape
func dot1x4(k8 int, x *float32, ldx uintptr, w *float32, ldw uintptr, c *float32, ldc uintptr, add bool)

// turn8 writes eight rows of 8·k8 columns, ld bytes apart, as columns of rows width bytes apart.
//
//go:noescape
func turn8(k8 int, src *float32, ld uintptr, dst *float32, width uintptr)

// pack6x4 copies k rows of 24 columns, ld bytes apart, to four tiles of [k][6], step bytes apart. It reads two columns
// more, and writes two floats beyond each tile.
//
//go:noescape
func pack6x4(k int, src *float32, ld uintptr, dst *float32, step uintptr)
