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
