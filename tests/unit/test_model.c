/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "explain/model.h"

#include "base/err.h"
#include "explain/form.h"
#include "isa/insn.h"

static void check_form(const struct isa *isa, const char *text, const char *wanted)
{
	char form[FORM_MAX];
	form_make(isa, text, form);
	assert_string_equal(form, wanted);
}

static void forms_say_the_kinds_of_operands(void **state)
{
	(void)state;
	check_form(&isa_aarch64, "ldr x3, [x3, #0x10]", "ldr x,[x,i]");
	check_form(&isa_aarch64, "eor x4, x2, x3, lsr #3", "eor x,x,x,lsri");
	check_form(&isa_aarch64, "b.ne 0x400100", "b.cond l");
	check_form(&isa_aarch64, "fmla v0.4s, v1.4s, v2.s[1]", "fmla v.4s,v.4s,v.s[]");
	check_form(&isa_aarch64, "fadd d0, d1, d2", "fadd d,d,d");
	check_form(&isa_aarch64, "csel w0, w1, wzr, eq", "csel w,w,w,c");
	check_form(&isa_aarch64, "nop", "nop");
	check_form(&isa_x86_64, "movq $0x1, (%rax)", "mov i,m");
	check_form(&isa_x86_64, "lock xadd %rax, (%rdi)", "xadd r,m");
	check_form(&isa_x86_64, "vaddpd (%rdi), %ymm1, %ymm2", "vaddpd m,y,y");
	check_form(&isa_x86_64, "jne 0x1000", "jcc l");
	check_form(&isa_x86_64, "jmp *%rax", "jmp r");
	check_form(&isa_x86_64, "mov %fs:0x28, %rax", "mov m,r");
}

static void tables_know_latencies(void **state)
{
	(void)state;
	struct model *m;
	struct model_insn i;
	assert_null(model_open(&isa_aarch64, "0x41:0xd40:r1p1", &m));
	assert_string_equal(model_name(m), "neoverse-v1");
	assert_string_equal(model_cpu(m), "Neoverse V1");
	assert_false(model_is_generic(m));
	model_find(m, "ldr x0, [x1, #8]", &i);
	assert_true(i.known && i.latency >= 3 && i.latency <= 5 && i.use_count);
	model_find(m, "add x0, x1, x2", &i);
	assert_true(i.known && i.latency == 1);
	model_find(m, "fmadd d0, d1, d2, d3", &i);
	assert_true(i.latency == 4);
	model_find(m, "nothing like this", &i);
	assert_false(i.known);
	model_close(m);
	assert_null(model_open(&isa_x86_64, "GenuineIntel:6:85:7:0x5003604", &m));
	assert_string_equal(model_name(m), "skylake-avx512");
	model_find(m, "add %rax, %rbx", &i);
	assert_true(i.known && i.latency == 1);
	model_find(m, "mov (%rdi), %rax", &i);
	assert_true(i.known && i.latency == 5);
	model_close(m);
}

static void others_get_a_generic_one(void **state)
{
	(void)state;
	static const char *const cpus[] = {"", "0x99:0x1:r0p0", "GenuineIntel:6:8",
					   "0x41:0xd40:r1p1"};
	struct model *m;
	for (size_t i = 0; i < sizeof cpus / sizeof *cpus; i++) {
		assert_null(model_open(&isa_x86_64, cpus[i], &m));
		assert_true(model_is_generic(m));
		assert_string_equal(model_name(m), "generic-x86_64");
		assert_null(model_cpu(m));
		model_close(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forms_say_the_kinds_of_operands),
		cmocka_unit_test(tables_know_latencies),
		cmocka_unit_test(others_get_a_generic_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
