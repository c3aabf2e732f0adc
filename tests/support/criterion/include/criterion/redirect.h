/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CRITERION_REDIRECT_H
#define HF_CRITERION_REDIRECT_H

#include <criterion/criterion.h>

#define cr_redirect_stdout() hf_cr_redirect(1)
#define cr_redirect_stderr() hf_cr_redirect(2)
#define cr_assert_stdout_eq_str(want, ...)                                                         \
    HF_CR_CHECK_(true, hf_cr_redirected_eq(1, want), "stdout is " #want, __VA_ARGS__)
#define cr_assert_stderr_eq_str(want, ...)                                                         \
    HF_CR_CHECK_(true, hf_cr_redirected_eq(2, want), "stderr is " #want, __VA_ARGS__)

#endif
