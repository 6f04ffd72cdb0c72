#include "textflag.h"

// Instructions that the assembler lacks, on four floats or integers.
#define FADD(d, n, m) WORD $(0x4E20D400 | m<<16 | n<<5 | d)
#define FSUB(d, n, m) WORD $(0x4EA0D400 | m<<16 | n<<5 | d)
#define FMUL(d, n, m) WORD $(0x6E20DC00 | m<<16 | n<<5 | d)
#define FDIV(d, n, m) WORD $(0x6E20FC00 | m<<16 | n<<5 | d)
#define FMAX(d, n, m) WORD $(0x4E20F400 | m<<16 | n<<5 | d)
#define FMIN(d, n, m) WORD $(0x4EA0F400 | m<<16 | n<<5 | d)
#define FMLA(d, n, m) WORD $(0x4E20CC00 | m<<16 | n<<5 | d)
#define FMAXV(d, n) WORD $(0x6E30F800 | n<<5 | d)
#define FADDP(d, n, m) WORD $(0x6E20D400 | m<<16 | n<<5 | d)
#define UMAXV(d, n) WORD $(0x6EB0A800 | n<<5 | d)
#define SCVTF(d, n) WORD $(0x4E21D800 | n<<5 | d)
#define FCVTNS(d, n) WORD $(0x4E21A800 | n<<5 | d)
#define SQXTN(d, n) WORD $(0x0E614800 | n<<5 | d)
#define SQXTN2(d, n) WORD $(0x4E614800 | n<<5 | d)
#define MOV(d, n) WORD $(0x4EA01C00 | n<<16 | n<<5 | d)

// STEP is a step of a polynomial: to = c + from*x.
#define STEP(to, c, from, x) \
	MOV(to, c);       \
	FMLA(to, from, x)

// func finishTileNEON(y *float32, stride int, tile *float32, rows int, bias, gelu *float32)
//
// V16 to V30 have the constants of GELU: the end of erf, its negative, a half, the
// powers of erfAbove and those of erfBelow.
TEXT ·finishTileNEON(SB), NOSPLIT, $0-48
	MOVD y+0(FP), R0
	MOVD stride+8(FP), R1
	MOVD tile+16(FP), R2
	MOVD rows+24(FP), R3
	MOVD bias+32(FP), R4
	MOVD gelu+40(FP), R5
	CBZ  R5, rows
	MOVD R5, R6
	VLD1R.P 4(R6), [V16.S4]
	VLD1R.P 4(R6), [V17.S4]
	VLD1R.P 4(R6), [V18.S4]
	VLD1R.P 4(R6), [V19.S4]
	VLD1R.P 4(R6), [V20.S4]
	VLD1R.P 4(R6), [V21.S4]
	VLD1R.P 4(R6), [V22.S4]
	VLD1R.P 4(R6), [V23.S4]
	VLD1R.P 4(R6), [V24.S4]
	VLD1R.P 4(R6), [V25.S4]
	VLD1R.P 4(R6), [V26.S4]
	VLD1R.P 4(R6), [V27.S4]
	VLD1R.P 4(R6), [V28.S4]
	VLD1R.P 4(R6), [V29.S4]
	VLD1R   (R6), [V30.S4]

rows:
	MOVD $8, R7
	MOVD R4, R8
	MOVD R0, R9

four:
	VLD1.P 16(R2), [V0.S4]
	VLD1.P 16(R8), [V1.S4]
	FADD(0, 0, 1)
	CBZ    R5, plain
	FMIN(1, 0, 16)
	FMAX(1, 1, 17)
	FMUL(2, 1, 1)
	STEP(3, 23, 24, 2)
	STEP(4, 29, 30, 2)
	STEP(5, 22, 3, 2)
	STEP(6, 28, 4, 2)
	STEP(3, 21, 5, 2)
	STEP(4, 27, 6, 2)
	STEP(5, 20, 3, 2)
	STEP(6, 26, 4, 2)
	STEP(3, 19, 5, 2)
	STEP(4, 25, 6, 2)
	FMUL(3, 3, 1)
	FDIV(3, 3, 4)
	FMUL(0, 0, 18)
	FMLA(0, 0, 3)

plain:
	VST1.P [V0.S4], 16(R9)
	SUBS   $1, R7
	BNE    four
	ADD    R1, R0
	SUBS   $1, R3
	BNE    rows
	RET

// func exponentialsNEON(x *float32, n, rows int, factor float32, exp, sums *float32)
//
// V16 to V26 have the constants of EXP of the other assembly, in its order.
TEXT ·exponentialsNEON(SB), NOSPLIT, $0-48
	MOVD  x+0(FP), R0
	MOVD  n+8(FP), R1
	MOVD  rows+16(FP), R2
	FMOVS factor+24(FP), F15
	VDUP  V15.S[0], V15.S4
	MOVD  exp+32(FP), R4
	MOVD  sums+40(FP), R5
	VLD1R.P 4(R4), [V16.S4]
	VLD1R.P 4(R4), [V17.S4]
	VLD1R.P 4(R4), [V18.S4]
	VLD1R.P 4(R4), [V19.S4]
	VLD1R.P 4(R4), [V20.S4]
	VLD1R.P 4(R4), [V21.S4]
	VLD1R.P 4(R4), [V22.S4]
	VLD1R.P 4(R4), [V23.S4]
	VLD1R.P 4(R4), [V24.S4]
	VLD1R.P 4(R4), [V25.S4]
	VLD1R   (R4), [V26.S4]

