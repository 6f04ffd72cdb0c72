#include "textflag.h"

// All forms of productFloats and productInts keep
//
//	SI, R8, R9  the next inputs of rows 0, 4, 8 of the tile (AVX2: 0 and 3 of half of it)
//	DX, BX      bytes from row to row, and three times as many
//	DI          the next weights of the panel
//	CX          inputs left
//	AX, R14     the next row of the output, and bytes from row to row
//
// The sums of row r are in Z(2r) and Z(2r+1).

#define LOAD \
	MOVQ y+0(FP), AX;        \
	MOVQ yStride+8(FP), R14; \
	MOVQ x+16(FP), SI;       \
	MOVQ xStride+24(FP), DX; \
	MOVQ panel+32(FP), DI;   \
	MOVQ n+40(FP), CX

#define CLEAR4(a, b, c, d) \
	VPXORQ a, a, a; \
	VPXORQ b, b, b; \
	VPXORQ c, c, c; \
	VPXORQ d, d, d

// PREFETCH2 asks for two lines of weights that are wanted 8 KB later. Of 4 to 32 KB that
// was best: a query of 8 tokens takes 0.7 of the time with int8 weights, which mostly
// wait for memory, a batch of 1,024 tokens 0.9.
#define PREFETCH2(at) \
	PREFETCHT0 8192+at(DI); \
	PREFETCHT0 8256+at(DI)

// STORE2 writes the sums of two rows.
#define STORE2(a, b, c, d) \
	VMOVUPS a, (AX);           \
	VMOVUPS b, 64(AX);         \
	VMOVUPS c, (AX)(R14*1);    \
	VMOVUPS d, 64(AX)(R14*1);  \
	LEAQ    (AX)(R14*2), AX

// FLOATS multiplies one input of each of four rows, at bytes after base, with the
// weights in v and w.
#define FLOATS(at, base, v, w, a0, b0, a1, b1, a2, b2, a3, b3) \
	VBROADCASTSS at(base), Z28;         \
	VBROADCASTSS at(base)(DX*1), Z29;   \
	VBROADCASTSS at(base)(DX*2), Z30;   \
	VBROADCASTSS at(base)(BX*1), Z31;   \
	VFMADD231PS  v, Z28, a0;            \
	VFMADD231PS  w, Z28, b0;            \
	VFMADD231PS  v, Z29, a1;            \
	VFMADD231PS  w, Z29, b1;            \
	VFMADD231PS  v, Z30, a2;            \
	VFMADD231PS  w, Z30, b2;            \
	VFMADD231PS  v, Z31, a3;            \
	VFMADD231PS  w, Z31, b3

#define FLOATS12(at, v, w) \
	FLOATS(at, SI, v, w, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7);         \
	FLOATS(at, R8, v, w, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15);   \
	FLOATS(at, R9, v, w, Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23)

// func productFloatsAVX512(y *float32, yStride int, x *float32, xStride int, panel *float32, n int)
TEXT ·productFloatsAVX512(SB), NOSPLIT, $0-48
	LOAD
	LEAQ (DX)(DX*2), BX
	LEAQ (SI)(DX*4), R8
	LEAQ (R8)(DX*4), R9
	CLEAR4(Z0, Z1, Z2, Z3)
	CLEAR4(Z4, Z5, Z6, Z7)
	CLEAR4(Z8, Z9, Z10, Z11)
	CLEAR4(Z12, Z13, Z14, Z15)
	CLEAR4(Z16, Z17, Z18, Z19)
	CLEAR4(Z20, Z21, Z22, Z23)
	SUBQ $4, CX
	JLT  rest

four:
	PREFETCH2(0)
	PREFETCH2(128)
	PREFETCH2(256)
	PREFETCH2(384)
	VMOVUPS (DI), Z24
	VMOVUPS 64(DI), Z25
	VMOVUPS 128(DI), Z26
	VMOVUPS 192(DI), Z27
	FLOATS12(0, Z24, Z25)
	FLOATS12(4, Z26, Z27)
	VMOVUPS 256(DI), Z24
	VMOVUPS 320(DI), Z25
	VMOVUPS 384(DI), Z26
	VMOVUPS 448(DI), Z27
	FLOATS12(8, Z24, Z25)
	FLOATS12(12, Z26, Z27)
	ADDQ    $16, SI
	ADDQ    $16, R8
	ADDQ    $16, R9
	ADDQ    $512, DI
	SUBQ    $4, CX
	JGE     four

rest:
	ADDQ $4, CX
	JZ   done

