#include "textflag.h"

// Both forms of estimate keep
//
//	SI  next word of the octet's codes, then its numbers: scales, 32 bytes on
//	    offsets, 64 bytes on norms
//	DX  the query's code             CX   words of a code
//	R8  bytes of an octet            R10  scores
//	R11 which rows reach the threshold
//	R12 octets left                  R13  whether the estimate is by norm
//	Y9  dimensions  Y10 base  Y11 gain  Y12 threshold  Y13 slope  Y14 bend
#define LOAD \
	MOVQ group+0(FP), SI;                \
	MOVQ code+8(FP), DX;                 \
	MOVQ words+16(FP), CX;               \
	MOVQ CX, R8;                         \
	SHLQ $6, R8;                         \
	ADDQ $128, R8;                       \
	MOVQ scores+56(FP), R10;             \
	XORQ R11, R11;                       \
	MOVQ $8, R12;                        \
	MOVL byNorm+52(FP), R13;             \
	MOVQ dimensions+24(FP), AX;          \
	VMOVD AX, X9;                        \
	VPBROADCASTD X9, Y9;                 \
	VBROADCASTSS base+32(FP), Y10;       \
	VBROADCASTSS gain+36(FP), Y11;       \
	VBROADCASTSS threshold+40(FP), Y12;  \
	VBROADCASTSS slope+44(FP), Y13;      \
	VBROADCASTSS bend+48(FP), Y14

// SIMILARITY turns the eight Hamming distances in y (int32) into similarities
// with the products and sums of estimatePortable, in its order; t is overwritten.
#define SIMILARITY(y, t) \
	VPADDD y, y, y;          \
	VPSUBD y, Y9, y;         \
	VCVTDQ2PS y, y;          \
	VMULPS Y11, y, y;        \
	VMULPS (SI), y, y;       \
	VADDPS 32(SI), Y10, t;   \
	VADDPS y, t, y

#define BYNORM(y, t, u) \
	VMOVUPS 64(SI), t;   \
	VMULPS Y13, y, y;    \
	VMULPS Y14, t, u;    \
	VSUBPS u, y, y;      \
	VMULPS y, t, y

// REACHED takes in AX which of the next eight rows reach the threshold.
#define REACHED \
	SHRQ $8, R11;   \
	SHLQ $56, AX;   \
	ORQ AX, R11;    \
	ADDQ $32, R10

// func estimateAVX512(group *byte, code *uint64, words, dimensions int, base, gain, threshold, slope, bend float32, byNorm uint32, scores *float32) uint64
//
// It counts four octets of rows at once, in Z0 to Z3.
TEXT ·estimateAVX512(SB), NOSPLIT, $0-72
	LOAD
	LEAQ (R8)(R8*2), BX

octets:
	VPXORQ Z0, Z0, Z0
	VPXORQ Z1, Z1, Z1
	VPXORQ Z2, Z2, Z2
	VPXORQ Z3, Z3, Z3
	MOVQ   DX, AX
	MOVQ   CX, DI

words:
	VPBROADCASTQ (AX), Z8
	VPXORQ   (SI), Z8, Z4
	VPXORQ   (SI)(R8*1), Z8, Z5
	VPXORQ   (SI)(R8*2), Z8, Z6
	VPXORQ   (SI)(BX*1), Z8, Z7
	VPOPCNTQ Z4, Z4
	VPOPCNTQ Z5, Z5
	VPOPCNTQ Z6, Z6
	VPOPCNTQ Z7, Z7
	VPADDQ   Z4, Z0, Z0
	VPADDQ   Z5, Z1, Z1
	VPADDQ   Z6, Z2, Z2
	VPADDQ   Z7, Z3, Z3
	ADDQ     $8, AX
	ADDQ     $64, SI
	DECQ     DI
	JNZ      words

	VPMOVQD Z0, Y0
	VPMOVQD Z1, Y1
	VPMOVQD Z2, Y2
	VPMOVQD Z3, Y3
	MOVQ    $4, DI

scores:
	SIMILARITY(Y0, Y4)
	TESTL R13, R13
	JZ    compare
	BYNORM(Y0, Y4, Y5)

compare:
	VMOVUPS Y0, (R10)
	VCMPPS  $13, Y12, Y0, K1
	KMOVW   K1, AX
	REACHED
	ADDQ    R8, SI
	VMOVAPS Y1, Y0
	VMOVAPS Y2, Y1
	VMOVAPS Y3, Y2
	DECQ    DI
	JNZ     scores
	LEAQ    128(SI), SI
	SUBQ    R8, SI
	SUBQ    $4, R12
	JNZ     octets
	VZEROUPPER
	MOVQ    R11, ret+64(FP)
	RET

// The number of bits of each half byte.
DATA nibbleBits<>+0(SB)/8, $0x0302020102010100
DATA nibbleBits<>+8(SB)/8, $0x0403030203020201
GLOBL nibbleBits<>(SB), RODATA|NOPTR, $16

