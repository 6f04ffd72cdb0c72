#include "textflag.h"

// FOLDADD adds the lanes of Y0, and sets all lanes of Y0 to the sum; Y1 is overwritten.
#define FOLDADD \
	VEXTRACTF128 $1, Y0, X1;    \
	VADDPS       X1, X0, X0;    \
	VPERMILPS    $0x4E, X0, X1; \
	VADDPS       X1, X0, X0;    \
	VPERMILPS    $0xB1, X0, X1; \
	VADDPS       X1, X0, X0;    \
	VBROADCASTSS X0, Y0

// FOLDMAX is the same for the largest.
#define FOLDMAX \
	VEXTRACTF128 $1, Y0, X1;    \
	VMAXPS       X1, X0, X0;    \
	VPERMILPS    $0x4E, X0, X1; \
	VMAXPS       X1, X0, X0;    \
	VPERMILPS    $0xB1, X0, X1; \
	VMAXPS       X1, X0, X0;    \
	VBROADCASTSS X0, Y0

// GELU sets x to GELU(x); t, u, p and q are overwritten. Then come the constants, as
// registers or memory: the end of erf, its negative, a half, the powers of erfAbove
// and those of erfBelow.
#define GELU(x, t, u, p, q, end, start, half, a0, a1, a2, a3, a4, a5, b0, b1, b2, b3, b4, b5) \
	VMOVUPS     end, t;      \
	VMINPS      x, t, t;     \
	VMOVUPS     start, u;    \
	VMAXPS      t, u, t;     \
	VMULPS      t, t, u;     \
	VMOVUPS     a5, p;       \
	VMOVUPS     b5, q;       \
	VFMADD213PS a4, u, p;    \
	VFMADD213PS b4, u, q;    \
	VFMADD213PS a3, u, p;    \
	VFMADD213PS b3, u, q;    \
	VFMADD213PS a2, u, p;    \
	VFMADD213PS b2, u, q;    \
	VFMADD213PS a1, u, p;    \
	VFMADD213PS b1, u, q;    \
	VFMADD213PS a0, u, p;    \
	VFMADD213PS b0, u, q;    \
	VMULPS      t, p, p;     \
	VDIVPS      q, p, p;     \
	VMULPS      half, x, x;  \
	VFMADD213PS x, x, p;     \
	VMOVAPS     p, x

#define GELU512(x, t, u, p, q) GELU(x, t, u, p, q, Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z25, Z26, Z27, Z28, Z29, Z30)

#define GELU256(x, t, u, p, q) GELU(x, t, u, p, q, (BX), 32(BX), 64(BX), 96(BX), 128(BX), 160(BX), 192(BX), 224(BX), 256(BX), 288(BX), 320(BX), 352(BX), 384(BX), 416(BX), 448(BX))

// func finishTileAVX512(y *float32, stride int, tile *float32, rows int, bias *float32, gelu *float32)
TEXT ·finishTileAVX512(SB), NOSPLIT, $0-48
	MOVQ    y+0(FP), DI
	MOVQ    stride+8(FP), DX
	MOVQ    tile+16(FP), SI
	MOVQ    rows+24(FP), CX
	MOVQ    bias+32(FP), AX
	MOVQ    gelu+40(FP), BX
	VMOVUPS (AX), Z14
	VMOVUPS 64(AX), Z15
	TESTQ   BX, BX
	JZ      plain

	VBROADCASTSS (BX), Z16
	VBROADCASTSS 32(BX), Z17
	VBROADCASTSS 64(BX), Z18
	VBROADCASTSS 96(BX), Z19
	VBROADCASTSS 128(BX), Z20
	VBROADCASTSS 160(BX), Z21
	VBROADCASTSS 192(BX), Z22
	VBROADCASTSS 224(BX), Z23
	VBROADCASTSS 256(BX), Z24
	VBROADCASTSS 288(BX), Z25
	VBROADCASTSS 320(BX), Z26
	VBROADCASTSS 352(BX), Z27
	VBROADCASTSS 384(BX), Z28
	VBROADCASTSS 416(BX), Z29
	VBROADCASTSS 448(BX), Z30

gelu:
	VADDPS  (SI), Z14, Z0
	VADDPS  64(SI), Z15, Z5
	GELU512(Z0, Z1, Z2, Z3, Z4)
	GELU512(Z5, Z6, Z7, Z8, Z9)
	VMOVUPS Z0, (DI)
	VMOVUPS Z5, 64(DI)
	ADDQ    $128, SI
	ADDQ    DX, DI
	DECQ    CX
	JNZ     gelu
	VZEROUPPER
	RET