one:
	VMOVUPS (DI), Z24
	VMOVUPS 64(DI), Z25
	FLOATS12(0, Z24, Z25)
	ADDQ    $4, SI
	ADDQ    $4, R8
	ADDQ    $4, R9
	ADDQ    $128, DI
	DECQ    CX
	JNZ     one

done:
	STORE2(Z0, Z1, Z2, Z3)
	STORE2(Z4, Z5, Z6, Z7)
	STORE2(Z8, Z9, Z10, Z11)
	STORE2(Z12, Z13, Z14, Z15)
	STORE2(Z16, Z17, Z18, Z19)
	STORE2(Z20, Z21, Z22, Z23)
	VZEROUPPER
	RET

// INTS is FLOATS for a pair of inputs of each row.
#define INTS(at, base, v, w, a0, b0, a1, b1, a2, b2, a3, b3) \
	VPBROADCASTD at(base), Z28;         \
	VPBROADCASTD at(base)(DX*1), Z29;   \
	VPBROADCASTD at(base)(DX*2), Z30;   \
	VPBROADCASTD at(base)(BX*1), Z31;   \
	VPDPWSSD     v, Z28, a0;            \
	VPDPWSSD     w, Z28, b0;            \
	VPDPWSSD     v, Z29, a1;            \
	VPDPWSSD     w, Z29, b1;            \
	VPDPWSSD     v, Z30, a2;            \
	VPDPWSSD     w, Z30, b2;            \
	VPDPWSSD     v, Z31, a3;            \
	VPDPWSSD     w, Z31, b3

#define INTS12(at, v, w) \
	INTS(at, SI, v, w, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7);         \
	INTS(at, R8, v, w, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15);   \
	INTS(at, R9, v, w, Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23)

// func productIntsAVX512(y *int32, yStride int, x *int16, xStride int, panel *int8, n int)
TEXT ·productIntsAVX512(SB), NOSPLIT, $0-48
	LOAD
	LEAQ (DX)(DX*2), BX
	LEAQ (SI)(DX*4), R8
	LEAQ (R8)(DX*4), R9
	CLEAR4(Z0, Z1, Z2, Z3)
	CLEAR4(Z4, Z5, Z6, Z7)
	CLEAR4(Z8, Z9, Z10, Z11)
	CLEAR4(Z12, Z13, Z14, Z15)
	CLEAR4(Z16, Z17, Z18, Z19)
	CLEAR4(Z20, Z21, Z22, Z23)
	SUBQ $4, CX
	JLT  rest

four:
	PREFETCH2(0)
	VPMOVSXBW (DI), Z24
	VPMOVSXBW 32(DI), Z25
	VPMOVSXBW 64(DI), Z26
	VPMOVSXBW 96(DI), Z27
	INTS12(0, Z24, Z25)
	INTS12(4, Z26, Z27)
	ADDQ      $8, SI
	ADDQ      $8, R8
	ADDQ      $8, R9
	ADDQ      $128, DI
	SUBQ      $4, CX
	JGE       four

rest:
	ADDQ $4, CX
	JZ   done
	VPMOVSXBW (DI), Z24
	VPMOVSXBW 32(DI), Z25
	INTS12(0, Z24, Z25)

done:
	STORE2(Z0, Z1, Z2, Z3)
	STORE2(Z4, Z5, Z6, Z7)
	STORE2(Z8, Z9, Z10, Z11)
	STORE2(Z12, Z13, Z14, Z15)
	STORE2(Z16, Z17, Z18, Z19)
	STORE2(Z20, Z21, Z22, Z23)
	VZEROUPPER
	RET

#define CLEAR6(a, b, c, d, e, f) \
	VXORPS a, a, a; \
	VXORPS b, b, b; \
	VXORPS c, c, c; \
	VXORPS d, d, d; \
	VXORPS e, e, e; \
	VXORPS f, f, f

// STOREROW writes the sixteen sums of a row, and goes on to the next one.
#define STOREROW(a, b) \
	VMOVUPS a, (AX);   \
	VMOVUPS b, 32(AX); \
	ADDQ    R14, AX

#define FLOATROW(mem, t, a, b) \
	VBROADCASTSS mem, t;        \
	VFMADD231PS  Y12, t, a;     \
	VFMADD231PS  Y13, t, b

// func productFloatsAVX2(y *float32, yStride int, x *float32, xStride int, panel *float32, n int)
//
// It computes the tile in quarters of 6 by 16: R10 has the quarters left, R11 the
// inputs, R12 the panel, R13 the rows of the next one.
TEXT ·productFloatsAVX2(SB), NOSPLIT, $0-48
	LOAD
	MOVQ SI, R13
	MOVQ DI, R12
	MOVQ CX, R11
	MOVQ $4, R10

