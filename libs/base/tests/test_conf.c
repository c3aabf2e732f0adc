/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "holdfast/conf.h"
#include "holdfast/err.h"

struct target {
    char *name;
    uint64_t cache;
    bool insecure;
    char *listen;
    uint64_t max_conns;
    uint64_t idle;
    struct hf_conf_list exports;
    bool v3;
};

#define KEY(section, key, kind, def, min, max, field)                                              \
    {                                                                                              \
        section, key, kind, def, min, max, "help of " key, offsetof(struct target, field)          \
    }

static const struct hf_conf_key keys[] = {
    KEY("", "name", HF_CONF_STR, "node", 1, 16, name),
    KEY("", "cache_bytes", HF_CONF_U64, "4M", 1024, 1ull << 40, cache),
    KEY("", "insecure", HF_CONF_BOOL, "no", 0, 0, insecure),
    KEY("nfs", "listen", HF_CONF_STR, "0.0.0.0:2049", 0, 0, listen),
    KEY("nfs", "max_conns", HF_CONF_U64, "100", 1, 65535, max_conns),
    KEY("nfs", "idle", HF_CONF_MS, "5m", 10, 86400000, idle),
    KEY("nfs", "exports", HF_CONF_LIST, "", 0, 3, exports),
    KEY("smb", "v3", HF_CONF_BOOL, "true", 0, 0, v3),
};
#define NKEYS (sizeof(keys) / sizeof(keys[0]))

static struct hf_conf *conf;
static struct target t;
static char err[512];
static char dir[] = "/tmp/hf-conf-XXXXXX";
static char file[64];

static void setup(void)
{
    cr_assert_not_null(mkdtemp(dir));
    snprintf(file, sizeof(file), "%s/c.yaml", dir);
    cr_assert_eq(hf_conf_new(keys, NKEYS, &t, &conf), 0);
}

static void teardown(void)
{
    hf_conf_free(conf);
    unlink(file);
    rmdir(dir);
}

static void write_bytes(const void *data, size_t len)
{
    FILE *f = fopen(file, "wb");

    cr_assert_not_null(f);
    cr_assert_eq(fwrite(data, 1, len, f), len);
    cr_assert_eq(fclose(f), 0);
}

static int load_yaml(const char *yaml)
{
    write_bytes(yaml, strlen(yaml));
    return hf_conf_load(conf, file, NULL, 0, NULL, NULL, err, sizeof(err));
}

#define ARGS(...) ((char *[]){(char[]){"prog"}, __VA_ARGS__, NULL})

static int load_args(char **argv, int *next)
{
    int argc = 0;

    while (argv[argc])
        argc++;
    return hf_conf_load(conf, NULL, NULL, argc, argv, next, err, sizeof(err));
}

TestSuite(conf, .init = setup, .fini = teardown);

Test(conf, defaults)
{
    cr_assert_eq(hf_conf_load(conf, NULL, NULL, 0, NULL, NULL, err, sizeof(err)), 0, "%s", err);
    cr_assert_str_eq(t.name, "node");
    cr_assert_eq(t.cache, 4u << 20);
    cr_assert_not(t.insecure);
    cr_assert_str_eq(t.listen, "0.0.0.0:2049");
    cr_assert_eq(t.max_conns, 100);
    cr_assert_eq(t.idle, 300000);
    cr_assert_eq(t.exports.n, 0);
    cr_assert(t.v3);
}

Test(conf, every_kind_from_the_file)
{
    cr_assert_eq(load_yaml("# a comment\nname: \"a b\"\ncache_bytes: 2G\ninsecure: yes\n"
                           "nfs:\n  listen: '[::]:2049'\n  max_conns: 7\n  idle: 90s\n"
                           "  exports: [/a, \"/b,c\"]\nsmb:\n"),
                 0, "%s", err);
    cr_assert_str_eq(t.name, "a b");
    cr_assert_eq(t.cache, 2ull << 30);
    cr_assert(t.insecure);
    cr_assert_str_eq(t.listen, "[::]:2049");
    cr_assert_eq(t.max_conns, 7);
    cr_assert_eq(t.idle, 90000);
    cr_assert_eq(t.exports.n, 2);
    cr_assert_str_eq(t.exports.items[0], "/a");
    cr_assert_str_eq(t.exports.items[1], "/b,c");
    cr_assert(t.v3);
}

