#include "textflag.h"

// One step of tile6x16 over k: two registers of B, six elements of A, twelve products.
// SI and R11 are rows 0 and 3 of A, R8 the distance of its rows, R9 of its columns, DX is B.
#define STEP16 \
	VMOVUPS (DX), Y0           \
	VMOVUPS 32(DX), Y1         \
	VBROADCASTSS (SI), Y2      \
	VBROADCASTSS (SI)(R8*1), Y3 \
	VFMADD231PS Y0, Y2, Y4     \
	VFMADD231PS Y1, Y2, Y5     \
	VFMADD231PS Y0, Y3, Y6     \
	VFMADD231PS Y1, Y3, Y7     \
	VBROADCASTSS (SI)(R8*2), Y2 \
	VBROADCASTSS (R11), Y3     \
	VFMADD231PS Y0, Y2, Y8     \
	VFMADD231PS Y1, Y2, Y9     \
	VFMADD231PS Y0, Y3, Y10    \
	VFMADD231PS Y1, Y3, Y11    \
	VBROADCASTSS (R11)(R8*1), Y2 \
	VBROADCASTSS (R11)(R8*2), Y3 \
	VFMADD231PS Y0, Y2, Y12    \
	VFMADD231PS Y1, Y2, Y13    \
	VFMADD231PS Y0, Y3, Y14    \
	VFMADD231PS Y1, Y3, Y15    \
	ADDQ R9, SI                \
	ADDQ R9, R11               \
	ADDQ $64, DX

#define TIMES16(lo, hi) \
	VMULPS Y0, lo, lo \
	VMULPS Y0, hi, hi

#define PLUS16(row, lo, hi) \
	VADDPS (row), lo, lo   \
	VADDPS 32(row), hi, hi

#define KEEP16(row, lo, hi) \
	VMOVUPS lo, (row)   \
	VMOVUPS hi, 32(row)

// func tile6x16(k int, a *float32, rs, cs uintptr, b, c *float32, ldc uintptr, alpha float32, add bool)
TEXT ·tile6x16(SB), NOSPLIT, $0-61
	MOVQ k+0(FP), CX
	MOVQ a+8(FP), SI
	MOVQ rs+16(FP), R8
	MOVQ cs+24(FP), R9
	MOVQ b+32(FP), DX
	MOVQ c+40(FP), DI
	MOVQ ldc+48(FP), R10
	LEAQ (R8)(R8*2), R11
	ADDQ SI, R11
	LEAQ (DI)(R10*1), R12
	LEAQ (DI)(R10*2), R13
	LEAQ (R12)(R10*2), BX
	PREFETCHT0 (DI)
	PREFETCHT0 (R12)
	PREFETCHT0 (R13)
	PREFETCHT0 (BX)
	PREFETCHT0 (R13)(R10*2)
	PREFETCHT0 (BX)(R10*2)
	VXORPS Y4, Y4, Y4
	VXORPS Y5, Y5, Y5
	VXORPS Y6, Y6, Y6
	VXORPS Y7, Y7, Y7
	VXORPS Y8, Y8, Y8
	VXORPS Y9, Y9, Y9
	VXORPS Y10, Y10, Y10
	VXORPS Y11, Y11, Y11
	VXORPS Y12, Y12, Y12
	VXORPS Y13, Y13, Y13
	VXORPS Y14, Y14, Y14
	VXORPS Y15, Y15, Y15
	MOVQ CX, AX
	SHRQ $2, AX
	ANDQ $3, CX
	TESTQ AX, AX
	JZ rest
	PCALIGN $32
four:
	STEP16
	STEP16
	STEP16
	STEP16
	DECQ AX
	JNZ four
rest:
	TESTQ CX, CX
	JZ done
one:
	STEP16
	DECQ CX
	JNZ one
