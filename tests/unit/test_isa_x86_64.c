/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "insn_text.h"
#include "isa/insn.h"

#include <Zydis/Zydis.h>
#include <elf.h>
#include <stdlib.h>

static const uint64_t address = 0x400000;

/* clang-format off */
static const struct {
	const char *code;
	uint8_t length;
	const char *text;
	const char *expected;
} golden[] = {
	{"\x55", 1, "push %rbp", "other; rsp = rsp-8; [rsp+0] = rbp"},
	{"\x41\x57", 2, "push %r15", "other; rsp = rsp-8; [rsp+0] = r15"},
	{"\x54", 1, "push %rsp", "other; [rsp-8] = rsp; rsp = rsp-8"},
	{"\x6a\x01", 2, "pushq $1", "other; rsp = rsp-8; [rsp+0] = ?"},
	{"\x68\x45\x23\x01\x00", 5, "pushq $0x12345", "other; rsp = rsp-8; [rsp+0] = ?"},
	{"\xff\x70\x08", 3, "pushq 8(%rax)", "other; rsp = rsp-8; [rsp+0] = ?"},
	{"\x9c", 1, "pushfq", "other; rsp = rsp-8; [rsp+0] = ?"},
	{"\x9d", 1, "popfq", "other; rsp = rsp+8"},
	{"\x66\x50", 2, "pushw %ax", "other writes rsp"},
	{"\x5d", 1, "pop %rbp", "other; rbp = [rsp+0]; rsp = rsp+8"},
	{"\x41\x5c", 2, "pop %r12", "other; r12 = [rsp+0]; rsp = rsp+8"},
	{"\x5c", 1, "pop %rsp", "other; rsp = [rsp+0]"},
	{"\x8f\x44\x24\x08", 4, "popq 8(%rsp)", "other; rsp = rsp+8; [rsp+8] = ?"},
	{"\xc9", 1, "leave", "other; rsp = rbp+0; rbp = [rsp+0]; rsp = rsp+8"},
	{"\xc8\x20\x00\x00", 4, "enter $32, $0", "other; rsp = rsp-8; [rsp+0] = rbp; rbp = rsp+0; rsp = rsp-32"},
	{"\xc8\x20\x00\x01", 4, "enter $32, $1", "other writes rbp rsp"},
	{"\x48\x89\xe5", 3, "mov %rsp, %rbp", "other; rbp = rsp+0"},
	{"\x48\x89\xec", 3, "mov %rbp, %rsp", "other; rsp = rbp+0"},
	{"\x4c\x89\xe7", 3, "mov %r12, %rdi", "other; rdi = r12+0"},
	{"\x89\xe5", 2, "mov %esp, %ebp", "other writes rbp"},
	{"\x48\x89\x5d\xf8", 4, "mov %rbx, -8(%rbp)", "other; [rbp-8] = rbx"},
	{"\x4c\x89\xac\x24\x00\x01\x00\x00", 8, "mov %r13, 0x100(%rsp)", "other; [rsp+256] = r13"},
	{"\x48\x8b\x5d\xf8", 4, "mov -8(%rbp), %rbx", "other; rbx = [rbp-8]"},
	{"\x48\x8b\x04\x24", 4, "mov (%rsp), %rax", "other; rax = [rsp+0]"},
	{"\x49\x8b\x45\x00", 4, "mov (%r13), %rax", "other; rax = [r13+0]"},
	{"\x49\x8b\x04\x24", 4, "mov (%r12), %rax", "other; rax = [r12+0]"},
	{"\x48\x8b\x54\x48\x08", 5, "mov 8(%rax,%rcx,2), %rdx", "other writes rdx"},
	{"\x48\x89\x54\x48\x08", 5, "mov %rdx, 8(%rax,%rcx,2)", "other"},
	{"\x64\x48\x8b\x04\x25\x28\x00\x00\x00", 9, "mov %fs:0x28, %rax", "other writes rax"},
	{"\x64\x48\x89\x43\x08", 5, "mov %rax, %fs:8(%rbx)", "other"},
	{"\x89\x44\x24\x08", 4, "mov %eax, 8(%rsp)", "other"},
	{"\x8b\x44\x24\x08", 4, "mov 8(%rsp), %eax", "other writes rax"},
	{"\x48\xc7\x44\x24\x08\x01\x00\x00\x00", 9, "movq $1, 8(%rsp)", "other; [rsp+8] = ?"},
	{"\xc7\x44\x24\x08\x01\x00\x00\x00", 8, "movl $1, 8(%rsp)", "other"},
	{"\xb8\x05\x00\x00\x00", 5, "mov $5, %eax", "other; rax = 5"},
	{"\xb8\xff\xff\xff\xff", 5, "mov $-1, %eax", "other; rax = ffffffff"},
	{"\x48\xc7\xc0\xff\xff\xff\xff", 7, "mov $-1, %rax", "other; rax = ffffffffffffffff"},
	{"\x49\xba\xf0\xde\xbc\x9a\x78\x56\x34\x12", 10, "movabs $0x123456789abcdef0, %r10", "other; r10 = 123456789abcdef0"},
	{"\x66\xb8\x05\x00", 4, "mov $5, %ax", "other writes rax"},
	{"\xb4\x05", 2, "mov $5, %ah", "other writes rax"},
	{"\x40\xb6\x05", 3, "mov $5, %sil", "other writes rsi"},
	{"\xb6\x05", 2, "mov $5, %dh", "other writes rdx"},
	{"\x48\x83\xec\x28", 4, "sub $40, %rsp", "other; rsp = rsp-40"},
	{"\x48\x81\xec\x00\x10\x00\x00", 7, "sub $0x1000, %rsp", "other; rsp = rsp-4096"},
	{"\x48\x83\xc4\x80", 4, "add $-128, %rsp", "other; rsp = rsp-128"},
	{"\x48\x05\x45\x23\x01\x00", 6, "add $0x12345, %rax", "other; rax = rax+74565"},
	{"\x48\x83\xfc\x08", 4, "cmp $8, %rsp", "other"},
	{"\x83\xec\x08", 3, "sub $8, %esp", "other writes rsp"},
	{"\x48\x83\x44\x24\x08\x01", 6, "addq $1, 8(%rsp)", "other; [rsp+8] = ?"},
	{"\x83\x44\x24\x08\x01", 5, "addl $1, 8(%rsp)", "other"},
	{"\x48\xff\xc1", 3, "inc %rcx", "other; rcx = rcx+1"},
	{"\x49\xff\xc9", 3, "dec %r9", "other; r9 = r9-1"},
	{"\xff\xc9", 2, "decl %ecx", "other writes rcx"},
	{"\x48\x83\xe4\xf0", 4, "and $-16, %rsp", "other; rsp = rsp & fffffffffffffff0"},
	{"\x49\x83\xe2\xe0", 4, "and $-32, %r10", "other; r10 = r10 & ffffffffffffffe0"},
	{"\x83\xe0\x0f", 3, "and $15, %eax", "other writes rax"},
	{"\x48\x83\xcc\x08", 4, "or $8, %rsp", "other writes rsp"},
	{"\x4c\x8d\x54\x24\x08", 5, "lea 8(%rsp), %r10", "other; r10 = rsp+8"},
	{"\x48\x8d\x65\xf0", 4, "lea -16(%rbp), %rsp", "other; rsp = rbp-16"},
	{"\x48\x8d\x3d\x00\x01\x00\x00", 7, "lea 0x100(%rip), %rdi", "other refers 400107; rdi = 400107"},
	{"\x48\x8d\x0c\xd8", 4, "lea (%rax,%rbx,8), %rcx", "other writes rcx"},
	{"\x8d\x48\x04", 3, "lea 4(%rax), %ecx", "other writes rcx"},
	{"\x48\x01\xd0", 3, "add %rdx, %rax", "other; rax = rax + rdx"},
	{"\x48\x03\x42\x08", 4, "add 8(%rdx), %rax", "other writes rax"},
	{"\x48\x29\xc4", 3, "sub %rax, %rsp", "other; rsp = rsp - rax"},
	{"\x29\xc1", 2, "sub %eax, %ecx", "other writes rcx"},
	{"\x31\xc0", 2, "xor %eax, %eax", "other; rax = 0"},
	{"\x4d\x31\xc9", 3, "xor %r9, %r9", "other; r9 = 0"},
	{"\x31\xc1", 2, "xor %eax, %ecx", "other writes rcx"},
	{"\x66\x31\xc0", 3, "xor %ax, %ax", "other writes rax"},
	{"\x48\x93", 2, "xchg %rax, %rbx", "other writes rax rbx"},
	{"\x49\x90", 2, "xchg %r8, %rax", "other writes rax r8"},
	{"\x48\x87\xca", 3, "xchg %rcx, %rdx", "other writes rdx rcx"},
	{"\x48\x87\x44\x24\x08", 5, "xchg %rax, 8(%rsp)", "other writes rax; [rsp+8] = ?"},
	{"\x66\x90", 2, "xchg %ax, %ax", "nop"},
	{"\x90", 1, "nop", "nop"},
	{"\x66\x0f\x1f\x04\x00", 5, "nopw 0(%rax,%rax,1)", "nop"},
	{"\x66\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00", 11, "data16 cs nopw 0(%rax,%rax,1)", "nop"},
	{"\xf3\x90", 2, "pause", "other"},
	{"\xf3\x0f\x1e\xfa", 4, "endbr64", "other"},
	{"\x48\x85\xc0", 3, "test %rax, %rax", "other"},
	{"\x48\x0f\xaf\xc8", 4, "imul %rax, %rcx", "other writes rcx"},
	{"\x48\x6b\xc8\x03", 4, "imul $3, %rax, %rcx", "other writes rcx"},
	{"\x48\xf7\xe9", 3, "imul %rcx", "other writes rax rdx"},
	{"\xf6\xe1", 2, "mul %cl", "other writes rax"},
	{"\x48\xf7\xf1", 3, "div %rcx", "other writes rax rdx"},
	{"\x48\xf7\xd9", 3, "neg %rcx", "other writes rcx"},
	{"\x48\xf7\xd1", 3, "not %rcx", "other writes rcx"},
	{"\x48\xf7\xc1\x01\x00\x00\x00", 7, "testq $1, %rcx", "other"},
	{"\x48\xc1\xe1\x03", 4, "shl $3, %rcx", "other writes rcx"},
	{"\x49\xd3\xe8", 3, "shr %cl, %r8", "other writes r8"},
	{"\x48\x99", 2, "cqto", "other writes rdx"},
	{"\x48\x98", 2, "cltq", "other writes rax"},
	{"\x48\x0f\x44\xc8", 4, "cmove %rax, %rcx", "other writes rcx"},
	{"\x0f\x94\xc0", 3, "sete %al", "other writes rax"},
	{"\x40\x0f\x94\xc7", 4, "sete %dil", "other writes rdi"},
	{"\x0f\x95\xc7", 3, "setne %bh", "other writes rbx"},
	{"\x0f\x94\x44\x24\x08", 5, "sete 8(%rsp)", "other"},
	{"\x0f\xb6\xc8", 3, "movzbl %al, %ecx", "other writes rcx"},
	{"\x48\x63\xc8", 3, "movslq %eax, %rcx", "other writes rcx"},
	{"\x49\x0f\xc9", 3, "bswap %r9", "other writes r9"},
	{"\x48\x0f\xba\xe0\x03", 5, "bt $3, %rax", "other"},
	{"\x48\x0f\xba\xe8\x03", 5, "bts $3, %rax", "other writes rax"},
	{"\x48\x0f\xab\xc8", 4, "bts %rcx, %rax", "other writes rax"},
	{"\xf3\x48\x0f\xb8\xc8", 5, "popcnt %rax, %rcx", "other writes rcx"},
	{"\xf3\x48\x0f\xbc\xc8", 5, "tzcnt %rax, %rcx", "other writes rcx"},
	{"\x48\x0f\xbd\xc8", 4, "bsr %rax, %rcx", "other writes rcx"},
	{"\x48\x0f\xa4\xc1\x03", 5, "shld $3, %rax, %rcx", "other writes rcx"},
	{"\x48\x0f\xc1\xc1", 4, "xadd %rax, %rcx", "other writes rax rcx"},
	{"\x48\x0f\xb1\xd1", 4, "cmpxchg %rdx, %rcx", "other writes rax rcx"},
	{"\xf0\x48\x0f\xb1\x11", 5, "lock cmpxchg %rdx, (%rcx)", "other writes rax; [rcx+0] = ?"},
	{"\xf0\x48\x0f\xc7\x0f", 5, "lock cmpxchg16b (%rdi)", "other writes rax rdx"},
	{"\x0f\xa2", 2, "cpuid", "other writes rax rdx rcx rbx"},
	{"\x0f\x31", 2, "rdtsc", "other writes rax rdx"},
	{"\x0f\x01\xf9", 3, "rdtscp", "other writes rax rdx rcx"},
	{"\x0f\x01\xd0", 3, "xgetbv", "other writes rax rdx"},
	{"\x9f", 1, "lahf", "other writes rax"},
	{"\xf3\x48\xab", 3, "rep stosq", "other writes rcx rdi"},
	{"\xf3\xa4", 2, "rep movsb", "other writes rcx rsi rdi"},
	{"\xf2\xae", 2, "repne scasb", "other writes rcx rdi"},
	{"\xac", 1, "lodsb", "other writes rax rsi"},
	{"\x0f\x05", 2, "syscall", "syscall writes rax rcx r11"},
	{"\xcd\x80", 2, "int $0x80", "syscall writes rax"},
	{"\xcc", 1, "int3", "trap"},
	{"\x0f\x0b", 2, "ud2", "trap"},
	{"\x0f\xb9\xc8", 3, "ud1 %eax, %ecx", "trap"},
	{"\xf4", 1, "hlt", "trap"},
	{"\xc3", 1, "ret", "return"},
	{"\xc2\x10\x00", 3, "ret $16", "return"},
	{"\xf3\xc3", 2, "rep ret", "return"},
	{"\x48\xcb", 2, "lretq", "return"},
	{"\x48\xcf", 2, "iretq", "return"},
	{"\xe8\x00\x01\x00\x00", 5, "call .+0x105", "call ->400105"},
	{"\xf2\xe8\x00\x01\x00\x00", 6, "bnd call .+0x106", "call ->400106"},
	{"\xeb\x0e", 2, "jmp .+0x10", "jump ->400010"},
	{"\xe9\xfb\x0f\x00\x00", 5, "jmp .+0x1000", "jump ->401000"},
	{"\xeb\xee", 2, "jmp .-0x10", "jump ->3ffff0"},
	{"\x74\x0e", 2, "je .+0x10", "branch ->400010"},
	{"\x0f\x85\xfa\x0f\x00\x00", 6, "jne .+0x1000", "branch ->401000"},
	{"\xe2\x0e", 2, "loop .+0x10", "branch ->400010 writes rcx"},
	{"\xe3\x0e", 2, "jrcxz .+0x10", "branch ->400010"},
	{"\xff\xd0", 2, "call *%rax", "call* reg rax"},
	{"\x41\xff\xe3", 3, "jmp *%r11", "jump* reg r11"},
	{"\x3e\xff\xe0", 3, "notrack jmp *%rax", "jump* reg rax"},
	{"\xff\x15\x00\x01\x00\x00", 6, "call *0x100(%rip)", "call* ->400106"},
	{"\xff\x25\x00\x01\x00\x00", 6, "jmp *0x100(%rip)", "jump* ->400106"},
	{"\xf2\xff\x25\x00\x01\x00\x00", 7, "bnd jmp *0x100(%rip)", "jump* ->400107"},
	{"\xff\x24\xd0", 3, "jmp *(%rax,%rdx,8)", "jump*"},
	{"\xff\x50\x08", 3, "call *8(%rax)", "call*"},
	{"\x64\xff\x14\x25\x10\x00\x00\x00", 8, "call *%fs:16", "call*"},
	{"\x66\x48\x0f\x7e\xc0", 5, "movq %xmm0, %rax", "other writes rax"},
	{"\x66\x0f\x7e\xc1", 4, "movd %xmm0, %ecx", "other writes rcx"},
	{"\x66\x48\x0f\x6e\xc0", 5, "movq %rax, %xmm0", "other"},
	{"\x66\x0f\xd6\x44\x24\x08", 6, "movq %xmm0, 8(%rsp)", "other; [rsp+8] = ?"},
	{"\x0f\x29\x44\x24\x10", 5, "movaps %xmm0, 16(%rsp)", "other"},
	{"\x0f\x50\xc0", 3, "movmskps %xmm0, %eax", "other writes rax"},
	{"\x66\x0f\xd7\xc8", 4, "pmovmskb %xmm0, %ecx", "other writes rcx"},
	{"\x66\x0f\xc5\xc0\x01", 5, "pextrw $1, %xmm0, %eax", "other writes rax"},
	{"\x66\x48\x0f\x3a\x16\xc0\x01", 7, "pextrq $1, %xmm0, %rax", "other writes rax"},
	{"\xf2\x48\x0f\x2c\xc0", 5, "cvttsd2si %xmm0, %rax", "other writes rax"},
	{"\xf2\x48\x0f\x2a\xc0", 5, "cvtsi2sd %rax, %xmm0", "other"},
	{"\x66\x0f\x2e\xc8", 4, "ucomisd %xmm0, %xmm1", "other"},
	{"\xf2\x0f\x10\x05\x00\x01\x00\x00", 8, "movsd 0x100(%rip), %xmm0", "other refers 400108"},
	{"\x48\x8b\x05\x00\x01\x00\x00", 7, "mov 0x100(%rip), %rax", "other refers 400107 writes rax"},
	{"\xc4\xe2\xe0\xf2\xc8", 5, "andn %rax, %rbx, %rcx", "other writes rcx"},
	{"\xc4\xe2\xf8\xf7\xcb", 5, "bextr %rax, %rbx, %rcx", "other writes rcx"},
	{"\xc4\xe2\xe3\xf6\xc8", 5, "mulx %rax, %rbx, %rcx", "other writes rcx rbx"},
	{"\xc4\xe2\xf9\xf7\xcb", 5, "shlx %rax, %rbx, %rcx", "other writes rcx"},
	{"\xc5\xfc\x50\xc0", 4, "vmovmskps %ymm0, %eax", "other writes rax"},
	{"\xc4\xe1\xf9\x7e\xc0", 5, "vmovq %xmm0, %rax", "other writes rax"},
	{"\xc4\xe3\x79\x14\xc0\x01", 6, "vpextrb $1, %xmm0, %eax", "other writes rax"},
	{"\xc5\xf4\x58\xd0", 4, "vaddps %ymm0, %ymm1, %ymm2", "other"},
	{"\xc4\xe1\xfb\x93\xc1", 5, "kmovq %k1, %rax", "other writes rax"},
	{"\xc5\xf8\x77", 3, "vzeroupper", "other"},
	{"\x48\x0f\x38\xf0\x08", 5, "movbe (%rax), %rcx", "other writes rcx"},
	{"\xf2\x48\x0f\x38\xf1\xc8", 6, "crc32q %rax, %rcx", "other writes rcx"},
	{"\xdf\xe0", 2, "fnstsw %ax", "other writes rax"},
	{"\xdb\x6c\x24\x08", 4, "fldt 8(%rsp)", "other"},
	{"\xf3\x48\x0f\xae\xc0", 5, "rdfsbase %rax", "other writes rax"},
	{"\x48\x0f\xc7\xf0", 4, "rdrand %rax", "other writes rax"},
	{"\xf3\x48\x0f\x1e\xc8", 5, "rdsspq %rax", "other writes rax"},
	{"\xd7", 1, "xlatb", "other writes rax"},
	{"\xa6", 1, "cmpsb", "other writes rsi rdi"},
	{"\xae", 1, "scasb", "other writes rdi"},
	{"\x6c", 1, "insb", "other writes rdi"},
	{"\x6e", 1, "outsb", "other writes rsi"},
	{"\xf3\x6c", 2, "rep insb", "other writes rcx rdi"},
	{"\x66\x0f\x3a\x63\xc8\x01", 6, "pcmpistri $1, %xmm0, %xmm1", "other writes rcx"},
	{"\x0f\x33", 2, "rdpmc", "other writes rax rdx"},
	{"\x0f\x32", 2, "rdmsr", "other writes rax rdx"},
	{"\x0f\x30", 2, "wrmsr", "other"},
	{"\xc7\xf8\x00\x01\x00\x00", 6, "xbegin .+0x106", "branch ->400106 writes rax"},
	{"\x48\x0f\x02\xc8", 4, "lar %ax, %rcx", "other writes rcx"},
	{"\xf3\x0f\xc7\xf8", 4, "rdpid %rax", "other writes rax"},
	{"\x67\xae", 2, "addr32 scasb", "other writes rdi"},
	{"\xc4\xe3\x79\x61\xc8\x01", 6, "vpcmpestri $1, %xmm0, %xmm1", "other writes rcx"},
	{"\x62\xf1\xff\x08\x78\xc0", 6, "vcvttsd2usi %xmm0, %rax", "other writes rax"},
	{"\x66\x48\x0f\x38\xf6\xc8", 6, "adcx %rax, %rcx", "other writes rcx"},
	{"\xc4\xe2\xf0\xf3\xc8", 5, "blsr %rax, %rcx", "other writes rcx"},
	{"\xc4\xe2\xe3\xf5\xc8", 5, "pdep %rax, %rbx, %rcx", "other writes rcx"},
	{"\x67\x48\x8d\x08", 4, "lea (%eax), %rcx", "other writes rcx"},
	{"\xf0\x48\x83\x44\x24\x08\x01", 7, "lock addq $1, 8(%rsp)", "other; [rsp+8] = ?"},
	{"\x0f\x00\xc8", 3, "str %rax", "other writes rax"},
	{"\x0f\x01\x00", 3, "sgdt (%rax)", "other"},
	/* bytes that are no instruction; the length is that of what is skipped */
	{"\x06", 1, "push %es of old", "bad"},
	{"\x0f\xff", 1, "ud0 cut short", "bad"},
	{"\xe8\x00\x00", 1, "call cut short", "bad"},
	{"\x48", 1, "REX alone", "bad"},
	{"\x8d\xc0", 1, "lea of a register", "bad"},
	{"\xf0\x90", 1, "lock nop", "bad"},
	{"\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x90", 1, "too long", "bad"},
};
/* clang-format on */