plain:
	VADDPS  (SI), Z14, Z0
	VADDPS  64(SI), Z15, Z5
	VMOVUPS Z0, (DI)
	VMOVUPS Z5, 64(DI)
	ADDQ    $128, SI
	ADDQ    DX, DI
	DECQ    CX
	JNZ     plain
	VZEROUPPER
	RET

// func finishTileAVX2(y *float32, stride int, tile *float32, rows int, bias *float32, gelu *float32)
//
// It takes the columns in fours of lanes: R8 has those left.
TEXT ·finishTileAVX2(SB), NOSPLIT, $0-48
	MOVQ y+0(FP), DI
	MOVQ stride+8(FP), DX
	MOVQ tile+16(FP), SI
	MOVQ rows+24(FP), CX
	MOVQ bias+32(FP), AX
	MOVQ gelu+40(FP), BX

rows:
	MOVQ $4, R8
	MOVQ AX, R9
	MOVQ DI, R10

columns:
	VMOVUPS (SI), Y0
	VADDPS  (R9), Y0, Y0
	TESTQ   BX, BX
	JZ      plain
	GELU256(Y0, Y1, Y2, Y3, Y4)

plain:
	VMOVUPS Y0, (R10)
	ADDQ    $32, SI
	ADDQ    $32, R9
	ADDQ    $32, R10
	DECQ    R8
	JNZ     columns
	ADDQ    DX, DI
	DECQ    CX
	JNZ     rows
	VZEROUPPER
	RET

// func widenTileAVX2(tile *float32, counts *int32, rows, cols *float32)
TEXT ·widenTileAVX2(SB), NOSPLIT, $0-32
	MOVQ    tile+0(FP), DI
	MOVQ    counts+8(FP), SI
	MOVQ    rows+16(FP), DX
	MOVQ    cols+24(FP), AX
	VMOVUPS (AX), Y8
	VMOVUPS 32(AX), Y9
	VMOVUPS 64(AX), Y10
	VMOVUPS 96(AX), Y11
	MOVQ    $12, CX

rows:
	VBROADCASTSS (DX), Y12
	VMULPS       Y8, Y12, Y4
	VMULPS       Y9, Y12, Y5
	VMULPS       Y10, Y12, Y6
	VMULPS       Y11, Y12, Y7
	VCVTDQ2PS    (SI), Y0
	VCVTDQ2PS    32(SI), Y1
	VCVTDQ2PS    64(SI), Y2
	VCVTDQ2PS    96(SI), Y3
	VMULPS       Y4, Y0, Y0
	VMULPS       Y5, Y1, Y1
	VMULPS       Y6, Y2, Y2
	VMULPS       Y7, Y3, Y3
	VMOVUPS      Y0, (DI)
	VMOVUPS      Y1, 32(DI)
	VMOVUPS      Y2, 64(DI)
	VMOVUPS      Y3, 96(DI)
	ADDQ         $4, DX
	ADDQ         $128, SI
	ADDQ         $128, DI
	DECQ         CX
	JNZ          rows
	VZEROUPPER
	RET

// func scaleTileAVX2(y *float32, stride int, tile *float32, rows int, factors *float32)
TEXT ·scaleTileAVX2(SB), NOSPLIT, $0-40
	MOVQ y+0(FP), DI
	MOVQ stride+8(FP), DX
	MOVQ tile+16(FP), SI
	MOVQ rows+24(FP), CX
	MOVQ factors+32(FP), AX

rows:
	VBROADCASTSS (AX), Y4
	VMULPS       (SI), Y4, Y0
	VMULPS       32(SI), Y4, Y1
	VMULPS       64(SI), Y4, Y2
	VMULPS       96(SI), Y4, Y3
	VMOVUPS      Y0, (DI)
	VMOVUPS      Y1, 32(DI)
	VMOVUPS      Y2, 64(DI)
	VMOVUPS      Y3, 96(DI)
	ADDQ         $4, AX
	ADDQ         $128, SI
	ADDQ         DX, DI
	DECQ         CX
	JNZ          rows
	VZEROUPPER
	RET

// func largestBitsAVX2(x *float32, n int) uint32
TEXT ·largestBitsAVX2(SB), NOSPLIT, $0-20
	MOVQ     x+0(FP), SI
	MOVQ     n+8(FP), CX
	VPCMPEQD Y4, Y4, Y4
	VPSRLD   $1, Y4, Y4
	VPXOR    Y0, Y0, Y0
	VPXOR    Y1, Y1, Y1

sixteen:
	VPAND   (SI), Y4, Y2
	VPAND   32(SI), Y4, Y3
	VPMAXSD Y2, Y0, Y0
	VPMAXSD Y3, Y1, Y1
	ADDQ    $64, SI
	SUBQ    $16, CX
	JNZ     sixteen

	VPMAXSD      Y1, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPMAXSD      X1, X0, X0
	VPSHUFD      $0x4E, X0, X1
	VPMAXSD      X1, X0, X0
	VPSHUFD      $0xB1, X0, X1
	VPMAXSD      X1, X0, X0
	VMOVD        X0, AX
	MOVL         AX, ret+16(FP)
	VZEROUPPER
	RET