rows:
	MOVD R0, R6
	MOVD R1, R7
	VLD1 (R0), [V0.S4]

largest:
	VLD1.P 16(R6), [V1.S4]
	FMAX(0, 0, 1)
	SUBS   $4, R7
	BNE    largest

	FMAXV(0, 0)
	VDUP V0.S[0], V14.S4
	VEOR V0.B16, V0.B16, V0.B16
	MOVD R1, R7

exps:
	VLD1   (R0), [V2.S4]
	FSUB(2, 2, 14)
	FMUL(2, 2, 15)
	FMAX(2, 2, 16)
	STEP(3, 18, 2, 17)
	FSUB(4, 3, 18)
	FMLA(2, 4, 19)
	FMLA(2, 4, 20)
	STEP(4, 25, 26, 2)
	STEP(5, 24, 4, 2)
	STEP(4, 23, 5, 2)
	STEP(5, 22, 4, 2)
	STEP(4, 21, 5, 2)
	VSHL   $23, V3.S4, V3.S4
	VADD   V3.S4, V4.S4, V2.S4
	VST1.P [V2.S4], 16(R0)
	FADD(0, 0, 2)
	SUBS   $4, R7
	BNE    exps

	FADDP(0, 0, 0)
	FADDP(0, 0, 0)
	FMOVS.P F0, 4(R5)
	SUBS    $1, R2
	BNE     rows
	RET

// func widenTileNEON(tile *float32, counts *int32, rows, cols *float32)
TEXT ·widenTileNEON(SB), NOSPLIT, $0-32
	MOVD   tile+0(FP), R0
	MOVD   counts+8(FP), R1
	MOVD   rows+16(FP), R2
	MOVD   cols+24(FP), R3
	VLD1.P 64(R3), [V16.S4, V17.S4, V18.S4, V19.S4]
	VLD1   (R3), [V20.S4, V21.S4, V22.S4, V23.S4]
	MOVD   $12, R4

rows:
	VLD1R.P 4(R2), [V24.S4]
	VLD1.P  64(R1), [V0.S4, V1.S4, V2.S4, V3.S4]
	VLD1.P  64(R1), [V4.S4, V5.S4, V6.S4, V7.S4]
	FMUL(8, 16, 24)
	FMUL(9, 17, 24)
	FMUL(10, 18, 24)
	FMUL(11, 19, 24)
	FMUL(12, 20, 24)
	FMUL(13, 21, 24)
	FMUL(14, 22, 24)
	FMUL(15, 23, 24)
	SCVTF(0, 0)
	SCVTF(1, 1)
	SCVTF(2, 2)
	SCVTF(3, 3)
	SCVTF(4, 4)
	SCVTF(5, 5)
	SCVTF(6, 6)
	SCVTF(7, 7)
	FMUL(0, 0, 8)
	FMUL(1, 1, 9)
	FMUL(2, 2, 10)
	FMUL(3, 3, 11)
	FMUL(4, 4, 12)
	FMUL(5, 5, 13)
	FMUL(6, 6, 14)
	FMUL(7, 7, 15)
	VST1.P  [V0.S4, V1.S4, V2.S4, V3.S4], 64(R0)
	VST1.P  [V4.S4, V5.S4, V6.S4, V7.S4], 64(R0)
	SUBS    $1, R4
	BNE     rows
	RET

// func largestBitsNEON(x *float32, n int) uint32
TEXT ·largestBitsNEON(SB), NOSPLIT, $0-20
	MOVD x+0(FP), R0
	MOVD n+8(FP), R1
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16

eight:
	VLD1.P 32(R0), [V2.S4, V3.S4]
	VSHL   $1, V2.S4, V2.S4
	VSHL   $1, V3.S4, V3.S4
	VUMAX  V2.S4, V0.S4, V0.S4
	VUMAX  V3.S4, V1.S4, V1.S4
	SUBS   $8, R1
	BNE    eight

	VUMAX V1.S4, V0.S4, V0.S4
	UMAXV(0, 0)
	VMOV  V0.S[0], R2
	LSR   $1, R2, R2
	MOVW  R2, ret+16(FP)
	RET

// func roundRowNEON(values *int16, x *float32, n int, factor float32)
TEXT ·roundRowNEON(SB), NOSPLIT, $0-28
	MOVD  values+0(FP), R0
	MOVD  x+8(FP), R1
	MOVD  n+16(FP), R2
	FMOVS factor+24(FP), F15
	VDUP  V15.S[0], V15.S4

eight:
	VLD1.P 32(R1), [V0.S4, V1.S4]
	FMUL(0, 0, 15)
	FMUL(1, 1, 15)
	FCVTNS(0, 0)
	FCVTNS(1, 1)
	SQXTN(2, 0)
	SQXTN2(2, 1)
	VST1.P [V2.H8], 16(R0)
	SUBS   $8, R2
	BNE    eight
	RET
