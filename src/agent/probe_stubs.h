/* SPDX-License-Identifier: Apache-2.0 */
/* What probe_aarch64.S, probe_x86_64.S and probes.c share. */

#define PROBE_STUBS 2048
#define PROBE_STUB_SIZE 32
#define PROBE_SIGN 0x1e0e1606 /* no instructions, on either CPU */