quarter:
	MOVQ R13, SI
	MOVQ R12, DI
	MOVQ R11, CX
	LEAQ (SI)(DX*2), R8
	ADDQ DX, R8
	CLEAR6(Y0, Y1, Y2, Y3, Y4, Y5)
	CLEAR6(Y6, Y7, Y8, Y9, Y10, Y11)
	TESTQ CX, CX
	JZ    done

one:
	PREFETCHT0 8192(DI)
	VMOVUPS (DI), Y12
	VMOVUPS 32(DI), Y13
	FLOATROW((SI), Y14, Y0, Y1)
	FLOATROW((SI)(DX*1), Y15, Y2, Y3)
	FLOATROW((SI)(DX*2), Y14, Y4, Y5)
	FLOATROW((R8), Y15, Y6, Y7)
	FLOATROW((R8)(DX*1), Y14, Y8, Y9)
	FLOATROW((R8)(DX*2), Y15, Y10, Y11)
	ADDQ    $4, SI
	ADDQ    $4, R8
	ADDQ    $128, DI
	DECQ    CX
	JNZ     one

done:
	STOREROW(Y0, Y1)
	STOREROW(Y2, Y3)
	STOREROW(Y4, Y5)
	STOREROW(Y6, Y7)
	STOREROW(Y8, Y9)
	STOREROW(Y10, Y11)
	DECQ  R10
	JZ    end
	LEAQ  (R14)(R14*2), BX
	SUBQ  BX, AX
	SUBQ  BX, AX
	ADDQ  $64, AX
	ADDQ  $64, R12
	TESTQ $1, R10
	JNZ   quarter
	LEAQ  -128(AX)(BX*2), AX
	SUBQ  $128, R12
	LEAQ  (R13)(DX*4), R13
	LEAQ  (R13)(DX*2), R13
	JMP   quarter

end:
	VZEROUPPER
	RET

#define INTROW(mem, t, a, b) \
	VPBROADCASTD mem, t;     \
	VPMADDWD Y12, t, Y15;    \
	VPADDD   Y15, a, a;      \
	VPMADDWD Y13, t, t;      \
	VPADDD   t, b, b

// func productIntsAVX2(y *int32, yStride int, x *int16, xStride int, panel *int8, n int)
TEXT ·productIntsAVX2(SB), NOSPLIT, $0-48
	LOAD
	MOVQ SI, R13
	MOVQ DI, R12
	MOVQ CX, R11
	MOVQ $4, R10

quarter:
	MOVQ R13, SI
	MOVQ R12, DI
	MOVQ R11, CX
	LEAQ (SI)(DX*2), R8
	ADDQ DX, R8
	CLEAR6(Y0, Y1, Y2, Y3, Y4, Y5)
	CLEAR6(Y6, Y7, Y8, Y9, Y10, Y11)
	TESTQ CX, CX
	JZ    done

two:
	PREFETCHT0 8192(DI)
	VPMOVSXBW (DI), Y12
	VPMOVSXBW 16(DI), Y13
	INTROW((SI), Y14, Y0, Y1)
	INTROW((SI)(DX*1), Y14, Y2, Y3)
	INTROW((SI)(DX*2), Y14, Y4, Y5)
	INTROW((R8), Y14, Y6, Y7)
	INTROW((R8)(DX*1), Y14, Y8, Y9)
	INTROW((R8)(DX*2), Y14, Y10, Y11)
	ADDQ      $4, SI
	ADDQ      $4, R8
	ADDQ      $64, DI
	SUBQ      $2, CX
	JNZ       two

done:
	STOREROW(Y0, Y1)
	STOREROW(Y2, Y3)
	STOREROW(Y4, Y5)
	STOREROW(Y6, Y7)
	STOREROW(Y8, Y9)
	STOREROW(Y10, Y11)
	DECQ  R10
	JZ    end
	LEAQ  (R14)(R14*2), BX
	SUBQ  BX, AX
	SUBQ  BX, AX
	ADDQ  $64, AX
	ADDQ  $32, R12
	TESTQ $1, R10
	JNZ   quarter
	LEAQ  -128(AX)(BX*2), AX
	SUBQ  $64, R12
	LEAQ  (R13)(DX*4), R13
	LEAQ  (R13)(DX*2), R13
	JMP   quarter

end:
	VZEROUPPER
	RET
