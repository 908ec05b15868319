#include "textflag.h"

// func skipToQuoteAVX2(data []byte, i int) (next int)
//
// Y0 is 32 quotes, Y1 32 backslashes. A quote ends the string unless the byte before it
// is a backslash and the one before that is not.
TEXT ·skipToQuoteAVX2(SB), NOSPLIT, $0-40
	MOVQ data_base+0(FP), SI
	MOVQ data_len+8(FP), CX
	MOVQ i+24(FP), AX
	SUBQ $64, CX

	MOVL         $0x22, DX
	MOVQ         DX, X0
	VPBROADCASTB X0, Y0
	MOVL         $0x5c, DX
	MOVQ         DX, X1
	VPBROADCASTB X1, Y1

loop:
	CMPQ     AX, CX
	JGT      done
	VMOVDQU  (SI)(AX*1), Y4
	VMOVDQU  32(SI)(AX*1), Y5
	VPCMPEQB -1(SI)(AX*1), Y1, Y6
	VPCMPEQB -2(SI)(AX*1), Y1, Y7
	VPCMPEQB 31(SI)(AX*1), Y1, Y8
	VPCMPEQB 30(SI)(AX*1), Y1, Y9
	VPANDN   Y6, Y7, Y6            // escaped: after one backslash
	VPANDN   Y8, Y9, Y8
	VPCMPEQB Y4, Y0, Y7
	VPCMPEQB Y5, Y0, Y9
	VPANDN   Y7, Y6, Y7            // quotes that are not
	VPANDN   Y9, Y8, Y9
	VPOR     Y7, Y9, Y9
	VPTEST   Y9, Y9
	JNZ      done
	ADDQ     $64, AX
	JMP      loop

done:
	MOVQ AX, next+32(FP)
	VZEROUPPER
	RET

// The valid bytes after a backslash, except quotes, r and u, indexed by their lower half.
// Entries for other halves equal no byte that is looked up there.
DATA escapes<>+0(SB)/8, $0xff66ff74ff62ffff
DATA escapes<>+8(SB)/8, $0x2f6eff5cffffffff
GLOBL escapes<>(SB), RODATA|NOPTR, $16

// The same without the backslash.
DATA single<>+0(SB)/8, $0xff66ff74ff62ffff
DATA single<>+8(SB)/8, $0x2f6effffffffffff
GLOBL single<>(SB), RODATA|NOPTR, $16

// "\ru, 0x20 and 0x7f, 'a' and '0', and the widths of the letters' and the digits' ranges.
DATA bytes<>+0(SB)/8, $0x30617f2075725c22
DATA bytes<>+8(SB)/8, $0x0905
GLOBL bytes<>(SB), RODATA|NOPTR, $16

// MASK sets bit n of d if byte n of the 64 in a and b is 0xff. It uses R11.
#define MASK(a, b, d) \
	VPMOVMSKB a, d;    \
	VPMOVMSKB b, R11;  \
	SHLQ      $32, R11; \
	ORQ       R11, d

// HEX sets the bytes of d to 0xff that are hexadecimal digits in x: those at most 9 above
// '0', or in small letters at most 5 above 'a'. It uses Y9 and Y10.
#define HEX(x, d) \
	VPBROADCASTB bytes<>+7(SB), Y9;  \
	VPSUBB       Y9, x, Y9;          \
	VPBROADCASTB bytes<>+9(SB), Y10; \
	VPMINUB      Y10, Y9, Y10;       \
	VPCMPEQB     Y9, Y10, d;         \
	VPBROADCASTB bytes<>+4(SB), Y9;  \
	VPOR         Y9, x, Y9;          \
	VPBROADCASTB bytes<>+6(SB), Y10; \
	VPSUBB       Y10, Y9, Y9;        \
	VPBROADCASTB bytes<>+8(SB), Y10; \
	VPMINUB      Y10, Y9, Y10;       \
	VPCMPEQB     Y9, Y10, Y9;        \
	VPOR         Y9, d, d

