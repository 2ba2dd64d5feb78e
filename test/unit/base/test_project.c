/* What a folder's project is called: remotes in all their spellings, working trees, plain folders. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/project.h"
#include "tempdir.h"

TEST(one_repository_has_one_name)
{
	static const char *const spellings[] = {
		"https://github.com/ann/boat.git",
		"https://github.com/ann/boat",
		"https://github.com/ann/boat/",
		"https://ann:secret@github.com/ann/boat.git",
		"https://GitHub.com:443/ann//boat.git",
		"http://github.com/ann/boat",
		"ssh://git@github.com/ann/boat.git",
		"ssh://git@github.com:22/ann/boat",
		"git://github.com/ann/boat.git",
		"git@github.com:ann/boat.git",
		"git@github.com:/ann/boat.git",
		"github.com:ann/boat",
	};
	char name[PROJECT_NAME_MAX + 1];

	for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
		assert_true(project_of_url(text_of(spellings[i]), name));
		assert_string_equal(name, "github.com/ann/boat");
	}
}

TEST(other_remotes)
{
	static const struct {
		const char *url, *name; /* NULL: none */
	} cases[] = {
		{"https://git.example.org/a/b/c.git", "git.example.org/a/b/c"},
		{"https://example.org/Ann/Boat", "example.org/Ann/Boat"},
		{"ssh://[::1]:2222/a/b", "[::1]/a/b"},
		{"git@[::1]:a/b", "[::1]/a/b"},
		{"https://example.org/.git", "example.org/.git"},
		{"https://user@with@at.org/a", "at.org/a"},
		{"https://example.org/a/../b", NULL},
		{"https://example.org/", NULL},
		{"https://example.org", NULL},
		{"https:///a/b", NULL},
		{"https://example.org/a b", NULL},
		{"file:///srv/git/boat.git", NULL},
		{"/srv/git/boat.git", NULL},
		{"../boat", NULL},
		{"boat", NULL},
		{":boat", NULL},
		{"./a:b", NULL},
		{"[::1", NULL},
		{"ann[@/]:boat", NULL},
		{"https://ho$t/a", NULL},
		{"[::1]", NULL},
		{"", NULL},
	};
	char name[PROJECT_NAME_MAX + 1];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool named = project_of_url(text_of(cases[i].url), name);

		if (named != !!cases[i].name || (named && strcmp(name, cases[i].name) != 0))
			fail_msg("%s: %s", cases[i].url, named ? name : "none");
	}
}

TEST(a_name_has_a_limit)
{
	static char url[PROJECT_NAME_MAX * 2];
	char name[PROJECT_NAME_MAX + 1];

	memset(url, 'a', sizeof(url) - 1);
	memcpy(url, "https://h/", 10);
	assert_false(project_of_url(text_of(url), name));
	url[PROJECT_NAME_MAX + 8] = '\0';
	assert_true(project_of_url(text_of(url), name));
	assert_int_equal(strlen(name), PROJECT_NAME_MAX);
}

/* ---- folders ---- */

struct folder {
	char at[PATH_MAX]; /* without links */
	char made[TEMPDIR_MAX];
};

static int make(void **state)
{
	struct folder *f = calloc(1, sizeof(*f));

	tempdir_make(f->made);
	assert_non_null(realpath(f->made, f->at));
	*state = f;
	return 0;
}

static int drop(void **state)
{
	struct folder *f = *state;

	tempdir_remove(f->made);
	free(f);
	return 0;
}

FIXTURE(make, drop);

static const char *within(struct folder *f, const char *path)
{
	static char out[4][PATH_MAX * 2];
	static unsigned n;
	char *at = out[n++ % 4];

	snprintf(at, sizeof(out[0]), "%s/%s", f->at, path);
	return at;
}

static void make_folder(struct folder *f, const char *path)
{
	assert_int_equal(mkdir(within(f, path), 0700), 0);
}

static void write_file(struct folder *f, const char *path, const char *text)
{
	FILE *out = fopen(within(f, path), "we");

	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static void assert_project(struct folder *f, const char *path, const char *want)
{
	char name[PROJECT_NAME_MAX + 1];

	assert_int_equal(project_of_folder(within(f, path), name), 0);
	assert_string_equal(name, want);
}

TEST(a_work_tree_is_its_origin)
{
	struct folder *f = *state;

	make_folder(f, "repo");
	make_folder(f, "repo/.git");
	make_folder(f, "repo/src");
	make_folder(f, "repo/src/deep");
	write_file(f, "repo/.git/config",
		   "[core]\n\tbare = false\n# [remote \"origin\"]\n"
		   "[remote \"fork\"]\n\turl = git@github.com:bob/boat.git\n"
		   "[Remote \"origin\"] ; ours\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n"
		   "\tURL = \"git@github.com:ann/boat.git\" # over ssh\n"
		   "\turl = https://example.org/second\n");
	assert_project(f, "repo", "github.com/ann/boat");
	assert_project(f, "repo/src/deep", "github.com/ann/boat");
	assert_int_equal(symlink(within(f, "repo/src"), within(f, "link")), 0);
	assert_project(f, "link", "github.com/ann/boat");
}

TEST(a_work_tree_without_origin_is_its_top)
{
	static const char *const configs[] = {
		"",
		"[core]\n\turl = https://example.org/a\n",
		"[remote \"Origin\"]\n\turl = https://example.org/a\n",
		"[remote \"origin\"]\n\turl =\n",
		"[remote \"origin\"]\n\turl = https://example.org/\\\na\n",
		"[remote \"origin\"]\n\turl = \"https://example.org/a\n",
		"[remote \"origin\"\n\turl = https://example.org/a\n",
		"[remote \"origin\"]\n\turl = ../gone\n",
		"[remote \"origin\"]\n\tpushurl = https://example.org/a\n",
	};
	struct folder *f = *state;

	make_folder(f, "repo");
	make_folder(f, "repo/.git");
	make_folder(f, "repo/src");
	assert_project(f, "repo/src", within(f, "repo"));
	for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
		write_file(f, "repo/.git/config", configs[i]);
		assert_project(f, "repo/src", within(f, "repo"));
	}
}

