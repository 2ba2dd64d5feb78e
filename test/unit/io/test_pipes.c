/* A socket joined with pipes and files: every byte, back-pressure, and both ends of the story. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/conn.h"

static struct loop *loop;
static struct pipes *pipes;
static int fd; /* our end of the socket */
static int to[2];
static int from[2];
static unsigned n_ended;

static void on_end(void *arg)
{
	n_ended++;
}

static int set_up(void **state)
{
	n_ended = 0;
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	assert_int_equal(pipes_new(loop, to[0], from[1], on_end, NULL, &pipes, &fd), 0);
	return 0;
}

static void shut(int *at)
{
	if (*at >= 0)
		close(*at);
	*at = -1;
}

static int tear_down(void **state)
{
	pipes_free(pipes);
	loop_free(loop);
	shut(&fd);
	for (int i = 0; i < 2; i++) {
		shut(&to[i]);
		shut(&from[i]);
	}
	return 0;
}

FIXTURE(set_up, tear_down);

static size_t take(int at, char *out, size_t size)
{
	ssize_t n = read(at, out, size);

	return n > 0 ? (size_t)n : 0;
}

/* Turns until something can be read there. */
static void wait_for(int at)
{
	struct pollfd p = {.fd = at, .events = POLLIN};

	while (poll(&p, 1, 0) == 0)
		loop_turn(loop, 1000);
}

TEST(bytes_pass_both_ways)
{
	char got[16];

	assert_int_equal(write(to[1], "in", 2), 2);
	wait_for(fd);
	assert_int_equal(take(fd, got, sizeof(got)), 2);
	assert_memory_equal(got, "in", 2);
	assert_int_equal(send(fd, "out", 3, 0), 3);
	wait_for(from[0]);
	assert_int_equal(take(from[0], got, sizeof(got)), 3);
	assert_memory_equal(got, "out", 3);
}

TEST(a_reader_that_waits_holds_the_writer)
{
	static char block[4096];
	size_t sent = 0;
	size_t got = 0;
	int idle = 0;

	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	/* Nobody reads: after what pipe, buffer and socket hold, nothing more is taken. */
	while (idle < 3) {
		ssize_t n = send(fd, block, sizeof(block), MSG_NOSIGNAL);

		idle = n > 0 ? 0 : idle + 1;
		sent += n > 0 ? (size_t)n : 0;
		loop_turn(loop, 0);
	}
	assert_true(sent > 64 << 10 && sent < 4 << 20);
	while (got < sent) {
		wait_for(from[0]);
		got += take(from[0], block, sizeof(block));
	}
	assert_int_equal(got, sent);
}

TEST(the_end_of_input_is_passed_on)
{
	char got[16];

	assert_int_equal(write(to[1], "last", 4), 4);
	shut(&to[1]);
	wait_for(fd);
	assert_int_equal(take(fd, got, sizeof(got)), 4);
	wait_for(fd);
	assert_int_equal(take(fd, got, sizeof(got)), 0);
	/* The answer still gets through. */
	assert_int_equal(send(fd, "bye", 3, 0), 3);
	shut(&fd);
	while (n_ended == 0)
		loop_turn(loop, 1000);
	assert_int_equal(take(from[0], got, sizeof(got)), 3);
	assert_int_equal(n_ended, 1);
}

/* A pipe without a reader would send SIGPIPE, which would end this program. */
TEST(nobody_reads)
{
	shut(&from[0]);
	assert_int_equal(send(fd, "lost", 4, 0), 4);
	while (n_ended == 0)
		loop_turn(loop, 1000);
	assert_int_equal(n_ended, 1);
}

TEST(the_descriptors_are_set_back)
{
	assert_true(fcntl(to[0], F_GETFL) & O_NONBLOCK);
	pipes_free(pipes);
	pipes = NULL;
	assert_false(fcntl(to[0], F_GETFL) & O_NONBLOCK);
	assert_false(fcntl(from[1], F_GETFL) & O_NONBLOCK);
}

/* They cannot be polled. */
TEST(files_and_nothing_do_as_well)
{
	char path[] = "/tmp/koine-pipes-XXXXXX";
	int file = mkstemp(path);
	int none = open("/dev/null", O_RDWR | O_CLOEXEC);
	char got[16];

	unlink(path);
	pipes_free(pipes);
	shut(&fd);
	assert_int_equal(write(file, "text", 4), 4);
	assert_int_equal(lseek(file, 0, SEEK_SET), 0);
	assert_int_equal(pipes_new(loop, file, none, on_end, NULL, &pipes, &fd), 0);
	wait_for(fd);
	assert_int_equal(take(fd, got, sizeof(got)), 4);
	wait_for(fd);
	assert_int_equal(take(fd, got, sizeof(got)), 0);
	assert_int_equal(send(fd, "x", 1, 0), 1);
	shut(&fd);
	while (n_ended == 0)
		loop_turn(loop, 1000);
	close(file);
	close(none);
}
