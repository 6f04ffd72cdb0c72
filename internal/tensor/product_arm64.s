#include "textflag.h"

// Both forms keep
//
//	R0, R1  the next row of the output, and bytes from row to row
//	R2, R3  the next row of the input, and bytes from row to row
//	R4      the panel
//	R5      inputs
//	R6, R7  groups of four rows left, halves of the columns left
//	R8, R9  the half's weights and output
//	R10-R13 the next inputs of four rows
//	R14     the next weights
//	R15     inputs left
//
// The sums of row r of the four are in V(4r) to V(4r+3). The assembler lacks some
// instructions, which are written as numbers: registers are theirs, elements counted.

// FMLA is FMLA Vd.4S, Vn.4S, Vm.S[2h+l].
#define FMLA(d, n, m, h, l) WORD $(0x4F801000 | l<<21 | m<<16 | h<<11 | n<<5 | d)

// SMLAL is SMLAL Vd.4S, Vn.4H, Vm.H[e], e at most 1, m below 16; SMLAL2 takes the
// upper half of Vn.8H.
#define SMLAL(d, n, m, e) WORD $(0x0F402000 | e<<20 | m<<16 | n<<5 | d)
#define SMLAL2(d, n, m, e) WORD $(0x4F402000 | e<<20 | m<<16 | n<<5 | d)

// SXTL is SXTL Vd.8H, Vn.8B; SXTL2 takes the upper half of Vn.16B.
#define SXTL(d, n) WORD $(0x0F08A400 | n<<5 | d)
#define SXTL2(d, n) WORD $(0x4F08A400 | n<<5 | d)

#define LOAD \
	MOVD y+0(FP), R0;        \
	MOVD yStride+8(FP), R1;  \
	MOVD x+16(FP), R2;       \
	MOVD xStride+24(FP), R3; \
	MOVD panel+32(FP), R4;   \
	MOVD n+40(FP), R5

#define CLEAR4(a, b, c, d) \
	VEOR a, a, a; \
	VEOR b, b, b; \
	VEOR c, c, c; \
	VEOR d, d, d

// START begins sixteen columns of four rows.
#define START \
	MOVD   R2, R10;          \
	ADD    R3, R10, R11;     \
	ADD    R3, R11, R12;     \
	ADD    R3, R12, R13;     \
	MOVD   R8, R14;          \
	MOVD   R5, R15;          \
	CLEAR4(V0.B16, V1.B16, V2.B16, V3.B16);    \
	CLEAR4(V4.B16, V5.B16, V6.B16, V7.B16);    \
	CLEAR4(V8.B16, V9.B16, V10.B16, V11.B16);  \
	CLEAR4(V12.B16, V13.B16, V14.B16, V15.B16)

// STORE writes them; R16 is overwritten.
#define STORE \
	MOVD R9, R16;                                    \
	VST1 [V0.S4, V1.S4, V2.S4, V3.S4], (R16);        \
	ADD  R1, R16;                                    \
	VST1 [V4.S4, V5.S4, V6.S4, V7.S4], (R16);        \
	ADD  R1, R16;                                    \
	VST1 [V8.S4, V9.S4, V10.S4, V11.S4], (R16);      \
	ADD  R1, R16;                                    \
	VST1 [V12.S4, V13.S4, V14.S4, V15.S4], (R16)

// FLOATS multiplies sixteen weights with element 2h+l of V24 to V27.
#define FLOATS(h, l) \
	VLD1 (R14), [V16.S4, V17.S4, V18.S4, V19.S4]; \
	ADD  $128, R14;                               \
	FMLA(0, 16, 24, h, l);  \
	FMLA(1, 17, 24, h, l);  \
	FMLA(2, 18, 24, h, l);  \
	FMLA(3, 19, 24, h, l);  \
	FMLA(4, 16, 25, h, l);  \
	FMLA(5, 17, 25, h, l);  \
	FMLA(6, 18, 25, h, l);  \
	FMLA(7, 19, 25, h, l);  \
	FMLA(8, 16, 26, h, l);  \
	FMLA(9, 17, 26, h, l);  \
	FMLA(10, 18, 26, h, l); \
	FMLA(11, 19, 26, h, l); \
	FMLA(12, 16, 27, h, l); \
	FMLA(13, 17, 27, h, l); \
	FMLA(14, 18, 27, h, l); \
	FMLA(15, 19, 27, h, l)

