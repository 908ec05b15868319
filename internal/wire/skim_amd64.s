#include "textflag.h"

// func skimAVX2(data []byte, i int) (next int, odd bool)
//
// Y0 is 32 quotes, Y1 32 backslashes, Y2 the least of the bytes passed over in each
// of 32 columns, Y3 their disjunction. A quote ends the string unless the byte
// before it is a backslash and the one before that is not.
TEXT ·skimAVX2(SB), NOSPLIT, $0-41
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
	VPCMPEQB     Y2, Y2, Y2
	VPXOR        Y3, Y3, Y3

loop:
	CMPQ     AX, CX
	JGT      done
	VMOVDQU  (SI)(AX*1), Y4
	VMOVDQU  32(SI)(AX*1), Y5
	VPCMPEQB -1(SI)(AX*1), Y1, Y6
	VPCMPEQB -2(SI)(AX*1), Y1, Y7
	VPCMPEQB 31(SI)(AX*1), Y1, Y8
	VPCMPEQB 30(SI)(AX*1), Y1, Y9
	VPANDN   Y6, Y7, Y6            // escaped: behind one backslash
	VPANDN   Y8, Y9, Y8
	VPCMPEQB Y4, Y0, Y7
	VPCMPEQB Y5, Y0, Y9
	VPANDN   Y7, Y6, Y7            // quotes that are not
	VPANDN   Y9, Y8, Y9
	VPOR     Y7, Y9, Y9
	VPTEST   Y9, Y9
	JNZ      done
	VPMINUB  Y4, Y2, Y2
	VPMINUB  Y5, Y2, Y2
	VPOR     Y4, Y3, Y3
	VPOR     Y5, Y3, Y3
	ADDQ     $64, AX
	JMP      loop

done:
	MOVL         $0x20, DX
	MOVQ         DX, X4
	VPBROADCASTB X4, Y4
	VPMAXUB      Y2, Y4, Y4        // Y2 itself, if no byte is below 0x20
	VPCMPEQB     Y2, Y4, Y4
	VPMOVMSKB    Y4, DX
	NOTL         DX
	VPMOVMSKB    Y3, BX
	ORL          BX, DX
	SETNE        odd+40(FP)
	MOVQ         AX, next+32(FP)
	VZEROUPPER
	RET

// Which of two bits a byte has by its lower half and by its upper half: both have one
// in common if it is one of "\/bfnrt.
DATA lowHalves<>+0(SB)/8, $0x00040008000d0000
DATA lowHalves<>+8(SB)/8, $0x0104000200000000
GLOBL lowHalves<>(SB), RODATA|NOPTR, $16
DATA highHalves<>+0(SB)/8, $0x0804020000010000
DATA highHalves<>+8(SB)/8, $0
GLOBL highHalves<>(SB), RODATA|NOPTR, $16

// func skipEscapesAVX2(text []byte, i int) (next int)
//
// Y1 is 32 backslashes, Y2 32 masks of a lower half, Y3 zero, Y4 and Y5 the tables. A
// byte behind just one backslash has to be in the tables; one behind three or more may
// be escaped or not, which is left to who asks.
TEXT ·skipEscapesAVX2(SB), NOSPLIT, $0-40
	MOVQ text_base+0(FP), SI
	MOVQ text_len+8(FP), CX
	MOVQ i+24(FP), AX
	SUBQ $64, CX

	MOVL           $0x5c, DX
	MOVQ           DX, X1
	VPBROADCASTB   X1, Y1
	MOVL           $0x0f, DX
	MOVQ           DX, X2
	VPBROADCASTB   X2, Y2
	VPXOR          Y3, Y3, Y3
	VBROADCASTI128 lowHalves<>(SB), Y4
	VBROADCASTI128 highHalves<>(SB), Y5

loop:
	CMPQ     AX, CX
	JGT      done
	VPCMPEQB -1(SI)(AX*1), Y1, Y6
	VPCMPEQB 31(SI)(AX*1), Y1, Y7
	VPOR     Y6, Y7, Y8
	VPTEST   Y8, Y8
	JZ       next
	VPCMPEQB -2(SI)(AX*1), Y1, Y8
	VPCMPEQB 30(SI)(AX*1), Y1, Y9
	VPCMPEQB -3(SI)(AX*1), Y1, Y10
	VPCMPEQB 29(SI)(AX*1), Y1, Y11
	VPAND    Y8, Y10, Y10
	VPAND    Y6, Y10, Y10          // behind three
	VPAND    Y9, Y11, Y11
	VPAND    Y7, Y11, Y11
	VPOR     Y10, Y11, Y10
	VPANDN   Y6, Y8, Y6            // behind just one
	VPANDN   Y7, Y9, Y7
	VMOVDQU  (SI)(AX*1), Y8
	VMOVDQU  32(SI)(AX*1), Y9
	VPSHUFB  Y8, Y4, Y11
	VPSRLW   $4, Y8, Y8
	VPAND    Y2, Y8, Y8
	VPSHUFB  Y8, Y5, Y8
	VPAND    Y8, Y11, Y8
	VPCMPEQB Y3, Y8, Y8            // not in the tables
	VPAND    Y6, Y8, Y8
	VPSHUFB  Y9, Y4, Y11
	VPSRLW   $4, Y9, Y9
	VPAND    Y2, Y9, Y9
	VPSHUFB  Y9, Y5, Y9
	VPAND    Y9, Y11, Y9
	VPCMPEQB Y3, Y9, Y9
	VPAND    Y7, Y9, Y9
	VPOR     Y8, Y10, Y10
	VPOR     Y9, Y10, Y10
	VPTEST   Y10, Y10
	JNZ      done

next:
	ADDQ $64, AX
	JMP  loop

done:
	MOVQ AX, next+32(FP)
	VZEROUPPER
	RET