/* Copies the bytes to where a sanitizer sees any read past them. */
static void decode_exactly(const uint8_t *code, size_t size, struct insn *insn)
{
	uint8_t *copy = malloc(size ? size : 1);
	assert_non_null(copy);
	memcpy(copy, code, size);
	memset(insn, 0xa5, sizeof *insn);
	isa_x86_64.decode(copy, size, address, insn);
	free(copy);
}

static size_t golden_size(size_t i)
{
	static const size_t cut_short[] = {1, 2, 3, 1, 2, 2, 16};
	size_t count = sizeof golden / sizeof golden[0];
	size_t first_bad = count - sizeof cut_short / sizeof cut_short[0];
	return i < first_bad ? golden[i].length : cut_short[i - first_bad];
}

static void decodes_as_the_manual_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
		struct insn insn;
		struct insn_line line;
		decode_exactly((const uint8_t *)golden[i].code, golden_size(i), &insn);
		line = insn_line(&isa_x86_64, &insn);
		if (strcmp(line.text, golden[i].expected))
			fail_msg("%s: got '%s', not '%s'", golden[i].text, line.text,
				 golden[i].expected);
		assert_int_equal(insn.length, golden[i].length);
		assert_int_equal(insn.address, address);
	}
}

static void cut_short_is_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++)
		for (size_t size = 0; size < golden[i].length; size++) {
			struct insn insn;
			decode_exactly((const uint8_t *)golden[i].code, size, &insn);
			assert_int_equal(insn.length == 0, size == 0);
			assert_true(insn.length <= size);
			if (!size)
				assert_int_equal(insn.kind, INSN_BAD);
		}
}