Test(conf, empty_files)
{
    cr_assert_eq(load_yaml(""), 0, "%s", err);
    cr_assert_eq(load_yaml("# nothing\n"), 0, "%s", err);
    cr_assert_eq(load_yaml("---\nnfs: {}\n"), 0, "%s", err);
    cr_assert_eq(t.max_conns, 100);
}

Test(conf, mistakes_in_the_file_name_line_key_and_what_is_allowed)
{
    static const struct {
        const char *yaml;
        const char *want; /* after the file's name */
    } bad[] = {
        {"name: x\nnfs:\n  listen: a\n  bad_key: 4\n",
         ":4: nfs.bad_key: unknown key; allowed: listen, max_conns, idle, exports"},
        {"nfs:\n  max_conns: 1\n\nnosuch:\n  a: 1\n", ":4: nosuch: unknown key; allowed: name,"},
        {"\nmax_conns: 3\n", ":2: max_conns: unknown key; allowed: name,"},
        {"nfs:\n  max_conns: 0\n",
         ":2: nfs.max_conns: \"0\" is not valid; allowed: a number (suffixes K, M, G, T) from 1 to "
         "65535"},
        {"nfs:\n  max_conns: 65536\n", ":2: nfs.max_conns: \"65536\" is not valid"},
        {"nfs:\n  max_conns: -1\n", ":2: nfs.max_conns: \"-1\" is not valid"},
        {"nfs:\n  max_conns: 99999999999999999999999\n", ":2: nfs.max_conns: "},
        {"cache_bytes: 20000000T\n", ":1: cache_bytes: \"20000000T\" is not valid"},
        {"cache_bytes: 4Q\n", ":1: cache_bytes: \"4Q\" is not valid"},
        {"cache_bytes:\n", ":1: cache_bytes: \"\" is not valid"},
        {"# x\ninsecure: maybe\n", ":2: insecure: \"maybe\" is not valid; allowed: true or false"},
        {"nfs:\n  idle: 5d\n", ":2: nfs.idle: \"5d\" is not valid; allowed: a time"},
        {"nfs:\n  idle: 9\n", ":2: nfs.idle: \"9\" is not valid"},
        {"name: this-name-is-too-long\n", ":1: name: \"this-name-is-too-long\" is not valid; "
                                          "allowed: text of a length from 1 to 16"},
        {"name: ''\n", ":1: name: \"\" is not valid"},
        {"nfs:\n  exports: [a, b, c, d]\n", ":2: nfs.exports: \"4 items\" is not valid"},
        {"nfs:\n  exports: [a, '']\n", ":2: nfs.exports: item 2 is empty"},
        {"nfs:\n  exports: /a\n", ":2: nfs.exports: Expecting SEQUENCE"},
        {"nfs:\n  exports: [[a]]\n", ":2: nested too deeply"},
        {"nfs:\n  exports: [{a: b}]\n", ":2: nested too deeply"},
        {"\nnfs:\n  listen: [a]\n", ":3: nfs.listen: Expecting STRING"},
        {"\nname: {a: b}\n", ":2: name: Expecting STRING"},
        {"nfs: hello\n", ":1: nfs: Expecting MAPPING"},
        {"[1, 2]\n", ":1: Expecting MAPPING"},
        {"hello\n", ":1: Expecting MAPPING"},
        {"name: a\n\nname: b\n", ":3: name: given twice"},
        {"nfs:\n  idle: 1s\n  idle: 2s\n", ":3: nfs.idle: given twice"},
        {"name: &x abc\nnfs:\n  listen: *x\n", ":"},
        {"name: a\n---\nname: b\n", ":2: a second document"},
        {"name: a\nnfs: [unclosed\n", ":3: not YAML: "},
        {"name: \"abc\n", ":2: not YAML: "},
        {"\tname: x\n", ":1: not YAML: "},
        {"name: x\n  y: z\n", ":2: not YAML: "},
        {"? [a]\n: b\n", ":"},
        {"name: \"ev\\x1bil\\x07-and-too-long\"\n", ":1: name: \"ev?il?-and-too-long\""},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        size_t n = strlen(file);

        cr_assert_eq(load_yaml(bad[i].yaml), HF_E_CONF, "accepted: %s", bad[i].yaml);
        cr_expect(strncmp(err, file, n) == 0 &&
                      strncmp(err + n, bad[i].want, strlen(bad[i].want)) == 0,
                  "for: %s\n got: %s\nwant: %s%s", bad[i].yaml, err, file, bad[i].want);
        cr_assert_null(strchr(err, '\n'));
    }
}