TEST(a_folder_as_origin_is_the_project)
{
	struct folder *f = *state;
	char config[PATH_MAX * 3];

	make_folder(f, "main");
	make_folder(f, "clone");
	make_folder(f, "clone/.git");
	snprintf(config, sizeof(config), "[remote \"origin\"]\nurl = %s\n", within(f, "main"));
	write_file(f, "clone/.git/config", config);
	assert_project(f, "clone", within(f, "main"));
	snprintf(config, sizeof(config), "[remote \"origin\"]\nurl=file://%s\n", within(f, "main"));
	write_file(f, "clone/.git/config", config);
	assert_project(f, "clone", within(f, "main"));
	write_file(f, "clone/.git/config", "[remote \"origin\"]\nurl = ../main\n");
	assert_project(f, "clone", within(f, "main"));
}

TEST(other_work_trees_share_the_name)
{
	struct folder *f = *state;

	make_folder(f, "repo");
	make_folder(f, "repo/.git");
	make_folder(f, "repo/.git/worktrees");
	make_folder(f, "repo/.git/worktrees/fix");
	write_file(f, "repo/.git/config", "[remote \"origin\"]\nurl = https://h.org/a/b.git\n");
	write_file(f, "repo/.git/worktrees/fix/commondir", "../..\n");
	make_folder(f, "fix");
	write_file(f, "fix/.git", "gitdir: ../repo/.git/worktrees/fix\n");
	assert_project(f, "fix", "h.org/a/b");
	/* A file that is no pointer makes no working tree. */
	write_file(f, "fix/.git", "something else\n");
	assert_project(f, "fix", within(f, "fix"));
	write_file(f, "fix/.git", "gitdir: /nowhere/at/all\n");
	assert_project(f, "fix", within(f, "fix"));
}

TEST(a_huge_or_odd_configuration_is_not_read)
{
	struct folder *f = *state;
	FILE *out;

	make_folder(f, "repo");
	make_folder(f, "repo/.git");
	out = fopen(within(f, "repo/.git/config"), "we");
	assert_non_null(out);
	for (int i = 0; i < 300; i++)
		fprintf(out, "# %01000d\n", i);
	fputs("[remote \"origin\"]\nurl = https://h.org/a/b.git\n", out);
	fclose(out);
	assert_project(f, "repo", within(f, "repo"));
	assert_int_equal(unlink(within(f, "repo/.git/config")), 0);
	assert_int_equal(mkfifo(within(f, "repo/.git/config"), 0600), 0);
	assert_project(f, "repo", within(f, "repo"));
}

TEST(another_users_git_folder_names_no_project)
{
	struct folder *f = *state;

	if (geteuid() != 0)
		skip();
	make_folder(f, ".git");
	make_folder(f, "repo");
	write_file(f, ".git/config", "[remote \"origin\"]\nurl = https://h.org/a/b.git\n");
	assert_project(f, "repo", "h.org/a/b");
	assert_int_equal(chown(within(f, ".git"), 65534, 65534), 0);
	assert_project(f, "repo", within(f, "repo"));
	assert_int_equal(chown(within(f, ".git"), 0, 0), 0);
	assert_int_equal(chown(within(f, ".git/config"), 65534, 65534), 0);
	assert_project(f, "repo", f->at);
	/* A link of another user's to a folder of ours. */
	make_folder(f, "ours");
	make_folder(f, "ours/.git");
	write_file(f, "ours/.git/config", "[remote \"origin\"]\nurl = https://h.org/c/d.git\n");
	make_folder(f, "theirs");
	assert_int_equal(symlink(within(f, "ours/.git"), within(f, "theirs/.git")), 0);
	assert_project(f, "theirs", "h.org/c/d");
	assert_int_equal(lchown(within(f, "theirs/.git"), 65534, 65534), 0);
	assert_project(f, "theirs", f->at);
}

TEST(words_are_folders_or_names)
{
	struct folder *f = *state;
	char name[PROJECT_NAME_MAX + 1];

	assert_int_equal(project_of_word("github.com/ann/boat", name), 0);
	assert_string_equal(name, "github.com/ann/boat");
	assert_int_equal(project_of_word(f->made, name), 0);
	assert_string_equal(name, f->at);
	assert_int_equal(project_of_word("./nowhere/at/all", name), -ENOENT);
	assert_int_equal(project_of_word("", name), -EINVAL);
	assert_int_equal(project_of_folder("/", name), 0);
	assert_string_equal(name, "/");
}