// func roundRowAVX2(values *int16, x *float32, n int, factor float32)
TEXT ·roundRowAVX2(SB), NOSPLIT, $0-28
	MOVQ         values+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSS factor+24(FP), Y4

sixteen:
	VMULPS    (SI), Y4, Y0
	VMULPS    32(SI), Y4, Y1
	VCVTPS2DQ Y0, Y0
	VCVTPS2DQ Y1, Y1
	VPACKSSDW Y1, Y0, Y0
	VPERMQ    $0xD8, Y0, Y0
	VMOVDQU   Y0, (DI)
	ADDQ      $64, SI
	ADDQ      $32, DI
	SUBQ      $16, CX
	JNZ       sixteen
	VZEROUPPER
	RET

// func normaliseAVX2(x, residual, gamma, beta *float32, n int, eps float32)
TEXT ·normaliseAVX2(SB), NOSPLIT, $0-44
	MOVQ      x+0(FP), SI
	MOVQ      residual+8(FP), DX
	MOVQ      n+32(FP), CX
	VCVTSI2SSQ CX, X15, X15
	VBROADCASTSS X15, Y15
	VXORPS    Y0, Y0, Y0
	VXORPS    Y1, Y1, Y1
	MOVQ      SI, DI
	TESTQ     DX, DX
	JZ        alone

sum:
	VMOVUPS (DI), Y2
	VMOVUPS 32(DI), Y3
	VADDPS  (DX), Y2, Y2
	VADDPS  32(DX), Y3, Y3
	VMOVUPS Y2, (DI)
	VMOVUPS Y3, 32(DI)
	VADDPS  Y2, Y0, Y0
	VADDPS  Y3, Y1, Y1
	ADDQ    $64, DI
	ADDQ    $64, DX
	SUBQ    $16, CX
	JNZ     sum
	JMP     mean

alone:
	VADDPS (DI), Y0, Y0
	VADDPS 32(DI), Y1, Y1
	ADDQ   $64, DI
	SUBQ   $16, CX
	JNZ    alone

mean:
	VADDPS  Y1, Y0, Y0
	FOLDADD
	VDIVPS  Y15, Y0, Y14
	VXORPS  Y0, Y0, Y0
	VXORPS  Y1, Y1, Y1
	MOVQ    SI, DI
	MOVQ    n+32(FP), CX

squares:
	VMOVUPS     (DI), Y2
	VMOVUPS     32(DI), Y3
	VSUBPS      Y14, Y2, Y2
	VSUBPS      Y14, Y3, Y3
	VFMADD231PS Y2, Y2, Y0
	VFMADD231PS Y3, Y3, Y1
	ADDQ        $64, DI
	SUBQ        $16, CX
	JNZ         squares

	VADDPS       Y1, Y0, Y0
	FOLDADD
	VDIVPS       Y15, Y0, Y0
	VBROADCASTSS eps+40(FP), Y1
	VADDPS       Y1, Y0, Y0
	VSQRTPS      Y0, Y0
	MOVL         $0x3F800000, AX
	VMOVD        AX, X1
	VBROADCASTSS X1, Y1
	VDIVPS       Y0, Y1, Y13
	MOVQ         gamma+16(FP), AX
	MOVQ         beta+24(FP), BX
	MOVQ         n+32(FP), CX

scale:
	VMOVUPS     (SI), Y2
	VMOVUPS     32(SI), Y3
	VSUBPS      Y14, Y2, Y2
	VSUBPS      Y14, Y3, Y3
	VMULPS      Y13, Y2, Y2
	VMULPS      Y13, Y3, Y3
	VMOVUPS     (BX), Y4
	VMOVUPS     32(BX), Y5
	VFMADD231PS (AX), Y2, Y4
	VFMADD231PS 32(AX), Y3, Y5
	VMOVUPS     Y4, (SI)
	VMOVUPS     Y5, 32(SI)
	ADDQ        $64, SI
	ADDQ        $64, AX
	ADDQ        $64, BX
	SUBQ        $16, CX
	JNZ         scale
	VZEROUPPER
	RET