static void prologues_are_known(void **state)
{
	(void)state;
	assert_true(isa_x86_64.is_prologue((const uint8_t *)"\x55", 1));
	assert_true(isa_x86_64.is_prologue((const uint8_t *)"\xf3\x0f\x1e\xfa", 4));
	assert_true(isa_x86_64.is_prologue((const uint8_t *)"\x48\x83\xec\x18", 4));
	assert_false(isa_x86_64.is_prologue((const uint8_t *)"\x48\x83\xec\x08", 4));
	assert_false(isa_x86_64.is_prologue((const uint8_t *)"\x48\x83\xec\x10", 4));
	assert_true(isa_x86_64.is_prologue((const uint8_t *)"\x48\x81\xec\x08", 4));
	assert_true(isa_x86_64.is_prologue((const uint8_t *)"\x41\x57", 2));
	assert_true(isa_x86_64.is_prologue((const uint8_t *)"\x53\x48\x89\xfb", 4));
	assert_false(isa_x86_64.is_prologue((const uint8_t *)"\x53", 1));
	assert_false(isa_x86_64.is_prologue((const uint8_t *)"\xf3\x0f\x1e", 3));
	assert_false(isa_x86_64.is_prologue((const uint8_t *)"\xf3\x0f\x1e\xfb", 4));
	assert_false(isa_x86_64.is_prologue((const uint8_t *)"\x48\x83\xc4\x08", 4));
	assert_false(isa_x86_64.is_prologue((const uint8_t *)"\xc3", 1));
	assert_false(isa_x86_64.is_prologue((const uint8_t *)"", 0));
}

