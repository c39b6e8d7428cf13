/* SPDX-License-Identifier: Apache-2.0 */
/* Both sides of a look at a recording, in one process. */
#include "unit.h"

#include "collect/live.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "collect/live_wire.h"
#include "profile/profile.h"

static char directory[] = "/tmp/culprit-test-live-XXXXXX";
static char path[64];

static void good(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

static struct profile *new_profile(uint64_t samples)
{
	struct profile *p;
	uint32_t index;
	good(profile_new(&p));
	good(profile_add_metric(p, &(struct profile_metric){.name = "x", .unit = "ns", .period = 1},
				&index));
	good(profile_add_process(p, &(struct profile_process){.name = "a", .command = "a"},
				 &index));
	good(profile_add_thread(p, &(struct profile_thread){.name = "a"}, &index));
	good(profile_child(p, 0, PROFILE_EXACT, 0, 16, &index));
	good(profile_count(p, index, 0, 0, samples));
	return p;
}

static bool wait_for(int fd)
{
	struct pollfd ready = {fd, POLLIN, 0};
	return poll(&ready, 1, 5000) == 1;
}

/* Until the recorder's side has something to send. */
static void wait_wanted(struct live *live)
{
	int turns = 0;
	while (!live_wanted(live)) {
		assert_true(turns++ < 500);
		usleep(10000);
	}
}

static enum follow_news wait_news(struct live *live, struct follow *follow, struct profile **out)
{
	enum follow_news news = FOLLOW_NOTHING;
	for (int turns = 0; turns < 500 && news == FOLLOW_NOTHING; turns++) {
		usleep(10000);
		if (live)
			live_wanted(live);
		news = follow_take(follow, out);
	}
	return news;
}

static void test_look(void **state)
{
	struct live *live;
	struct follow *follow, *other;
	struct profile *p;
	(void)state;
	good(follow_open(path, &follow));
	assert_null(follow);
	good(live_open(path, &live));
	assert_false(live_wanted(live));
	good(follow_open(path, &follow));
	assert_non_null(follow);
	assert_int_equal(follow_take(follow, &p), FOLLOW_NOTHING);
	assert_false(live_wanted(live)); /* nobody has asked */
	good(follow_open(path, &other));
	for (uint64_t samples = 5; samples < 8; samples++) {
		follow_ask(follow);
		follow_ask(follow); /* once is enough */
		assert_true(follow_asked(follow));
		assert_true(wait_for(live_fd(live)));
		wait_wanted(live);
		live_send(live, new_profile(samples), 0);
		assert_int_equal(wait_news(live, follow, &p), FOLLOW_PROFILE);
		assert_int_equal(profile_samples(p, 0), samples);
		profile_free(p);
		assert_false(follow_asked(follow));
		assert_int_equal(follow_take(other, &p), FOLLOW_NOTHING); /* has not asked */
	}
	/* Without memory for a snapshot there is no news. */
	follow_ask(follow);
	wait_wanted(live);
	live_send(live, NULL, 0);
	usleep(50000);
	live_wanted(live);
	assert_int_equal(follow_take(follow, &p), FOLLOW_NOTHING);
	live_close(live);
	assert_int_equal(follow_take(follow, &p), FOLLOW_ENDED);
	assert_int_equal(wait_news(NULL, other, &p), FOLLOW_ENDED);
	follow_close(follow);
	follow_close(other);
	good(follow_open(path, &follow));
	assert_null(follow);
}

/* A snapshot that was dear is followed by a pause. */
static void test_pause(void **state)
{
	struct live *live;
	struct follow *follow;
	struct profile *p;
	(void)state;
	good(live_open(path, &live));
	good(follow_open(path, &follow));
	follow_ask(follow);
	wait_wanted(live);
	live_send(live, new_profile(1), 20000000); /* 20 ms of CPU time: about a second of pause */
	assert_int_equal(wait_news(live, follow, &p), FOLLOW_PROFILE);
	profile_free(p);
	follow_ask(follow);
	for (int i = 0; i < 20; i++) {
		usleep(10000);
		assert_false(live_wanted(live));
	}
	follow_close(follow);
	live_close(live);
}

/* Others who find the socket say anything, and many come. */
static void test_strangers(void **state)
{
	struct sockaddr_un address;
	struct live *live, *second;
	struct follow *follow;
	struct err *e;
	socklen_t size;
	int fds[20];
	char byte;
	(void)state;
	good(live_open(path, &live));
	e = live_open(path, &second); /* two recordings to one file */
	assert_non_null(e);
	assert_null(second);
	err_free(e);
	assert_true(live_address(path, &address, &size));
	for (int i = 0; i < 20; i++) {
		fds[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
		if (!connect(fds[i], (struct sockaddr *)&address, size))
			send(fds[i], "garbage", 7, MSG_NOSIGNAL);
		live_wanted(live);
	}
	for (int i = 0; i < 50; i++)
		assert_false(live_wanted(live));
	for (int i = 0; i < 8; i++) /* hung up on */
		assert_int_equal(recv(fds[i], &byte, 1, 0), 0);
	good(follow_open(path, &follow));
	follow_ask(follow);
	wait_wanted(live);
	follow_close(follow);
	live_send(live, new_profile(1), 0); /* to nobody */
	usleep(50000);
	assert_false(live_wanted(live));
	for (int i = 0; i < 20; i++)
		close(fds[i]);
	live_close(live);
}

/* The same file by other names has the same socket. */
static void test_names(void **state)
{
	struct sockaddr_un a, b;
	socklen_t a_size, b_size;
	char other[128];
	(void)state;
	assert_true(live_address(path, &a, &a_size));
	snprintf(other, sizeof other, "%s/./../%s/x.prof", directory, strrchr(directory, '/') + 1);
	assert_true(live_address(other, &b, &b_size));
	assert_int_equal(a_size, b_size);
	assert_memory_equal(&a, &b, a_size);
	snprintf(other, sizeof other, "%s/link", directory);
	assert_int_equal(symlink(path, other), 0);
	fclose(fopen(path, "w"));
	assert_true(live_address(other, &b, &b_size));
	assert_memory_equal(&a, &b, a_size);
	unlink(other);
	unlink(path);
	snprintf(other, sizeof other, "%s/y.prof", directory);
	assert_true(live_address(other, &b, &b_size));
	assert_memory_not_equal(&a, &b, a_size);
	assert_false(live_address("/nowhere/at/all", &b, &b_size));
}

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof path, "%s/x.prof", directory);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_look),
		cmocka_unit_test(test_pause),
		cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_names),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
