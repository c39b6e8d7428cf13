/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Numbers of the perf.data format that <linux/perf_event.h> does not have, or
 * has only in newer versions: what perf itself writes around the kernel's
 * records.
 *
 *    file:  magic, size of this header (104), size of an entry of `attrs`,
 *           {offset, size} of attrs, data, event types; 256 bits of features
 *           attrs: struct perf_event_attr, {offset, size} of its ids
 *           data: records
 *           {offset, size} of each feature whose bit is set, right behind data
 *    pipe:  magic, 16; then records, which also tell attrs and features
 */
#define PERF_MAGIC 0x32454c4946524550ull         /* "PERFILE2" */
#define PERF_MAGIC_SWAPPED 0x50455246494c4532ull /* of a big-endian machine */
#define PERF_HEADER_SIZE 104u
#define PERF_PIPE_HEADER_SIZE 16u
#define PERF_RECORD_HEAD 8u /* type: u32, misc: u16, size with this: u16 */
#define PERF_FEATURE_BITS 256u

enum perf_feature {
	PERF_FEATURE_BUILD_ID = 2,
	PERF_FEATURE_HOSTNAME = 3,
	PERF_FEATURE_OSRELEASE = 4,
	PERF_FEATURE_ARCH = 6,
	PERF_FEATURE_CMDLINE = 11,
	PERF_FEATURE_EVENT_DESC = 12,
	PERF_FEATURE_DIR_FORMAT = 24,
};

enum perf_own_record { /* beside the kernel's */
		       PERF_OWN_FIRST = 64,
		       PERF_OWN_ATTR = 64,
		       PERF_OWN_TRACING_DATA = 66,
		       PERF_OWN_BUILD_ID = 67,
		       PERF_OWN_FINISHED_ROUND = 68,
		       PERF_OWN_AUXTRACE = 71,
		       PERF_OWN_EVENT_UPDATE = 78,
		       PERF_OWN_FEATURE = 80,
		       PERF_OWN_COMPRESSED = 81,
		       PERF_OWN_COMPRESSED2 = 83,
};

#define PERF_KERNEL_MMAP 1u
#define PERF_KERNEL_LOST 2u
#define PERF_KERNEL_COMM 3u
#define PERF_KERNEL_EXIT 4u
#define PERF_KERNEL_FORK 7u
#define PERF_KERNEL_SAMPLE 9u
#define PERF_KERNEL_MMAP2 10u
#define PERF_KERNEL_LOST_SAMPLES 13u

#define PERF_MISC_MODE 7u
#define PERF_MODE_KERNEL 1u
#define PERF_MODE_USER 2u
#define PERF_MISC_EXEC (1u << 13)          /* COMM: of exec; FORK: another program since then */
#define PERF_MISC_DATA (1u << 13)          /* MMAP: not executable */
#define PERF_MISC_HAS_BUILD_ID (1u << 14)  /* MMAP2 */
#define PERF_MISC_BUILD_ID_SIZE (1u << 15) /* in the list of build-ids */

/* sample_type */
#define PERF_HAS_IP (1u << 0)
#define PERF_HAS_TID (1u << 1)
#define PERF_HAS_TIME (1u << 2)
#define PERF_HAS_ADDR (1u << 3)
#define PERF_HAS_READ (1u << 4)
#define PERF_HAS_CALLCHAIN (1u << 5)
#define PERF_HAS_ID (1u << 6)
#define PERF_HAS_CPU (1u << 7)
#define PERF_HAS_PERIOD (1u << 8)
#define PERF_HAS_STREAM_ID (1u << 9)
#define PERF_HAS_RAW (1u << 10)
#define PERF_HAS_BRANCHES (1u << 11)
#define PERF_HAS_REGS_USER (1u << 12)
#define PERF_HAS_STACK_USER (1u << 13)
#define PERF_HAS_IDENTIFIER (1u << 16)

/* read_format */
#define PERF_READ_ENABLED 1u
#define PERF_READ_RUNNING 2u
#define PERF_READ_ID 4u
#define PERF_READ_GROUP 8u
#define PERF_READ_LOST 16u

/* branch_sample_type */
#define PERF_BRANCHES_INDEX (1ull << 17)
#define PERF_BRANCHES_COUNTERS (1ull << 19)

/* struct perf_event_attr: the bits at offset 40 */
#define PERF_ATTR_NO_KERNEL (1ull << 5)
#define PERF_ATTR_FREQ (1ull << 10)
#define PERF_ATTR_ID_ALL (1ull << 18)

/* In call chains: what follows is of … */
#define PERF_CHAIN_MARKS ((uint64_t)-4095) /* this and above are marks */
#define PERF_CHAIN_KERNEL ((uint64_t)-128)
#define PERF_CHAIN_USER ((uint64_t)-512)

#define PERF_REGISTERS_64 2u /* the abi of user registers; 1: 32-bit code, 0: none */
