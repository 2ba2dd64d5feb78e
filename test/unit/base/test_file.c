/* Files, where the file system does less than others. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"

/* Replaces that of the C library, as if the file system did not support its flags. */
int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
	errno = EINVAL;
	return -1;
}

TEST(rename_replaces_nothing_without_support_of_the_file_system)
{
	char folder[] = "/tmp/koine-test-XXXXXX";
	int at;

	assert_non_null(mkdtemp(folder));
	at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	close(openat(at, "a", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	close(openat(at, "b", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(file_rename_new(at, "a", "b"), -EEXIST);
	assert_int_equal(faccessat(at, "a", F_OK, 0), 0);
	assert_int_equal(unlinkat(at, "b", 0), 0);
	assert_int_equal(file_rename_new(at, "a", "b"), 0);
	assert_int_equal(faccessat(at, "a", F_OK, 0), -1);
	assert_int_equal(unlinkat(at, "b", 0), 0);
	close(at);
	assert_int_equal(rmdir(folder), 0);
}