// func skipValidAVX2(data []byte, i int) (next int, odd bool)
//
// There are three loops, each of 64 bytes at a time. plain is for text without escapes.
// loop is for text whose escapes have two bytes and are none of a backslash, so that a
// byte is escaped if it follows a backslash. slow is for the rest, and for the first bytes.
//
// Y0 is 32 quotes, Y1 32 backslashes, Y2 32 times r, Y3 and Y11 the tables, Y4 the least of
// the bytes so far in each of 32 columns, as signed numbers, so that bytes outside ASCII
// are negative. R9 has every second bit set. R8 is 1 in slow if the byte at AX is escaped.
// Of the 64 bytes at AX, in Y5 and Y6, R10 has the backslashes in slow, R12 the quotes, DI
// the escaped bytes, R13 those of them that do not end an escape of two bytes. In loop R10
// is the offset where plain is tried again.
TEXT ·skipValidAVX2(SB), NOSPLIT, $0-41
	MOVQ data_base+0(FP), SI
	MOVQ data_len+8(FP), CX
	MOVQ i+24(FP), AX
	SUBQ $64, CX
	XORL R8, R8
	MOVQ $0xaaaaaaaaaaaaaaaa, R9

	VPBROADCASTB   bytes<>+0(SB), Y0
	VPBROADCASTB   bytes<>+1(SB), Y1
	VPBROADCASTB   bytes<>+2(SB), Y2
	VBROADCASTI128 escapes<>(SB), Y3
	VBROADCASTI128 single<>(SB), Y11
	VPBROADCASTB   bytes<>+5(SB), Y4
	JMP            slow

plain:
	CMPQ     AX, CX
	JGT      short
	VMOVDQU  (SI)(AX*1), Y5
	VMOVDQU  32(SI)(AX*1), Y6
	VPCMPEQB Y5, Y1, Y7
	VPCMPEQB Y6, Y1, Y8
	VPCMPEQB Y5, Y0, Y9
	VPCMPEQB Y6, Y0, Y10
	VPOR     Y7, Y8, Y7
	VPOR     Y9, Y10, Y9
	VPOR     Y7, Y9, Y7
	VPTEST   Y7, Y7
	JNZ      escapes
	VPMINSB  Y5, Y4, Y4
	VPMINSB  Y6, Y4, Y4
	ADDQ     $64, AX
	JMP      plain

escapes:
	LEAQ 256(AX), R10 // where there is one escape, others follow

loop:
	CMPQ     AX, CX
	JGT      short
	VMOVDQU  (SI)(AX*1), Y5
	VMOVDQU  32(SI)(AX*1), Y6
	VPCMPEQB -1(SI)(AX*1), Y1, Y7
	VPCMPEQB 31(SI)(AX*1), Y1, Y8
	VPCMPEQB Y5, Y0, Y9
	VPCMPEQB Y6, Y0, Y10
	VPXOR    Y7, Y9, Y7            // a quote or escaped, but not both
	VPXOR    Y8, Y10, Y8
	VPSHUFB  Y5, Y11, Y9
	VPSHUFB  Y6, Y11, Y10
	VPCMPEQB Y5, Y9, Y9
	VPCMPEQB Y6, Y10, Y10
	VPCMPEQB Y5, Y2, Y12
	VPCMPEQB Y6, Y2, Y13
	VPOR     Y9, Y12, Y9
	VPOR     Y10, Y13, Y10
	VPANDN   Y7, Y9, Y7            // and not one that may be escaped
	VPANDN   Y8, Y10, Y8
	VPOR     Y7, Y8, Y7
	VPTEST   Y7, Y7
	JNZ      trouble
	VPMINSB  Y5, Y4, Y4
	VPMINSB  Y6, Y4, Y4
	ADDQ     $64, AX
	CMPQ     AX, R10
	JLT      loop
	CMPB     -1(SI)(AX*1), $0x5c
	JNE      plain
	JMP      escapes

