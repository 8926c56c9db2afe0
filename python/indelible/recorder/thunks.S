/* What shim.py puts calls to in front of instructions: each keeps every register. The flags and
 * %rdi, which has the address, are kept by the caller. The function gets the address, the bytes,
 * and a `struct from`. */

	.text

	.macro	thunk	name, function, bytes, times
	.globl	\name
	.type	\name, @function
\name:
	pushq	%rbp
	movq	%rsp, %rbp
	pushq	%rax
	pushq	%rcx
	pushq	%rdx
	pushq	%rsi
	pushq	%r8
	pushq	%r9
	pushq	%r10
	pushq	%r11
	andq	$-16, %rsp
	cld
	.ifb	\times
	movl	$\bytes, %esi
	.else
	imulq	$\bytes, \times, %rsi
	.endif
	/* The instruction, and the frame of its function. */
	movq	8(%rbp), %rdx
	movq	(%rbp), %rcx
	call	\function
	leaq	-64(%rbp), %rsp
	popq	%r11
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rsi
	popq	%rdx
	popq	%rcx
	popq	%rax
	popq	%rbp
	ret
	.size	\name, .-\name
	.endm

	thunk	indelible_flush, recorder_flushes, 1
	thunk	indelible_flush_in_order, recorder_flushes_in_order, 1
	thunk	indelible_fence, recorder_fences, 0

	.irp	bytes, 4, 8, 16, 32, 64
	thunk	indelible_stream\bytes, recorder_will_stream, \bytes
	.endr

	.irp	bytes, 1, 2, 4, 8, 16, 32, 64
	thunk	indelible_store\bytes, recorder_will_store, \bytes
	.endr

	.irp	bytes, 8, 16, 32, 64
	thunk	indelible_mask\bytes, recorder_will_mask, \bytes
	.endr

	.irp	bytes, 8, 16
	thunk	indelible_mask_stream\bytes, recorder_will_mask_stream, \bytes
	.endr

	thunk	indelible_half8, recorder_will_half, 8

	.irp	bytes, 1, 2, 4, 8, 16
	thunk	indelible_lock\bytes, recorder_will_lock, \bytes
	.endr

	.irp	bytes, 1, 2, 4, 8
	thunk	indelible_string\bytes, recorder_will_store, \bytes, %rcx
	.endr

	.section	.note.GNU-stack, "", @progbits
