#include "textflag.h"

// The tiles' kernels keep C in Y4…Y15, two registers a row, and walk along k: DX is B's panel, SI and R11 are rows
// 0 and 3 of A, R8 the distance of its rows, R9 of its columns. C is at DI, its rows R10 apart. R12 is what to fetch.

// PANEL loads B's 16 columns.
#define PANEL \
	VMOVUPS (DX), Y0   \
	VMOVUPS 32(DX), Y1 \
	ADDQ $64, DX

// AHEAD fetches two lines of what tiles after this one will read. Few rows are multiplied faster than their panel
// comes from memory; fetched in a burst, lines would queue up, and the tile would wait.
#define AHEAD \
	PREFETCHT1 (R12)   \
	PREFETCHT1 64(R12) \
	SUBQ $-128, R12

// PAIR adds the products of two rows' elements, at p and q.
#define PAIR(p, q, p0, p1, q0, q1) \
	VBROADCASTSS p, Y2     \
	VBROADCASTSS q, Y3     \
	VFMADD231PS Y0, Y2, p0 \
	VFMADD231PS Y1, Y2, p1 \
	VFMADD231PS Y0, Y3, q0 \
	VFMADD231PS Y1, Y3, q1

#define STEP6 \
	PANEL                                              \
	PAIR((SI), (SI)(R8*1), Y4, Y5, Y6, Y7)             \
	PAIR((SI)(R8*2), (R11), Y8, Y9, Y10, Y11)          \
	PAIR((R11)(R8*1), (R11)(R8*2), Y12, Y13, Y14, Y15) \
	ADDQ R9, SI                                        \
	ADDQ R9, R11

#define STEP4 \
	PANEL                                     \
	PAIR((SI), (SI)(R8*1), Y4, Y5, Y6, Y7)    \
	PAIR((SI)(R8*2), (R11), Y8, Y9, Y10, Y11) \
	ADDQ R9, SI                               \
	ADDQ R9, R11

// STEP2WIDE multiplies two rows by two panels, the second R13 on: one panel's four sums would wait for each other.
#define STEP2WIDE \
	VMOVUPS (DX)(R13*1), Y12    \
	VMOVUPS 32(DX)(R13*1), Y13  \
	PANEL                       \
	VBROADCASTSS (SI), Y2       \
	VBROADCASTSS (SI)(R8*1), Y3 \
	VFMADD231PS Y0, Y2, Y4      \
	VFMADD231PS Y1, Y2, Y5      \
	VFMADD231PS Y12, Y2, Y8     \
	VFMADD231PS Y13, Y2, Y9     \
	VFMADD231PS Y0, Y3, Y6      \
	VFMADD231PS Y1, Y3, Y7      \
	VFMADD231PS Y12, Y3, Y10    \
	VFMADD231PS Y13, Y3, Y11    \
	ADDQ R9, SI

#define STEP2 \
	PANEL                                  \
	PAIR((SI), (SI)(R8*1), Y4, Y5, Y6, Y7) \
	ADDQ R9, SI

#define ARGUMENTS \
	MOVQ k+0(FP), CX     \
	MOVQ a+8(FP), SI     \
	MOVQ rs+16(FP), R8   \
	MOVQ cs+24(FP), R9   \
	MOVQ b+32(FP), DX    \
	MOVQ c+40(FP), DI    \
	MOVQ ldc+48(FP), R10 \
	MOVQ next+56(FP), R12 \
	LEAQ (R8)(R8*2), R11 \
	ADDQ SI, R11

#define ZERO2(a, b, c, d) \
	VXORPS a, a, a \
	VXORPS b, b, b \
	VXORPS c, c, c \
	VXORPS d, d, d

// LAST readies the end: alpha in every lane of Y0, and whether to add.
#define LAST \
	VBROADCASTSS alpha+64(FP), Y0 \
	MOVBLZX add+68(FP), AX        \
	TESTL AX, AX

// WRITE2 sets two rows of C to alpha times the sums, PLUS2 adds to them; DI goes on.
#define WRITE2(p0, p1, q0, q1) \
	VMULPS Y0, p0, p0          \
	VMULPS Y0, p1, p1          \
	VMULPS Y0, q0, q0          \
	VMULPS Y0, q1, q1          \
	VMOVUPS p0, (DI)           \
	VMOVUPS p1, 32(DI)         \
	VMOVUPS q0, (DI)(R10*1)    \
	VMOVUPS q1, 32(DI)(R10*1)  \
	LEAQ (DI)(R10*2), DI

#define PLUS2(p0, p1, q0, q1) \
	VMULPS Y0, p0, p0                \
	VMULPS Y0, p1, p1                \
	VMULPS Y0, q0, q0                \
	VMULPS Y0, q1, q1                \
	VADDPS (DI), p0, p0              \
	VADDPS 32(DI), p1, p1            \
	VADDPS (DI)(R10*1), q0, q0       \
	VADDPS 32(DI)(R10*1), q1, q1     \
	VMOVUPS p0, (DI)                 \
	VMOVUPS p1, 32(DI)               \
	VMOVUPS q0, (DI)(R10*1)          \
	VMOVUPS q1, 32(DI)(R10*1)        \
	LEAQ (DI)(R10*2), DI