done:
	MOVBLZX add+60(FP), AX
	VBROADCASTSS alpha+56(FP), Y0
	TIMES16(Y4, Y5)
	TIMES16(Y6, Y7)
	TIMES16(Y8, Y9)
	TIMES16(Y10, Y11)
	TIMES16(Y12, Y13)
	TIMES16(Y14, Y15)
	LEAQ (R13)(R10*2), SI
	LEAQ (BX)(R10*2), DX
	TESTL AX, AX
	JZ keep
	PLUS16(DI, Y4, Y5)
	PLUS16(R12, Y6, Y7)
	PLUS16(R13, Y8, Y9)
	PLUS16(BX, Y10, Y11)
	PLUS16(SI, Y12, Y13)
	PLUS16(DX, Y14, Y15)
keep:
	KEEP16(DI, Y4, Y5)
	KEEP16(R12, Y6, Y7)
	KEEP16(R13, Y8, Y9)
	KEEP16(BX, Y10, Y11)
	KEEP16(SI, Y12, Y13)
	KEEP16(DX, Y14, Y15)
	VZEROUPPER
	RET

// SUM4 leaves in the low half of a the totals of a, b, c and d: neighbours, then pairs, then halves.
#define SUM4(a, b, c, d, ax, tx) \
	VHADDPS b, a, a            \
	VHADDPS d, c, c            \
	VHADDPS c, a, a            \
	VEXTRACTF128 $1, a, tx     \
	VADDPS tx, ax, ax

// The dot tiles walk along k in both operands: SI is x, R8 the distance of its rows, DX is W, R9 of its rows,
// R11 is W's row 3, CX counts registers of eight.

// func dot3x4(k8 int, x *float32, ldx uintptr, w *float32, ldw uintptr, c *float32, ldc uintptr, add bool)
TEXT ·dot3x4(SB), NOSPLIT, $0-57
	MOVQ k8+0(FP), CX
	MOVQ x+8(FP), SI
	MOVQ ldx+16(FP), R8
	MOVQ w+24(FP), DX
	MOVQ ldw+32(FP), R9
	MOVQ c+40(FP), DI
	MOVQ ldc+48(FP), R10
	MOVBLZX add+56(FP), AX
	LEAQ (R9)(R9*2), R11
	ADDQ DX, R11
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPS Y4, Y4, Y4
	VXORPS Y5, Y5, Y5
	VXORPS Y6, Y6, Y6
	VXORPS Y7, Y7, Y7
	VXORPS Y8, Y8, Y8
	VXORPS Y9, Y9, Y9
	VXORPS Y10, Y10, Y10
	VXORPS Y11, Y11, Y11
	PCALIGN $32
loop3:
	VMOVUPS (SI), Y12
	VMOVUPS (SI)(R8*1), Y13
	VMOVUPS (SI)(R8*2), Y14
	VMOVUPS (DX), Y15
	VFMADD231PS Y15, Y12, Y0
	VFMADD231PS Y15, Y13, Y4
	VFMADD231PS Y15, Y14, Y8
	VMOVUPS (DX)(R9*1), Y15
	VFMADD231PS Y15, Y12, Y1
	VFMADD231PS Y15, Y13, Y5
	VFMADD231PS Y15, Y14, Y9
	VMOVUPS (DX)(R9*2), Y15
	VFMADD231PS Y15, Y12, Y2
	VFMADD231PS Y15, Y13, Y6
	VFMADD231PS Y15, Y14, Y10
	VMOVUPS (R11), Y15
	VFMADD231PS Y15, Y12, Y3
	VFMADD231PS Y15, Y13, Y7
	VFMADD231PS Y15, Y14, Y11
	ADDQ $32, SI
	ADDQ $32, DX
	ADDQ $32, R11
	DECQ CX
	JNZ loop3
	SUM4(Y0, Y1, Y2, Y3, X0, X12)
	SUM4(Y4, Y5, Y6, Y7, X4, X13)
	SUM4(Y8, Y9, Y10, Y11, X8, X14)
	TESTL AX, AX
	JZ keep3
	VADDPS (DI), X0, X0
	VADDPS (DI)(R10*1), X4, X4
	VADDPS (DI)(R10*2), X8, X8
