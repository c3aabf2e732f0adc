/* SPDX-License-Identifier: Apache-2.0
 *
 * What our unit tests use of Criterion, for builds in which Debian's Criterion cannot start (it
 * aborts under ThreadSanitizer before the first test). Same names, same meaning: each test runs in
 * a child process of its own, forked while the runner has no threads; a failed cr_assert ends it, a
 * failed cr_expect is counted. See ../../README.md.
 */
#ifndef HF_CRITERION_CRITERION_H
#define HF_CRITERION_CRITERION_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct criterion_test_params {
    size_t size;
    void *params;
    size_t length;
};

struct hf_cr_opt {
    void (*init)(void);
    void (*fini)(void);
    double timeout; /* seconds; scaled by what a sanitizer costs */
    bool disabled;
    int signal, exit_code; /* how the test must end */
};

struct hf_cr_test {
    const char *suite, *name; /* name NULL: the suite itself */
    struct hf_cr_opt opt;
    void (*fn)(void);
    void (*fn_param)(void *param);
    struct criterion_test_params (*params)(void);
    struct hf_cr_test *next; /* private */
};

/* Before main; t lives for ever. */
void hf_cr_register(struct hf_cr_test *t);
/* fatal: does not return. */
void hf_cr_failed(bool fatal, const char *file, int line, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
void hf_cr_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
void hf_cr_redirect(int fd);
/* Whether what was written to fd since hf_cr_redirect is `want`. */
bool hf_cr_redirected_eq(int fd, const char *want);

#define HF_CR_REGISTER_(id, ...)                                                                   \
    static struct hf_cr_test id##_hf_test = {__VA_ARGS__};                                         \
    __attribute__((constructor)) static void id##_hf_register(void)                                \
    {                                                                                              \
        hf_cr_register(&id##_hf_test);                                                             \
    }

#define TestSuite(s, ...)                                                                          \
    HF_CR_REGISTER_(s##_hf_suite, .suite = #s, .opt = {.disabled = false, __VA_ARGS__})            \
    struct hf_cr_test

#define Test(s, n, ...)                                                                            \
    static void s##_##n##_hf_impl(void);                                                           \
    HF_CR_REGISTER_(s##_##n, .suite = #s, .name = #n, .fn = s##_##n##_hf_impl,                     \
                    .opt = {.disabled = false, __VA_ARGS__})                                       \
    static void s##_##n##_hf_impl(void)

#define ParameterizedTestParameters(s, n)                                                          \
    static struct criterion_test_params s##_##n##_hf_params(void)

#define ParameterizedTest(param, s, n, ...)                                                        \
    static void s##_##n##_hf_impl(param);                                                          \
    static void s##_##n##_hf_call(void *p_)                                                        \
    {                                                                                              \
        s##_##n##_hf_impl(p_);                                                                     \
    }                                                                                              \
    HF_CR_REGISTER_(s##_##n, .suite = #s, .name = #n, .fn_param = s##_##n##_hf_call,               \
                    .params = s##_##n##_hf_params, .opt = {.disabled = false, __VA_ARGS__})        \
    static void s##_##n##_hf_impl(param)

#define cr_make_param_array(type, array, len, ...)                                                 \
    ((struct criterion_test_params){sizeof(type), (void *)(array), (len)})

/* The message of a check begins with a string literal, as it does in all of our tests. */
#define HF_CR_CHECK_(fatal, cond, text, ...)                                                       \
    do {                                                                                           \
        if (!(cond))                                                                               \
            hf_cr_failed(fatal, __FILE__, __LINE__, text, " " __VA_ARGS__);                        \
    } while (0)

#define cr_assert(c, ...)          HF_CR_CHECK_(true, c, #c, __VA_ARGS__)
#define cr_assert_not(c, ...)      HF_CR_CHECK_(true, !(c), "not " #c, __VA_ARGS__)
#define cr_assert_fail(...)        HF_CR_CHECK_(true, false, "fail", __VA_ARGS__)
#define cr_assert_eq(a, b, ...)    HF_CR_CHECK_(true, (a) == (b), #a " == " #b, __VA_ARGS__)
#define cr_assert_neq(a, b, ...)   HF_CR_CHECK_(true, (a) != (b), #a " != " #b, __VA_ARGS__)
#define cr_assert_lt(a, b, ...)    HF_CR_CHECK_(true, (a) < (b), #a " < " #b, __VA_ARGS__)
#define cr_assert_leq(a, b, ...)   HF_CR_CHECK_(true, (a) <= (b), #a " <= " #b, __VA_ARGS__)
#define cr_assert_gt(a, b, ...)    HF_CR_CHECK_(true, (a) > (b), #a " > " #b, __VA_ARGS__)
#define cr_assert_geq(a, b, ...)   HF_CR_CHECK_(true, (a) >= (b), #a " >= " #b, __VA_ARGS__)
#define cr_assert_null(a, ...)     HF_CR_CHECK_(true, (a) == NULL, #a " is NULL", __VA_ARGS__)
#define cr_assert_not_null(a, ...) HF_CR_CHECK_(true, (a) != NULL, #a " is not NULL", __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...)                                                                \
    HF_CR_CHECK_(true, strcmp(a, b) == 0, #a " is the string " #b, __VA_ARGS__)
#define cr_assert_str_neq(a, b, ...)                                                               \
    HF_CR_CHECK_(true, strcmp(a, b) != 0, #a " is not the string " #b, __VA_ARGS__)
#define cr_assert_arr_eq(a, b, n, ...)                                                             \
    HF_CR_CHECK_(true, memcmp(a, b, n) == 0, #a " has the bytes of " #b, __VA_ARGS__)

#define cr_expect(c, ...)        HF_CR_CHECK_(false, c, #c, __VA_ARGS__)
#define cr_expect_not(c, ...)    HF_CR_CHECK_(false, !(c), "not " #c, __VA_ARGS__)
#define cr_expect_eq(a, b, ...)  HF_CR_CHECK_(false, (a) == (b), #a " == " #b, __VA_ARGS__)
#define cr_expect_neq(a, b, ...) HF_CR_CHECK_(false, (a) != (b), #a " != " #b, __VA_ARGS__)
#define cr_expect_lt(a, b, ...)  HF_CR_CHECK_(false, (a) < (b), #a " < " #b, __VA_ARGS__)
#define cr_expect_leq(a, b, ...) HF_CR_CHECK_(false, (a) <= (b), #a " <= " #b, __VA_ARGS__)
#define cr_expect_gt(a, b, ...)  HF_CR_CHECK_(false, (a) > (b), #a " > " #b, __VA_ARGS__)
#define cr_expect_geq(a, b, ...) HF_CR_CHECK_(false, (a) >= (b), #a " >= " #b, __VA_ARGS__)
#define cr_expect_str_eq(a, b, ...)                                                                \
    HF_CR_CHECK_(false, strcmp(a, b) == 0, #a " is the string " #b, __VA_ARGS__)

#define cr_skip(...) hf_cr_skip(" " __VA_ARGS__)

#endif
