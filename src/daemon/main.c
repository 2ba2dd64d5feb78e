/* koined: flags, then the daemon. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/daemon.h"
#include "io/listener.h"
#include "io/process/guard.h"

static int main_argc;
static char **main_argv;
/* By their numbers, the flags that were given: the last value of each, "" for one without a value. */
static const char *given_flags[FLAG_SERVICE + 1];

/* A socket or a log must not become descriptor 0, 1 or 2. */
static void fill_standard_descriptors(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

/* After a large block was freed, glibc by default puts later large blocks on the heap, which does
 * not shrink. One large message must not make the process large forever. */
static void give_large_blocks_back(void)
{
#ifdef __GLIBC__
	mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
}

int complain(const char *what, int status)
{
	fprintf(stderr, "koined: %s\n", what);
	return status;
}

static int complain_log(const char *path, int r)
{
	fprintf(stderr, "koined: cannot write the log to %s: %s\n", path, strerror(-r));
	return EX_CONFIG;
}

static int set_root(struct settings *s, const char *dir, struct error *error)
{
	char here[PATH_LEN] = "";
	int n;

	if (dir[0] != '/' && !getcwd(here, sizeof(here)))
		return refuse(error, REFUSE_UNAVAILABLE,
			      "cannot determine the current directory: %s", strerror(errno));
	n = snprintf(s->root, sizeof(s->root), "%s%s%s", here, here[0] ? "/" : "", dir);
	if (n >= (int)sizeof(s->root))
		return refuse(error, REFUSE_PARAMS,
			      "the path of --root is too long: %d bytes, limit %zu", n,
			      sizeof(s->root) - 1);
	return 0;
}

/* There need not be a file at the standard place, and its folder may be closed to us. But a file that is
 * there, or was read before, is meant: an editor may just be replacing it. */
static int read_standard(struct settings *s, struct error *error)
{
	static bool was_read;
	char file[PATH_LEN];
	struct stat st;
	int r;

	paths_config(file);
	r = settings_read_file(s, file, error);
	was_read = was_read || r == 0;
	if (was_read)
		return r;
	return r == -ENOENT || r == -ENOTDIR || (r == -EACCES && stat(file, &st) != 0) ? 0 : r;
}

static int read_config(struct settings *s, struct error *error)
{
	const char *named = given_flags[FLAG_CONFIG];
	int r = named ? settings_read_file(s, named, error) : read_standard(s, error);

	/* The sentence names the file. */
	return r < 0 && r != -ENOMEM ? (int)error->code : r;
}

static int apply_flag(struct settings *s, int flag, struct error *error)
{
	switch (flag) {
	case FLAG_ROOT:
		return set_root(s, optarg, error);
	case FLAG_PROJECT:
		return settings_add_project(s, optarg, error);
	case FLAG_LISTEN:
		return settings_add_listen(s, optarg, error);
	case FLAG_SET:
		return settings_set_pair(s, optarg, error);
	case FLAG_STORE:
		return settings_set(s, "store", "url", optarg, error);
	case FLAG_AGENT:
		return settings_set(s, "chat", "agent", optarg, error);
	case FLAG_LEVEL:
		return settings_set(s, "daemon", "log_level", optarg, error);
	case FLAG_DEBUG:
		s->debug_methods = true;
		return 0;
	default:
		return 0;
	}
}

static int apply_flags(struct settings *s, struct error *error)
{
	int flag;

	optind = 1;
	opterr = 0;
	while ((flag = getopt_long(main_argc, main_argv, flags_short, flags_long(), NULL)) != -1) {
		int r = apply_flag(s, flag, error);

		if (r != 0)
			return r;
	}
	return 0;
}

/* The file, then the environment, then the flags. */
static int read_settings(struct settings *s, struct error *error)
{
	settings_init(s);
	if (given_flags[FLAG_SERVICE])
		s->places = PLACES_OWN;
	return read_config(s, error)
		?: settings_read_environment(s, error)
		?: apply_flags(s, error)
		?: settings_check(s, error);
}

/* Handles flags that only print, and mistakes. -1: continue. */
static int look_at_flags(void)
{
	static struct settings defaults;
	int flag;

	while ((flag = getopt_long(main_argc, main_argv, flags_short, flags_long(), NULL)) != -1) {
		if (flag == FLAG_HELP) {
			flags_help(stdout);
			return 0;
		}
		if (flag == FLAG_VERSION) {
			printf("koined %s\n", KOINE_VERSION);
			return 0;
		}
		if (flag == FLAG_SETTINGS) {
			settings_init(&defaults);
			settings_write_reference(&defaults, stdout);
			return 0;
		}
		if (flag == '?')
			return complain("see koined --help", EX_USAGE);
		given_flags[flag] = optarg ?: "";
	}
	if (given_flags[FLAG_MOVE] && optind + 1 != main_argc)
		return complain("--move requires FROM and TO; see koined --help", EX_USAGE);
	if (given_flags[FLAG_MOVE])
		return daemon_move(given_flags[FLAG_MOVE], main_argv[optind]);
	if (optind < main_argc) {
		fprintf(stderr, "koined: unexpected argument '%s'; see koined --help\n",
			main_argv[optind]);
		return EX_USAGE;
	}
	return -1;
}

/* By its name, which others see. If another file has that by now, an upgrade has put it there: it is run
 * when a client has asked for a restart. */
static void find_program(bool asked, char path[PATH_LEN])
{
	static const char gone[] = " (deleted)";
	ssize_t n = readlink("/proc/self/exe", path, PATH_LEN - 1);
	ssize_t end = n - (ssize_t)(sizeof(gone) - 1);
	struct stat ours, named;

	path[n > 0 ? n : 0] = '\0';
	if (asked && end > 0 && strcmp(path + end, gone) == 0)
		path[end] = '\0';
	if (asked ? access(path, X_OK) != 0
		  : stat("/proc/self/exe", &ours) != 0 || stat(path, &named) != 0 ||
			    ours.st_ino != named.st_ino || ours.st_dev != named.st_dev)
		strcpy(path, "/proc/self/exe");
}

/* The same process and sockets, and nothing of what was in memory. */
static int run_again(const struct settings *s, bool asked)
{
	char path[PATH_LEN];
	sigset_t none;

	find_program(asked, path);
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	if (!asked)
		daemon_await_store(s);
	if (listeners_pass() == 0)
		execv(path, main_argv);
	log_err("could not restart", "error=%s", strerror(errno));
	return EX_OSERR;
}

int main(int argc, char **argv)
{
	static struct activation given;
	static struct settings settings;
	static struct plan plan;
	struct error error = {.text = ""};
	int status, r;

	if (argc > 1 && strcmp(argv[1], guard_command) == 0)
		return guard_main(argc, argv);
	fill_standard_descriptors();
	if (argc > 1 && strcmp(argv[1], "__complete") == 0)
		return flags_complete(argc - 2, argv + 2);
	give_large_blocks_back();
	main_argc = argc;
	main_argv = argv;
	status = look_at_flags();
	if (status >= 0)
		return status;
	if (read_settings(&settings, &error) != 0)
		return complain(error.text, error.code == REFUSE_PARSE ? EX_USAGE : EX_CONFIG);
	log_set_level(settings.log_level);
	log_tail_start();
	if (given_flags[FLAG_ADOPT])
		return daemon_adopt(&settings);
	if (given_flags[FLAG_INIT_STORE])
		return daemon_init_store(&settings);
	activation_take(&given);
	if (plan_make(&settings, &given, &plan, &error) != 0)
		return complain(error.text, EX_CONFIG);
	if (given_flags[FLAG_CHECK])
		return daemon_check(&settings, &plan);
	if (given_flags[FLAG_DIALECTS])
		return daemon_dialects(&settings, &plan);
	r = settings.log_file[0] ? log_to_file(settings.log_file) : 0;
	if (r != 0)
		return complain_log(settings.log_file, r);
	r = daemon_run(&settings, &plan, read_settings);
	return r < 0 ? run_again(&settings, r == DAEMON_AGAIN) : r;
}