static void describes_the_cpu(void **state)
{
	(void)state;
	assert_ptr_equal(isa_for_machine(EM_X86_64), &isa_x86_64);
	assert_int_equal(isa_x86_64.sp, 7);
	assert_int_equal(isa_x86_64.fp, 6);
	assert_int_equal(isa_x86_64.extra, 3);
	/* all but rbx, rbp, rsp, r12 to r15 */
	assert_int_equal(isa_x86_64.call_clobbers, 0xffff & ~(1 << 3 | 1 << 6 | 1 << 7 | 0xf000));
}

static uint32_t zydis_writes(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *operands)
{
	static const uint8_t dwarf[16] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};
	uint32_t all = 0;
	for (unsigned i = 0; i < in->operand_count; i++) {
		ZydisRegister reg;

		if (operands[i].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    !(operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		reg = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
						       operands[i].reg.value);
		if (reg >= ZYDIS_REGISTER_RAX && reg <= ZYDIS_REGISTER_R15)
			all |= UINT32_C(1) << dwarf[reg - ZYDIS_REGISTER_RAX];
	}
	return all;
}

static void compare_flow(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *operands,
			 const struct insn *insn)
{
	uint64_t target = 0;
	bool call = insn->kind == INSN_CALL || insn->kind == INSN_CALL_INDIRECT;
	bool jump = insn->kind == INSN_JUMP || insn->kind == INSN_JUMP_INDIRECT;
	bool direct = operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
	if (in->mnemonic == ZYDIS_MNEMONIC_XABORT || in->mnemonic == ZYDIS_MNEMONIC_XEND)
		return; /* branches for Zydis, but to nowhere */
	if (call != (in->meta.category == ZYDIS_CATEGORY_CALL) ||
	    jump != (in->meta.category == ZYDIS_CATEGORY_UNCOND_BR) ||
	    (insn->kind == INSN_BRANCH) != (in->meta.category == ZYDIS_CATEGORY_COND_BR))
		fail_msg("%s: kind %u", ZydisMnemonicGetString(in->mnemonic), insn->kind);
	if (in->meta.category == ZYDIS_CATEGORY_RET)
		assert_int_equal(insn->kind, INSN_RETURN);
	if ((call || jump || insn->kind == INSN_BRANCH) && direct) {
		assert_true(ZYAN_SUCCESS(
			ZydisCalcAbsoluteAddress(in, &operands[0], insn->address, &target)));
		assert_int_equal(insn->target, target);
	}
}