// func tile6x16(k int, a *float32, rs, cs uintptr, b, c *float32, ldc uintptr, next *float32, alpha float32, add bool)
TEXT ·tile6x16(SB), NOSPLIT, $0-69
	ARGUMENTS
	LEAQ (DI)(R10*2), AX
	LEAQ (AX)(R10*2), BX
	PREFETCHT0 (DI)
	PREFETCHT0 (DI)(R10*1)
	PREFETCHT0 (AX)
	PREFETCHT0 (AX)(R10*1)
	PREFETCHT0 (BX)
	PREFETCHT0 (BX)(R10*1)
	ZERO2(Y4, Y5, Y6, Y7)
	ZERO2(Y8, Y9, Y10, Y11)
	ZERO2(Y12, Y13, Y14, Y15)
	MOVQ CX, AX
	SHRQ $2, AX
	ANDQ $3, CX
	TESTQ AX, AX
	JZ rest
	PCALIGN $32
four:
	AHEAD
	STEP6
	STEP6
	STEP6
	STEP6
	DECQ AX
	JNZ four
rest:
	TESTQ CX, CX
	JZ last
one:
	STEP6
	DECQ CX
	JNZ one
last:
	LAST
	JZ write
	PLUS2(Y4, Y5, Y6, Y7)
	PLUS2(Y8, Y9, Y10, Y11)
	PLUS2(Y12, Y13, Y14, Y15)
	VZEROUPPER
	RET
write:
	WRITE2(Y4, Y5, Y6, Y7)
	WRITE2(Y8, Y9, Y10, Y11)
	WRITE2(Y12, Y13, Y14, Y15)
	VZEROUPPER
	RET

// func tile4x16(k int, a *float32, rs, cs uintptr, b, c *float32, ldc uintptr, next *float32, alpha float32, add bool)
TEXT ·tile4x16(SB), NOSPLIT, $0-69
	ARGUMENTS
	ZERO2(Y4, Y5, Y6, Y7)
	ZERO2(Y8, Y9, Y10, Y11)
	MOVQ CX, AX
	SHRQ $2, AX
	ANDQ $3, CX
	TESTQ AX, AX
	JZ rest
	PCALIGN $32
four:
	AHEAD
	STEP4
	STEP4
	STEP4
	STEP4
	DECQ AX
	JNZ four
rest:
	TESTQ CX, CX
	JZ last
one:
	STEP4
	DECQ CX
	JNZ one
last:
	LAST
	JZ write
	PLUS2(Y4, Y5, Y6, Y7)
	PLUS2(Y8, Y9, Y10, Y11)
	VZEROUPPER
	RET
write:
	WRITE2(Y4, Y5, Y6, Y7)
	WRITE2(Y8, Y9, Y10, Y11)
	VZEROUPPER
	RET

// func tile2x16(k int, a *float32, rs, cs uintptr, b, c *float32, ldc uintptr, next *float32, alpha float32, add bool)
TEXT ·tile2x16(SB), NOSPLIT, $0-69
	ARGUMENTS
	ZERO2(Y4, Y5, Y6, Y7)
	MOVQ CX, AX
	SHRQ $2, AX
	ANDQ $3, CX
	TESTQ AX, AX
	JZ rest
	PCALIGN $32
four:
	AHEAD
	STEP2
	STEP2
	STEP2
	STEP2
	DECQ AX
	JNZ four
rest:
	TESTQ CX, CX
	JZ last
one:
	STEP2
	DECQ CX
	JNZ one
last:
	LAST
	JZ write
	PLUS2(Y4, Y5, Y6, Y7)
	VZEROUPPER
	RET
write:
	WRITE2(Y4, Y5, Y6, Y7)
	VZEROUPPER
	RET

// func tile2x32(k int, a *float32, rs, cs uintptr, b *float32, step uintptr, c *float32, ldc uintptr, next *float32,
//	alpha float32, add bool)
TEXT ·tile2x32(SB), NOSPLIT, $0-77
	MOVQ k+0(FP), CX
	MOVQ a+8(FP), SI
	MOVQ rs+16(FP), R8
	MOVQ cs+24(FP), R9
	MOVQ b+32(FP), DX
	MOVQ step+40(FP), R13
	MOVQ c+48(FP), DI
	MOVQ ldc+56(FP), R10
	MOVQ next+64(FP), R12
	LEAQ 64(DI), R11
	ZERO2(Y4, Y5, Y6, Y7)
	ZERO2(Y8, Y9, Y10, Y11)
	MOVQ CX, AX
	SHRQ $2, AX
	ANDQ $3, CX
	TESTQ AX, AX
	JZ rest
	PCALIGN $32
four:
	AHEAD
	STEP2WIDE
	STEP2WIDE
	STEP2WIDE
	STEP2WIDE
	DECQ AX
	JNZ four
rest:
	TESTQ CX, CX
	JZ last
one:
	STEP2WIDE
	DECQ CX
	JNZ one
last:
	VBROADCASTSS alpha+72(FP), Y0
	MOVBLZX add+76(FP), AX
	TESTL AX, AX
	JZ write
	PLUS2(Y4, Y5, Y6, Y7)
	MOVQ R11, DI
	PLUS2(Y8, Y9, Y10, Y11)
	VZEROUPPER
	RET
write:
	WRITE2(Y4, Y5, Y6, Y7)
	MOVQ R11, DI
	WRITE2(Y8, Y9, Y10, Y11)
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
