/* What a child may write, and the folder of its own that goes with it. */

#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/process/confine.h"

static void run(const char *command, const char *folder)
{
	char line[2048];

	snprintf(line, sizeof(line), "cd '%s' && %s", folder, command);
	assert_int_equal(system(line), 0);
}

TEST(a_private_folder_goes_with_all_that_is_in_it)
{
	/* As programs leave them: deep, closed to themselves, with links to elsewhere. */
	static const char *const left[] = {
		"true",
		"touch a b .c && mkdir -p d/e/f && touch d/g d/e/f/h",
		"mkdir -p a/b/c && touch a/b/c/d a/b/e && chmod 0 a/b/c a/b a",
		"for i in $(seq 200); do mkdir x && cd x || exit 1; done; touch deep",
		"ln -s / root && ln -s ../.. up && ln -s nowhere no && mkfifo f",
		"for i in $(seq 500); do echo x; done | split -l 1 -a 4",
	};
	char path[PRIVATE_FOLDER_LEN];
	struct stat found;
	struct loop *l;

	for (unsigned i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
		assert_int_equal(loop_new(&l), 0);
		assert_int_equal(private_folder_new(path), 0);
		assert_int_equal(stat(path, &found), 0);
		assert_int_equal(found.st_mode & 07777, 0700);
		run(left[i], path);
		private_folder_remove(l, path);
		loop_free(l);
		assert_int_equal(stat(path, &found), -1);
		assert_int_equal(errno, ENOENT);
	}
	assert_int_equal(access("/etc/passwd", R_OK), 0);
}

/* In a process of its own, where that call does what the filter says. */
static int check_under(unsigned number, unsigned verdict)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, verdict),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = 4, .filter = code};
	struct error error;
	int status, fd, r;
	pid_t pid = fork();

	if (pid == 0) {
		const char *const none[] = {NULL};

		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
			_exit(99);
		r = confine_check(&error);
		if (r == 0 || confine_open(none, &fd, &error) != r)
			_exit(98);
		_exit(strstr(error.text, "Landlock ABI 3 or newer is required") ? r : 97);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(a_kernel_that_cannot_is_told)
{
	assert_int_equal(check_under(SYS_landlock_create_ruleset, SECCOMP_RET_ERRNO | ENOSYS),
			 REFUSE_UNAVAILABLE);
	assert_int_equal(check_under(SYS_landlock_create_ruleset, SECCOMP_RET_ERRNO | EOPNOTSUPP),
			 REFUSE_UNAVAILABLE);
}

TEST(only_paths_that_are_what_they_say_are_taken)
{
	char path[PRIVATE_FOLDER_LEN], inner[PRIVATE_FOLDER_LEN + 8], link[PRIVATE_FOLDER_LEN + 8],
		through[PRIVATE_FOLDER_LEN + 16];
	const char *paths[] = {inner, NULL};
	struct error error = {0};
	struct loop *l;
	int fd = -1;

	if (confine_check(&error) != 0) {
		print_message("skipped: %s\n", error.text);
		skip();
	}
	assert_int_equal(loop_new(&l), 0);
	assert_int_equal(private_folder_new(path), 0);
	run("mkdir in && ln -s in link && mkdir in/on", path);
	snprintf(inner, sizeof(inner), "%s/in", path);
	snprintf(link, sizeof(link), "%s/link", path);
	snprintf(through, sizeof(through), "%s/link/on", path);
	assert_int_equal(confine_open(paths, &fd, &error), 0);
	assert_true(fd > 2);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	paths[0] = link;
	assert_int_equal(confine_open(paths, &fd, &error), REFUSE_CONFLICT);
	paths[0] = through;
	assert_int_equal(confine_open(paths, &fd, &error), REFUSE_CONFLICT);
	paths[0] = "/no/such/place";
	assert_int_equal(confine_open(paths, &fd, &error), REFUSE_CONFLICT);
	private_folder_remove(l, path);
	loop_free(l);
}