// The order of eight counts, as Y0 and Y1 in turn hold them.
DATA evenOdd<>+0(SB)/8, $0x0000000200000000
DATA evenOdd<>+8(SB)/8, $0x0000000600000004
DATA evenOdd<>+16(SB)/8, $0x0000000300000001
DATA evenOdd<>+24(SB)/8, $0x0000000700000005
GLOBL evenOdd<>(SB), RODATA|NOPTR, $32

// COUNT adds the bits of the four words in y to the four counts in sum. Y7 has
// nibbleBits, Y6 the mask of a half byte, Y15 zeros; t is overwritten.
#define COUNT(y, t, sum) \
	VPSRLW $4, y, t;    \
	VPAND Y6, y, y;     \
	VPAND Y6, t, t;     \
	VPSHUFB y, Y7, y;   \
	VPSHUFB t, Y7, t;   \
	VPADDB y, t, y;     \
	VPSADBW Y15, y, y;  \
	VPADDQ y, sum, sum

// func estimateAVX2(group *byte, code *uint64, words, dimensions int, base, gain, threshold, slope, bend float32, byNorm uint32, scores *float32) uint64
//
// It counts one octet of rows at once, in Y0 and Y1, by halves of bytes: Muła,
// Kurz and Lemire, "Faster Population Counts Using AVX2 Instructions", 2018.
TEXT ·estimateAVX2(SB), NOSPLIT, $0-72
	LOAD
	VBROADCASTI128 nibbleBits<>(SB), Y7
	VPCMPEQB       Y6, Y6, Y6
	VPSRLW         $12, Y6, Y6
	VPACKUSWB      Y6, Y6, Y6
	VPXOR          Y15, Y15, Y15

octets:
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	MOVQ  DX, AX
	MOVQ  CX, DI

words:
	VPBROADCASTQ (AX), Y2
	VPXOR        (SI), Y2, Y3
	VPXOR        32(SI), Y2, Y4
	COUNT(Y3, Y5, Y0)
	COUNT(Y4, Y8, Y1)
	ADDQ         $8, AX
	ADDQ         $64, SI
	DECQ         DI
	JNZ          words

	VPSLLQ  $32, Y1, Y1
	VPOR    Y1, Y0, Y0
	VMOVDQU evenOdd<>(SB), Y2
	VPERMD  Y0, Y2, Y0
	SIMILARITY(Y0, Y4)
	TESTL   R13, R13
	JZ      compare
	BYNORM(Y0, Y4, Y5)

compare:
	VMOVUPS   Y0, (R10)
	VCMPPS    $13, Y12, Y0, Y1
	VMOVMSKPS Y1, AX
	REACHED
	ADDQ      $128, SI
	DECQ      R12
	JNZ       octets
	VZEROUPPER
	MOVQ      R11, ret+64(FP)
	RET

// func dotAVX2(row *byte, q *int16, n int) int64
//
// Each of the eight sums in Y8 is of n/8 products, at most 512 of 2048*2047, which
// fits 32 bits.
TEXT ·dotAVX2(SB), NOSPLIT, $0-32
	MOVQ      row+0(FP), SI
	MOVQ      q+8(FP), DX
	MOVQ      n+16(FP), CX
	LEAQ      (SI)(CX*1), DI
	VPXOR     Y8, Y8, Y8
	VPCMPEQW  Y7, Y7, Y7
	VPSRLW    $12, Y7, Y7

dimensions:
	VPMOVSXBW (SI), Y0
	VPMOVSXBW 16(SI), Y1
	VPMOVZXBW (DI), Y2
	VPSLLW    $4, Y0, Y0
	VPSLLW    $4, Y1, Y1
	VPAND     Y7, Y2, Y3
	VPSRLW    $4, Y2, Y2
	VPOR      Y3, Y0, Y0
	VPOR      Y2, Y1, Y1
	VPMADDWD  (DX), Y0, Y0
	VPMADDWD  32(DX), Y1, Y1
	VPADDD    Y0, Y8, Y8
	VPADDD    Y1, Y8, Y8
	ADDQ      $32, SI
	ADDQ      $16, DI
	ADDQ      $64, DX
	SUBQ      $32, CX
	JNZ       dimensions

	VEXTRACTI128 $1, Y8, X1
	VPMOVSXDQ    X8, Y0
	VPMOVSXDQ    X1, Y1
	VPADDQ       Y1, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPADDQ       X1, X0, X0
	VPSRLDQ      $8, X0, X1
	VPADDQ       X1, X0, X0
	VMOVQ        X0, ret+24(FP)
	VZEROUPPER
	RET

// func prefetch(b *byte, n int)
TEXT ·prefetch(SB), NOSPLIT, $0-16
	MOVQ b+0(FP), SI
	MOVQ n+8(FP), CX

lines:
	PREFETCHT0 (SI)
	ADDQ       $64, SI
	SUBQ       $64, CX
	JHI        lines
	RET