/* Zydis overlooks some of these that string instructions write; the golden cases have them all. */
static uint32_t not_compared(const ZydisDecodedInstruction *in)
{
	bool string = in->meta.category == ZYDIS_CATEGORY_STRINGOP ||
		      in->meta.category == ZYDIS_CATEGORY_IOSTRINGOP;
	return string ? 1 << 4 | 1 << 5 : 0;
}

/* `code` as Zydis alone sees it; returns whether it is an instruction at all. */
static bool compare(const ZydisDecoder *decoder, const uint8_t *code, size_t size)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction in;
	struct insn insn;
	uint32_t expected;

	isa_x86_64.decode(code, size, address, &insn);
	assert_true(insn.effect_count <= INSN_MAX_EFFECTS);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(decoder, code, size, &in, operands))) {
		assert_int_equal(insn.kind, INSN_BAD);
		assert_int_equal(insn.length, 1);
		return false;
	}
	expected = zydis_writes(&in, operands);
	if (insn.kind == INSN_CALL || insn.kind == INSN_CALL_INDIRECT || insn.kind == INSN_RETURN)
		expected &= ~(UINT32_C(1) << isa_x86_64.sp);
	if (insn.kind == INSN_SYSCALL)
		expected |= 1; /* the result */
	if (insn.length != in.length || (insn_all_writes(&insn) ^ expected) & ~not_compared(&in))
		fail_msg("%s (%02x %02x %02x %02x): length %u writes %x, not %u %x",
			 ZydisMnemonicGetString(in.mnemonic), code[0], code[1], code[2], code[3],
			 insn.length, insn_all_writes(&insn), in.length, expected);
	compare_flow(&in, operands, &insn);
	return true;
}