keep3:
	VMOVUPS X0, (DI)
	VMOVUPS X4, (DI)(R10*1)
	VMOVUPS X8, (DI)(R10*2)
	VZEROUPPER
	RET

// func dot2x4(k8 int, x *float32, ldx uintptr, w *float32, ldw uintptr, c *float32, ldc uintptr, add bool)
TEXT ·dot2x4(SB), NOSPLIT, $0-57
	MOVQ k8+0(FP), CX
	MOVQ x+8(FP), SI
	MOVQ ldx+16(FP), R8
	MOVQ w+24(FP), DX
	MOVQ ldw+32(FP), R9
	MOVQ c+40(FP), DI
	MOVQ ldc+48(FP), R10
	MOVBLZX add+56(FP), AX
	LEAQ (R9)(R9*2), R11
	ADDQ DX, R11
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPS Y4, Y4, Y4
	VXORPS Y5, Y5, Y5
	VXORPS Y6, Y6, Y6
	VXORPS Y7, Y7, Y7
	PCALIGN $32
loop2:
	VMOVUPS (SI), Y12
	VMOVUPS (SI)(R8*1), Y13
	VMOVUPS (DX), Y15
	VFMADD231PS Y15, Y12, Y0
	VFMADD231PS Y15, Y13, Y4
	VMOVUPS (DX)(R9*1), Y14
	VFMADD231PS Y14, Y12, Y1
	VFMADD231PS Y14, Y13, Y5
	VMOVUPS (DX)(R9*2), Y15
	VFMADD231PS Y15, Y12, Y2
	VFMADD231PS Y15, Y13, Y6
	VMOVUPS (R11), Y14
	VFMADD231PS Y14, Y12, Y3
	VFMADD231PS Y14, Y13, Y7
	ADDQ $32, SI
	ADDQ $32, DX
	ADDQ $32, R11
	DECQ CX
	JNZ loop2
	SUM4(Y0, Y1, Y2, Y3, X0, X12)
	SUM4(Y4, Y5, Y6, Y7, X4, X13)
	TESTL AX, AX
	JZ keep2
	VADDPS (DI), X0, X0
	VADDPS (DI)(R10*1), X4, X4
keep2:
	VMOVUPS X0, (DI)
	VMOVUPS X4, (DI)(R10*1)
	VZEROUPPER
	RET

// func dot1x4(k8 int, x *float32, ldx uintptr, w *float32, ldw uintptr, c *float32, ldc uintptr, add bool)
TEXT ·dot1x4(SB), NOSPLIT, $0-57
	MOVQ k8+0(FP), CX
	MOVQ x+8(FP), SI
	MOVQ w+24(FP), DX
	MOVQ ldw+32(FP), R9
	MOVQ c+40(FP), DI
	MOVBLZX add+56(FP), AX
	LEAQ (R9)(R9*2), R11
	ADDQ DX, R11
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	PCALIGN $32
loop1:
	VMOVUPS (SI), Y12
	VFMADD231PS (DX), Y12, Y0
	VFMADD231PS (DX)(R9*1), Y12, Y1
	VFMADD231PS (DX)(R9*2), Y12, Y2
	VFMADD231PS (R11), Y12, Y3
	ADDQ $32, SI
	ADDQ $32, DX
	ADDQ $32, R11
	DECQ CX
	JNZ loop1
	SUM4(Y0, Y1, Y2, Y3, X0, X12)
	TESTL AX, AX
	JZ keep1
	VADDPS (DI), X0, X0
keep1:
	VMOVUPS X0, (DI)
	VZEROUPPER
	RET