trouble:
	XORL  R8, R8
	CMPB  -1(SI)(AX*1), $0x5c
	SETEQ R8

slow:
	CMPQ     AX, CX
	JGT      done
	VMOVDQU  (SI)(AX*1), Y5
	VMOVDQU  32(SI)(AX*1), Y6
	VPCMPEQB Y5, Y1, Y7
	VPCMPEQB Y6, Y1, Y8
	MASK(Y7, Y8, R10)
	VPCMPEQB Y5, Y0, Y7
	VPCMPEQB Y6, Y0, Y8
	MASK(Y7, Y8, R12)
	VPSHUFB  Y5, Y3, Y7
	VPSHUFB  Y6, Y3, Y8
	VPCMPEQB Y5, Y7, Y7
	VPCMPEQB Y6, Y8, Y8
	VPCMPEQB Y5, Y2, Y9
	VPCMPEQB Y6, Y2, Y10
	VPOR     Y7, Y9, Y7
	VPOR     Y8, Y10, Y8
	MASK(Y7, Y8, R13)

	// Every second backslash of a run is escaped. Subtracting the first bit of each run from
	// the bits of one parity inverts the bits from there to the end of the run.
	MOVQ R8, DX
	NOTQ DX
	ANDQ R10, DX
	LEAQ (DX)(DX*1), BX
	ORQ  R9, BX
	SUBQ DX, BX
	XORQ R9, BX
	MOVQ R10, DI
	ORQ  R8, DI
	XORQ BX, DI
	ANDQ R10, BX // the backslashes that escape

	MOVQ DI, DX
	NOTQ DX
	ANDQ R12, DX
	JNZ  done     // not a u either
	ORQ  R12, R13
	NOTQ R13
	ANDQ DI, R13
	JNZ  unicode

	VPMINSB Y5, Y4, Y4
	VPMINSB Y6, Y4, Y4
	ADDQ    $64, AX
	SHRQ    $63, BX
	MOVQ    BX, R8
	TESTQ   DI, R10
	JNZ     slow       // a backslash is escaped, perhaps the last byte
	JMP     escapes

unicode:
	VPBROADCASTB bytes<>+3(SB), Y7
	VPCMPEQB     Y5, Y7, Y8
	VPCMPEQB     Y6, Y7, Y9
	MASK(Y8, Y9, DX)
	NOTQ         DX
	ANDQ         R13, DX
	JNZ          done              // not a u either
	HEX(Y5, Y7)
	HEX(Y6, Y8)
	MASK(Y7, Y8, DX)
	LEAQ         (R13)(R13*1), R11
	LEAQ         (R11)(R11*1), R12
	ORQ          R12, R11
	LEAQ         (R11*4), R12
	ORQ          R12, R11          // the four bytes after each u
	NOTQ         DX
	ANDQ         R11, DX
	JNZ          done
	VPMINSB      Y5, Y4, Y4
	VPMINSB      Y6, Y4, Y4
	SHRQ         $60, R13
	JNZ          again
	ADDQ         $64, AX
	SHRQ         $63, BX
	MOVQ         BX, R8
	JMP          slow

again:
	BSFQ R13, R13          // the last escape goes on: begin again with it
	LEAQ 59(AX)(R13*1), AX
	XORL R8, R8
	JMP  slow

short:
	XORL  R8, R8
	CMPB  -1(SI)(AX*1), $0x5c
	SETEQ R8

done:
	SUBQ         R8, AX            // back to the backslash of an incomplete escape
	VPBROADCASTB bytes<>+4(SB), Y5
	VPCMPGTB     Y4, Y5, Y5
	VPMOVMSKB    Y5, DX
	TESTL        DX, DX
	SETNE        odd+40(FP)
	MOVQ         AX, next+32(FP)
	VZEROUPPER
	RET