// func productFloatsNEON(y *float32, yStride int, x *float32, xStride int, panel *float32, n int)
TEXT ·productFloatsNEON(SB), NOSPLIT, $0-48
	LOAD
	MOVD $3, R6

rows:
	MOVD R4, R8
	MOVD R0, R9
	MOVD $2, R7

half:
	START
	SUBS $4, R15
	BLT  rest

four:
	VLD1.P 16(R10), [V24.S4]
	VLD1.P 16(R11), [V25.S4]
	VLD1.P 16(R12), [V26.S4]
	VLD1.P 16(R13), [V27.S4]
	FLOATS(0, 0)
	FLOATS(0, 1)
	FLOATS(1, 0)
	FLOATS(1, 1)
	SUBS   $4, R15
	BGE    four

rest:
	ADDS $4, R15
	BEQ  done

one:
	FMOVS.P 4(R10), F24
	FMOVS.P 4(R11), F25
	FMOVS.P 4(R12), F26
	FMOVS.P 4(R13), F27
	FLOATS(0, 0)
	SUBS    $1, R15
	BNE     one

done:
	STORE
	ADD  $64, R8
	ADD  $64, R9
	SUBS $1, R7
	BNE  half
	ADD  R3<<2, R2
	ADD  R1<<2, R0
	SUBS $1, R6
	BNE  rows
	RET

// INTS multiplies sixteen weights, in V20 and V21, with element e of V12 to V15, for
// SMLAL takes elements of registers below 16 alone; so the sums of the fourth row are
// in V24 to V27.
#define INTS(e) \
	SMLAL(0, 20, 12, e);   \
	SMLAL2(1, 20, 12, e);  \
	SMLAL(2, 21, 12, e);   \
	SMLAL2(3, 21, 12, e);  \
	SMLAL(4, 20, 13, e);   \
	SMLAL2(5, 20, 13, e);  \
	SMLAL(6, 21, 13, e);   \
	SMLAL2(7, 21, 13, e);  \
	SMLAL(8, 20, 14, e);   \
	SMLAL2(9, 20, 14, e);  \
	SMLAL(10, 21, 14, e);  \
	SMLAL2(11, 21, 14, e); \
	SMLAL(24, 20, 15, e);  \
	SMLAL2(25, 20, 15, e); \
	SMLAL(26, 21, 15, e);  \
	SMLAL2(27, 21, 15, e)

// func productIntsNEON(y *int32, yStride int, x *int16, xStride int, panel *int8, n int)
TEXT ·productIntsNEON(SB), NOSPLIT, $0-48
	LOAD
	MOVD $3, R6

rows:
	MOVD R4, R8
	MOVD R0, R9
	MOVD $2, R7

half:
	START
	CLEAR4(V24.B16, V25.B16, V26.B16, V27.B16)

two:
	VLD2    (R14), [V16.B16, V17.B16]
	ADD     $64, R14
	FMOVS.P 4(R10), F12
	FMOVS.P 4(R11), F13
	FMOVS.P 4(R12), F14
	FMOVS.P 4(R13), F15
	SXTL(20, 16)
	SXTL2(21, 16)
	INTS(0)
	SXTL(20, 17)
	SXTL2(21, 17)
	INTS(1)
	SUBS    $2, R15
	BNE     two

	VMOV V24.B16, V12.B16
	VMOV V25.B16, V13.B16
	VMOV V26.B16, V14.B16
	VMOV V27.B16, V15.B16
	STORE
	ADD  $32, R8
	ADD  $64, R9
	SUBS $1, R7
	BNE  half
	ADD  R3<<2, R2
	ADD  R1<<2, R0
	SUBS $1, R6
	BNE  rows
	RET