Test(conf, twice_a_section)
{
    cr_assert_eq(load_yaml("nfs:\n  idle: 1s\nnfs:\n  max_conns: 2\n"), HF_E_CONF);
    cr_assert_not_null(strstr(err, "nfs"), "%s", err);
}

Test(conf, missing_file_and_folder)
{
    int rc = hf_conf_load(conf, file, NULL, 0, NULL, NULL, err, sizeof(err));

    cr_assert_eq(rc, HF_E_CONF);
    cr_assert_not_null(strstr(err, "c.yaml: no such file"), "%s", err);
    rc = hf_conf_load(conf, dir, NULL, 0, NULL, NULL, err, sizeof(err));
    cr_assert_eq(rc, HF_E_CONF);
    cr_assert_not_null(strstr(err, "is a directory"), "%s", err);
}

Test(conf, a_mebibyte_of_garbage)
{
    static const char *const patterns[] = {"[",   "{",   "- ",  "a: ",    "\"", "&a ",
                                           "*a ", "? ",  "x\n", "a: b\n", "%",  "\t",
                                           "!<",  "|\n", "'",   "nfs: {"};
    size_t len = 1 << 20;
    char *data = malloc(len + 1);

    srand(7);
    for (unsigned round = 0; round < 4; round++) {
        for (size_t i = 0; i < len; i++)
            data[i] = (char)(round < 2 ? rand() : 0x20 + rand() % 0x5f);
        write_bytes(data, len);
        cr_assert_eq(hf_conf_load(conf, file, NULL, 0, NULL, NULL, err, sizeof(err)), HF_E_CONF);
        cr_assert_gt(strlen(err), strlen(file));
    }
    for (size_t p = 0; p < sizeof(patterns) / sizeof(patterns[0]); p++) {
        size_t n = strlen(patterns[p]);

        for (size_t i = 0; i < len; i++)
            data[i] = patterns[p][i % n];
        write_bytes(data, len);
        cr_assert_eq(hf_conf_load(conf, file, NULL, 0, NULL, NULL, err, sizeof(err)), HF_E_CONF,
                     "accepted %s...", patterns[p]);
    }
    memset(data, ' ', len + 1);
    write_bytes(data, len + 1);
    cr_assert_eq(hf_conf_load(conf, file, NULL, 0, NULL, NULL, err, sizeof(err)), HF_E_CONF);
    cr_assert_not_null(strstr(err, "larger than 1048576 bytes"), "%s", err);
    free(data);
}

Test(conf, flags)
{
    int next = 0;

    cr_assert_eq(load_args(ARGS("--nfs-listen", "a:1", "--nfs-max-conns=9", "--insecure",
                                "--nfs-exports", "/a, /b ,/c", "--smb-v3", "off", "word", "--x"),
                           &next),
                 0, "%s", err);
    cr_assert_str_eq(t.listen, "a:1");
    cr_assert_eq(t.max_conns, 9);
    cr_assert(t.insecure);
    cr_assert_not(t.v3);
    cr_assert_eq(t.exports.n, 3);
    cr_assert_str_eq(t.exports.items[1], "/b");
    cr_assert_eq(next, 9);
    cr_assert_eq(load_args(ARGS("--name", "a", "--name=b", "--", "--name"), &next), 0);
    cr_assert_str_eq(t.name, "b");
    cr_assert_eq(next, 5);
    cr_assert_not(t.insecure, "the earlier load is forgotten");
    cr_assert_eq(t.exports.n, 0);
    cr_assert_eq(load_args(ARGS("-", "--name"), &next), 0);
    cr_assert_eq(next, 1);
}