/* Random bytes, with prefixes and the 0F map more frequent than chance makes them */
static void fill(uint8_t code[16], uint64_t *seed)
{
	static const uint8_t prefixes[] = {0x66, 0xf2, 0xf3, 0x2e, 0x3e, 0x64, 0x67, 0xf0};
	unsigned at = 0;
	for (unsigned i = 0; i < 16; i++)
		code[i] = (uint8_t)(next_random(seed) >> 24);
	if (next_random(seed) >> 20 & 1)
		code[at++] = prefixes[next_random(seed) >> 20 & 7];
	if (next_random(seed) >> 20 & 1)
		code[at++] = 0x40 | (next_random(seed) >> 20 & 15);
	if (next_random(seed) >> 20 & 1)
		code[at++] = 0x0f;
}

static void agrees_with_zydis(void **state)
{
	uint64_t seed = 0x9e3779b97f4a7c15;
	ZydisDecoder decoder;
	unsigned good = 0;
	uint8_t code[16];
	(void)state;
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	while (good < 200000) {
		fill(code, &seed);
		good += compare(&decoder, code, sizeof code);
	}
	/* Every opcode of both maps, with every ModRM byte, with and without REX.W */
	for (unsigned i = 0; i < 4 * 65536; i++) {
		unsigned at = 0;
		memset(code, 0x24, sizeof code);
		if (i & 1 << 16)
			code[at++] = 0x48;
		if (i & 1 << 17)
			code[at++] = 0x0f;
		code[at++] = i >> 8 & 255;
		code[at] = i & 255;
		compare(&decoder, code, sizeof code);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decodes_as_the_manual_says), cmocka_unit_test(cut_short_is_bad),
		cmocka_unit_test(prologues_are_known),        cmocka_unit_test(describes_the_cpu),
		cmocka_unit_test(agrees_with_zydis),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