// EXP sets x to exp of factor*(x-m); k and p are overwritten. The integer part of a
// product is what stays of it in the lowest bits beside 1.5*2^23.
#define EXP(x, k, p, m, factor, lowest, log2e, magic, high, low, c0, c1, c2, c3, c4, c5) \
	VSUBPS       m, x, x;       \
	VMULPS       factor, x, x;  \
	VMOVUPS      lowest, k;     \
	VMAXPS       x, k, x;       \
	VMOVUPS      magic, k;      \
	VFMADD231PS  log2e, x, k;   \
	VSUBPS       magic, k, p;   \
	VFMADD231PS  high, p, x;    \
	VFMADD231PS  low, p, x;     \
	VMOVUPS      c5, p;         \
	VFMADD213PS  c4, x, p;      \
	VFMADD213PS  c3, x, p;      \
	VFMADD213PS  c2, x, p;      \
	VFMADD213PS  c1, x, p;      \
	VFMADD213PS  c0, x, p;      \
	VPSLLD       $23, k, k;     \
	VPADDD       k, p, x

// func exponentialsAVX512(x *float32, n, rows int, factor float32, exp, sums *float32)
TEXT ·exponentialsAVX512(SB), NOSPLIT, $0-48
	MOVQ         x+0(FP), SI
	MOVQ         rows+16(FP), DX
	VBROADCASTSS factor+24(FP), Z15
	MOVQ         exp+32(FP), BX
	MOVQ         sums+40(FP), AX
	VBROADCASTSS (BX), Z16
	VBROADCASTSS 32(BX), Z17
	VBROADCASTSS 64(BX), Z18
	VBROADCASTSS 96(BX), Z19
	VBROADCASTSS 128(BX), Z20
	VBROADCASTSS 160(BX), Z21
	VBROADCASTSS 192(BX), Z22
	VBROADCASTSS 224(BX), Z23
	VBROADCASTSS 256(BX), Z24
	VBROADCASTSS 288(BX), Z25
	VBROADCASTSS 320(BX), Z26

rows:
	MOVQ    n+8(FP), CX
	VMOVUPS (SI), Z0
	VMOVUPS 64(SI), Z1
	MOVQ    SI, DI

largest:
	VMAXPS (DI), Z0, Z0
	VMAXPS 64(DI), Z1, Z1
	ADDQ   $128, DI
	SUBQ   $32, CX
	JNZ    largest

	VMAXPS        Z1, Z0, Z0
	VEXTRACTF64X4 $1, Z0, Y1
	VMAXPS        Y1, Y0, Y0
	FOLDMAX
	VBROADCASTSS  X0, Z14
	VPXORQ        Z0, Z0, Z0
	VPXORQ        Z1, Z1, Z1
	MOVQ          n+8(FP), CX

exps:
	VMOVUPS (SI), Z2
	VMOVUPS 64(SI), Z5
	EXP(Z2, Z3, Z4, Z14, Z15, Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z25, Z26)
	EXP(Z5, Z6, Z7, Z14, Z15, Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z25, Z26)
	VMOVUPS Z2, (SI)
	VMOVUPS Z5, 64(SI)
	VADDPS  Z2, Z0, Z0
	VADDPS  Z5, Z1, Z1
	ADDQ    $128, SI
	SUBQ    $32, CX
	JNZ     exps

	VADDPS        Z1, Z0, Z0
	VEXTRACTF64X4 $1, Z0, Y1
	VADDPS        Y1, Y0, Y0
	FOLDADD
	VMOVSS        X0, (AX)
	ADDQ          $4, AX
	DECQ          DX
	JNZ           rows
	VZEROUPPER
	RET

// func exponentialsAVX2(x *float32, n, rows int, factor float32, exp, sums *float32)
TEXT ·exponentialsAVX2(SB), NOSPLIT, $0-48
	MOVQ         x+0(FP), SI
	MOVQ         rows+16(FP), DX
	VBROADCASTSS factor+24(FP), Y15
	MOVQ         exp+32(FP), BX
	MOVQ         sums+40(FP), AX

rows:
	MOVQ    n+8(FP), CX
	VMOVUPS (SI), Y0
	MOVQ    SI, DI

largest:
	VMAXPS (DI), Y0, Y0
	ADDQ   $32, DI
	SUBQ   $8, CX
	JNZ    largest

	FOLDMAX
	VMOVAPS Y0, Y14
	VXORPS  Y0, Y0, Y0
	MOVQ    n+8(FP), CX

exps:
	VMOVUPS (SI), Y2
	EXP(Y2, Y3, Y4, Y14, Y15, (BX), 32(BX), 64(BX), 96(BX), 128(BX), 160(BX), 192(BX), 224(BX), 256(BX), 288(BX), 320(BX))
	VMOVUPS Y2, (SI)
	VADDPS  Y2, Y0, Y0
	ADDQ    $32, SI
	SUBQ    $8, CX
	JNZ     exps

	FOLDADD
	VMOVSS X0, (AX)
	ADDQ   $4, AX
	DECQ   DX
	JNZ    rows
	VZEROUPPER
	RET