Test(conf, bad_flags)
{
    static const struct {
        const char *word, *value, *want;
    } bad[] = {
        {"--nosuch", NULL, "--nosuch: unknown flag"},
        {"-x", NULL, "-x: unknown flag"},
        {"--nfs", NULL, "--nfs: unknown flag"},
        {"--nfs-listen2", "a", "--nfs-listen2: unknown flag"},
        {"--name", NULL, "--name: a value must follow"},
        {"-c", NULL, "-c: a value must follow"},
        {"--nfs-max-conns", "x", "--nfs-max-conns: nfs.max_conns: \"x\" is not valid"},
        {"--nfs-exports=a,,b", NULL, "--nfs-exports: nfs.exports: item 2 is empty"},
        {"--insecure=perhaps", NULL, "--insecure: insecure: \"perhaps\" is not valid"},
        {"--config=/nonexistent/x", NULL, "/nonexistent/x: no such file"},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char word[64], value[64];
        int next = -1;

        snprintf(word, sizeof(word), "%s", bad[i].word);
        snprintf(value, sizeof(value), "%s", bad[i].value ? bad[i].value : "");
        cr_assert_eq(load_args(ARGS(word, bad[i].value ? value : NULL), &next), HF_E_CONF);
        cr_assert(strncmp(err, bad[i].want, strlen(bad[i].want)) == 0, "%s", err);
        cr_assert_eq(next, -1, "outputs are untouched on error");
    }
}

Test(conf, flag_beats_environment_beats_file_beats_default)
{
    char *envp[] = {(char[]){"PATH=/bin"}, (char[]){"HOLDFAST_NFS_MAX_CONNS=20"},
                    (char[]){"HOLDFAST_CACHE_BYTES=20K"}, (char[]){"HOLDFAST_NFS_EXPORTS=/e"},
                    NULL};
    char **argv = ARGS("-c", file, "--nfs-max-conns", "30");

    cr_assert_eq(load_yaml("cache_bytes: 10K\nname: f\nnfs: {max_conns: 10, exports: [/f, /g]}\n"),
                 0);
    cr_assert_eq(t.cache, 10240);
    cr_assert_eq(t.exports.n, 2);
    cr_assert_eq(hf_conf_load(conf, NULL, envp, 5, argv, NULL, err, sizeof(err)), 0, "%s", err);
    cr_assert_eq(t.max_conns, 30);
    cr_assert_eq(t.cache, 20480);
    cr_assert_str_eq(t.name, "f");
    cr_assert_eq(t.idle, 300000);
    cr_assert_eq(t.exports.n, 1);
    envp[2] = (char[]){"HOLDFAST_CACHE_BYTES=1"};
    cr_assert_eq(hf_conf_load(conf, NULL, envp, 0, NULL, NULL, err, sizeof(err)), HF_E_CONF);
    cr_assert(strncmp(err, "HOLDFAST_CACHE_BYTES: cache_bytes: \"1\"", 38) == 0, "%s", err);
}

Test(conf, help)
{
    struct hf_buf out = {0};

    cr_assert_eq(load_args(ARGS("--name", "x", "--help"), NULL), HF_E_CANCELED);
    cr_assert_eq(hf_conf_help(conf, &out), 0);
    cr_assert_eq(hf_buf_append(&out, "", 1), 0);
    for (size_t i = 0; i < NKEYS; i++)
        cr_assert_not_null(strstr((char *)out.data, keys[i].help));
    cr_assert_not_null(strstr((char *)out.data, "--nfs-max-conns NUMBER"));
    cr_assert_not_null(strstr((char *)out.data, "HOLDFAST_NFS_MAX_CONNS"));
    cr_assert_not_null(strstr((char *)out.data, "default \"100\""));
    hf_buf_fini(&out);
}