// func turn8(k8 int, src *float32, ld uintptr, dst *float32, width uintptr)
// Writes eight rows of src as columns: dst[k·width + row] = src[row·ld + k], for 8·k8 columns of src.
TEXT ·turn8(SB), NOSPLIT, $0-40
	MOVQ k8+0(FP), CX
	MOVQ src+8(FP), SI
	MOVQ ld+16(FP), R8
	MOVQ dst+24(FP), DI
	MOVQ width+32(FP), R9
	LEAQ (R8)(R8*2), R10
	LEAQ (SI)(R8*4), R11
	LEAQ (R9)(R9*2), R12
turn:
	// Low half: row r, high half: row r+4; first columns 0…3, then 4…7.
	VMOVUPS (SI), X0
	VMOVUPS (SI)(R8*1), X1
	VMOVUPS (SI)(R8*2), X2
	VMOVUPS (SI)(R10*1), X3
	VINSERTF128 $1, (R11), Y0, Y0
	VINSERTF128 $1, (R11)(R8*1), Y1, Y1
	VINSERTF128 $1, (R11)(R8*2), Y2, Y2
	VINSERTF128 $1, (R11)(R10*1), Y3, Y3
	VMOVUPS 16(SI), X4
	VMOVUPS 16(SI)(R8*1), X5
	VMOVUPS 16(SI)(R8*2), X6
	VMOVUPS 16(SI)(R10*1), X7
	VINSERTF128 $1, 16(R11), Y4, Y4
	VINSERTF128 $1, 16(R11)(R8*1), Y5, Y5
	VINSERTF128 $1, 16(R11)(R8*2), Y6, Y6
	VINSERTF128 $1, 16(R11)(R10*1), Y7, Y7
	// A 4×4 transpose in each half.
	VUNPCKLPS Y1, Y0, Y8
	VUNPCKHPS Y1, Y0, Y9
	VUNPCKLPS Y3, Y2, Y10
	VUNPCKHPS Y3, Y2, Y11
	VUNPCKLPD Y10, Y8, Y0
	VUNPCKHPD Y10, Y8, Y1
	VUNPCKLPD Y11, Y9, Y2
	VUNPCKHPD Y11, Y9, Y3
	VUNPCKLPS Y5, Y4, Y12
	VUNPCKHPS Y5, Y4, Y13
	VUNPCKLPS Y7, Y6, Y14
	VUNPCKHPS Y7, Y6, Y15
	VUNPCKLPD Y14, Y12, Y4
	VUNPCKHPD Y14, Y12, Y5
	VUNPCKLPD Y15, Y13, Y6
	VUNPCKHPD Y15, Y13, Y7
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, (DI)(R9*1)
	VMOVUPS Y2, (DI)(R9*2)
	VMOVUPS Y3, (DI)(R12*1)
	LEAQ (DI)(R9*4), DI
	VMOVUPS Y4, (DI)
	VMOVUPS Y5, (DI)(R9*1)
	VMOVUPS Y6, (DI)(R9*2)
	VMOVUPS Y7, (DI)(R12*1)
	LEAQ (DI)(R9*4), DI
	ADDQ $32, SI
	ADDQ $32, R11
	DECQ CX
	JNZ turn
	VZEROUPPER
	RET

// func pack6x4(k int, src *float32, ld uintptr, dst *float32, step uintptr)
// Each register holds two floats too many, over which the next row's are written.
TEXT ·pack6x4(SB), NOSPLIT, $0-40
	MOVQ k+0(FP), CX
	MOVQ src+8(FP), SI
	MOVQ ld+16(FP), R8
	MOVQ dst+24(FP), DI
	MOVQ step+32(FP), R9
	LEAQ (R9)(R9*2), R10
pack:
	VMOVUPS (SI), Y0
	VMOVUPS 24(SI), Y1
	VMOVUPS 48(SI), Y2
	VMOVUPS 72(SI), Y3
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, (DI)(R9*1)
	VMOVUPS Y2, (DI)(R9*2)
	VMOVUPS Y3, (DI)(R10*1)
	ADDQ R8, SI
	ADDQ $24, DI
	DECQ CX
	JNZ pack
	VZEROUPPER
	RET