Test(conf, dump_reads_back)
{
    struct hf_buf out = {0}, again = {0};

    cr_assert_eq(
        load_yaml("name: \"a: #b\"\nnfs: {listen: '', idle: 90s, exports: ['- x', 'y: z']}\n"
                  "smb: {v3: no}\ninsecure: 1\n"),
        0, "%s", err);
    cr_assert_eq(hf_conf_dump(conf, &out), 0);
    write_bytes(out.data, out.len);
    cr_assert_eq(hf_conf_load(conf, file, NULL, 0, NULL, NULL, err, sizeof(err)), 0, "%s\n%.*s",
                 err, (int)out.len, (char *)out.data);
    cr_assert_str_eq(t.name, "a: #b");
    cr_assert_str_eq(t.listen, "");
    cr_assert_eq(t.idle, 90000);
    cr_assert_eq(t.exports.n, 2);
    cr_assert_str_eq(t.exports.items[1], "y: z");
    cr_assert(t.insecure && !t.v3);
    cr_assert_eq(hf_conf_dump(conf, &again), 0);
    cr_assert(hf_slice_eq(hf_buf_slice(&out), hf_buf_slice(&again)));
    hf_buf_fini(&out);
    hf_buf_fini(&again);
}

Test(conf, an_empty_list_overrides_and_is_dumped)
{
    struct hf_buf out = {0};

    cr_assert_eq(load_yaml("nfs: {exports: []}\n"), 0, "%s", err);
    cr_assert_eq(t.exports.n, 0);
    cr_assert_eq(hf_conf_dump(conf, &out), 0);
    cr_assert_eq(hf_buf_append(&out, "", 1), 0);
    cr_assert_not_null(strstr((char *)out.data, "exports: []"), "%s", (char *)out.data);
    hf_buf_fini(&out);
}

Test(conf_table, a_key_that_must_be_set)
{
    static const struct hf_conf_key must[] = {
        KEY("meta", "data_dir", HF_CONF_STR, "", 1, 100, name)};
    struct target mine = {0};
    struct hf_conf *c;
    char **argv = ARGS("--meta-data-dir", "/x");

    cr_assert_eq(hf_conf_new(must, 1, &mine, &c), 0);
    cr_assert_eq(hf_conf_load(c, NULL, NULL, 0, NULL, NULL, err, sizeof(err)), HF_E_CONF);
    cr_assert_str_eq(err, "meta.data_dir: must be set (in the file, by --meta-data-dir or by "
                          "HOLDFAST_META_DATA_DIR)");
    cr_assert_eq(hf_conf_load(c, NULL, NULL, 3, argv, NULL, err, sizeof(err)), 0, "%s", err);
    cr_assert_str_eq(mine.name, "/x");
    hf_conf_free(c);
}

Test(conf_table, ambiguous_tables_are_refused)
{
    static const struct hf_conf_key twice[] = {KEY("a", "b_c", HF_CONF_STR, "", 0, 0, name),
                                               KEY("a_b", "c", HF_CONF_STR, "", 0, 0, listen)};
    static const struct hf_conf_key taken[] = {KEY("", "config", HF_CONF_STR, "", 0, 0, name)};
    static const struct hf_conf_key upper[] = {KEY("", "Name", HF_CONF_STR, "", 0, 0, name)};
    struct target mine;
    struct hf_conf *c;

    cr_assert_eq(hf_conf_new(twice, 2, &mine, &c), HF_E_INVAL);
    cr_assert_eq(hf_conf_new(taken, 1, &mine, &c), HF_E_INVAL);
    cr_assert_eq(hf_conf_new(upper, 1, &mine, &c), HF_E_INVAL);
}

Test(conf_size, suffixes)
{
    static const char *const bad[] = {"",     "K",  "-1",        "+1",
                                      " 1",   "1 ", "1KB",       "1.5M",
                                      "0x10", "1P", "16777216T", "18446744073709551616"};
    uint64_t v = 77;

    cr_assert(hf_parse_size("4M", &v) == 0 && v == 4194304);
    cr_assert(hf_parse_size("0", &v) == 0 && v == 0);
    cr_assert(hf_parse_size("3k", &v) == 0 && v == 3072);
    cr_assert(hf_parse_size("16777215T", &v) == 0 && v == 16777215ull << 40);
    cr_assert(hf_parse_size("18446744073709551615", &v) == 0 && v == UINT64_MAX);
    v = 77;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_assert_eq(hf_parse_size(bad[i], &v), HF_E_INVAL, "%s", bad[i]);
    cr_assert_eq(v, 77);
}
